"""Curves of classifiers for reports: ROC, precision over recall, calibration; and the residuals of numbers.

ROC and precision-recall curves are of one class against the rest, by the probability of that class; their areas are
those of class_table.py, from all points. The points are those of scikit-learn 1.9 (roc_curve, precision_recall_curve),
thinned where there are many.

Calibration: the rows in ten bins of equal width by the probability of the predicted class (of several labels: by that
of each label of each row), with the mean probability and the share that is right. The expected calibration error is the
mean distance of the two, weighted by the rows of the bins (Guo et al. 2017, section 2).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.metrics.class_table import ranked
from tasks.metrics.weighted_metrics import predicted, present

POINTS = 200  # of a curve
CLASSES = 10  # with curves: the most frequent ones
BINS = 10


def of_classes(targets: np.ndarray, predictions: np.ndarray, kind: str, labels: Sequence[str]) -> dict[str, Any]:
    """ "roc", "precision_recall": class -> points (x, y); "calibration". Nothing where predictions are not finite.

    Of two classes of one kind "class" the first has no curves: they say the same as those of the second.
    """
    if not len(targets) or not np.isfinite(predictions).all():
        return {}
    present_NC = present(targets, kind)
    support_C = present_NC.sum(0)
    chosen = [c for c in np.argsort(-support_C, kind="stable") if 0 < support_C[c] < len(targets)][:CLASSES]
    if kind == "class" and len(labels) == 2:
        chosen = [c for c in chosen if c == 1]
    roc, precision_recall = {}, {}
    for c in sorted(chosen):
        roc[labels[c]], precision_recall[labels[c]] = points(present_NC[:, c], predictions[:, c])
    return {"roc": roc, "precision_recall": precision_recall, "calibration": calibration(targets, predictions, kind)}


def points(is_class_N: np.ndarray, shares_N: np.ndarray) -> tuple[list[list[float]], list[list[float]]]:
    """(false and true positive rate, recall and precision) at each distinct share, from the highest to the lowest."""
    inside_K, outside_K = ranked(is_class_N, shares_N)
    above_K, wrong_K = inside_K.cumsum(), outside_K.cumsum()
    recall_K, precision_K = above_K / above_K[-1], above_K / (above_K + wrong_K)
    roc = np.concatenate([[[0.0, 0.0]], np.stack([wrong_K / wrong_K[-1], recall_K], -1)])
    precision_recall = np.concatenate([[[0.0, 1.0]], np.stack([recall_K, precision_K], -1)])
    return _thinned(roc), _thinned(precision_recall)


def calibration(targets: np.ndarray, predictions: np.ndarray, kind: str) -> dict[str, Any]:
    """ "bins": {"count", "probability", "right"} of each that holds rows, and "error"."""
    present_NC = present(targets, kind)
    if kind == "class":
        shares_M = predictions.max(1)
        right_M = (present_NC & predicted(predictions, kind, 0.5)).any(1)
    else:
        shares_M, right_M = predictions.ravel(), present_NC.ravel()
    bin_M = np.minimum((shares_M * BINS).astype(int), BINS - 1)
    bins, error = [], 0.0
    for number in range(BINS):
        inside_M = bin_M == number
        if count := int(inside_M.sum()):
            share, right = float(shares_M[inside_M].mean()), float(right_M[inside_M].mean())
            bins.append({"count": count, "probability": share, "right": right})
            error += count / len(shares_M) * abs(share - right)
    return {"bins": bins, "error": error}


def residuals(targets: np.ndarray, predictions: np.ndarray, parts: int = 30) -> dict[str, Any]:
    """The distribution of prediction - target: "edges" of the bins and "counts"; nothing where one is not finite."""
    errors_N = (predictions - targets).ravel().astype(np.float64)
    if not len(errors_N) or not np.isfinite(errors_N).all():
        return {}
    counts, edges = np.histogram(errors_N, parts)
    return {"residuals": {"edges": edges.tolist(), "counts": counts.tolist()}}


def _thinned(points_KX: np.ndarray) -> list[list[float]]:
    """Of many points some at equal distances, with the first and the last."""
    if len(points_KX) > POINTS:
        points_KX = points_KX[np.linspace(0, len(points_KX) - 1, POINTS).round().astype(int)]
    thinned: list[list[float]] = points_KX.tolist()
    return thinned
