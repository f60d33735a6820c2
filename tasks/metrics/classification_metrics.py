"""Scores of classifiers with reasons and intervals, the confusion matrix, the worst rows.

The table of metrics is weighted_metrics.METRICS. Pure functions of NumPy arrays that have every row once, so nothing is
averaged over batches. Definitions are those of scikit-learn 1.9 and scipy 1.17, as sums over rows, so a thousand
resamples are one matrix product. tests/tasks/metrics/classification_metrics_test.py compares the values.

Targets and predictions are [N, C]. kind "class": shares that sum to 1, one-hot or soft. kind "classes": 0 or 1 and
sigmoid shares. kind "number": C is 1.

Rules:
  Classes. The true class has the largest target; of classes within 1e-6 of it the first in label order. The predicted
    class has the largest share; of equal ones the first. With several labels a row, a label counts as present above
    0.5 and as predicted above its threshold, never at it.
  Undefined. A value that the rows do not determine is None with a reason, where scikit-learn gives 0 and a warning and
    scipy NaN: F1 of a class that is neither present nor predicted, precision of one that is never predicted, recall
    of one that is never present, a correlation with constant numbers, everything without rows or with predictions
    that are not finite. Macro F1 is the mean over the classes with an F1, which is scikit-learn's default too.
  Matthews. If a single class is predicted and several are true, it is 0.0, as in scikit-learn, with a note: a constant
    prediction is at chance level, and a mean over seeds must include such a run. If all rows are of one class, it is
    None.
  Logarithms. A probability that was rounded to 0 counts as the smallest number of its dtype, so a loss stays finite.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bert.errors import InputError
from bert.metric_names import OF_POSITIVE, PER_LABEL
from bert.target_kinds import KINDS
from tasks.metrics.score import Interval, Score
from tasks.metrics.weighted_metrics import (
    METRICS,
    check_arrays,
    draws,
    make_rows,
    predicted,
    present,
    row_losses,
    values_of,
    why,
)

LOSS = {"class": "cross_entropy", "classes": "cross_entropy", "number": "mse"}  # that is trained
LOWER_IS_BETTER = tuple(name for name, metric in METRICS.items() if metric.lower_is_better)
_SAME_NUMBER = 0.01  # of the range of the targets


def default_metrics(kind: str, labels: Sequence[str]) -> tuple[str, ...]:
    """The usual names for this kind, the one that chooses the best checkpoint first."""
    if kind == "class":
        f1 = ("f1",) if len(labels) == 2 else ()
        return ("accuracy", *f1, "macro_f1", "matthews", "cross_entropy", "n")
    if kind == "classes":
        return ("micro_f1", "macro_f1", "exact_match", "cross_entropy", "n", *(f"f1:{label}" for label in labels))
    return ("pearson", "spearman", "mse", "mae", "n")


def rarer_label(targets_NC: np.ndarray, labels: Sequence[str]) -> str | None:
    """The label of two with the smaller share of the targets, the second of equal ones; None of another number."""
    if len(labels) != 2:
        return None
    first, second = targets_NC.sum(axis=0, dtype=np.float64)
    return labels[0] if first < second else labels[1]


def check_names(names: Sequence[str], kind: str, labels: Sequence[str], positive: str | None = None) -> None:
    """Raises InputError where a metric is unknown for this kind, or has no meaning for these labels."""
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is none of {', '.join(KINDS)}")
    known = [name for name, metric in METRICS.items() if kind in metric.kinds]
    if positive is not None and positive not in labels:
        raise InputError(f"positive label {positive!r} is none of the labels: {', '.join(labels)}")
    for name in names:
        if name in OF_POSITIVE and kind == "class" and positive is None and len(labels) != 2:
            raise InputError(
                f"metric {name} needs a positive label, for there are {len(labels)} labels, or use f1:LABEL"
            )
        starts = () if kind == "number" else PER_LABEL
        if name not in known and not (name.startswith(starts) and name.partition(":")[2] in labels):
            listed = ", ".join([*known, *(start + "LABEL" for start in starts)])
            listed += f" with a LABEL of {', '.join(labels)}" if starts else ""
            raise InputError(f"metric {name!r} is not known for kind {kind!r}; known are {listed}")


def score(
    names: Sequence[str],
    targets: np.ndarray,
    predictions: np.ndarray,
    kind: str,
    labels: Sequence[str],
    *,
    positive: str | None = None,
    threshold: float | Sequence[float] = 0.5,
) -> dict[str, Score]:
    """The named metrics over all rows; see the rules above.

    accuracy, f1 (of the positive label), acc_and_f1 (their mean, GLUE's for MRPC and QQP), macro_f1, micro_f1,
    weighted_f1, matthews, exact_match (all labels of a row right), f1:LABEL, precision:LABEL, recall:LABEL;
    cross_entropy in nats to the soft target, with several labels the mean over labels; pearson, spearman, corr (their
    mean, GLUE's for STS-B), mse, mae; n, the rows scored.

    Args:
      positive: the label that f1 is about; the second of two where None.
      threshold: with several labels, the share above which a label is predicted; one, or one a label [C].
    """
    check_names(names, kind, labels, positive)
    check_arrays(targets, predictions, 1 if kind == "number" else len(labels))
    count = len(targets)
    broken = count - int(np.isfinite(predictions).all(axis=1).sum())
    if broken or not count:
        reason = f"{broken:,} of {count:,} rows have predictions that are not finite" if broken else "no rows"
        return {name: Score(float(count)) if name == "n" else Score(None, reason) for name in names}
    rows = make_rows(targets, predictions, kind, labels, positive, threshold)
    constant = kind == "class" and constant_answer(targets, predictions, kind, labels)
    notes = {"matthews": f"predicts one class only: {constant}"} if constant else {}
    values = {name: float(value) for name, (value,) in values_of(names, rows, np.ones((1, count))).items()}
    return {
        name: Score(None, why(name, rows)) if np.isnan(value) else Score(value, notes.get(name))
        for name, value in values.items()
    }


def bootstrap(
    names: Sequence[str],
    targets: np.ndarray,
    predictions: np.ndarray,
    kind: str,
    labels: Sequence[str],
    *,
    positive: str | None = None,
    threshold: float | Sequence[float] = 0.5,
    seed: int = 0,
    resamples: int = 1000,
) -> dict[str, Interval]:
    """95 % percentile bootstrap intervals over rows for every name but "n"; the same for the same seed.

    It shows how far the score would move with other rows of the same kind, not with another training run.
    Source: Efron and Tibshirani 1993, section 13.3.
    """
    names = [name for name in names if name != "n"]
    scores = score(names, targets, predictions, kind, labels, positive=positive, threshold=threshold)
    drawn: dict[str, list[float]] = {name: [] for name in names}
    sought = [name for name in names if scores[name].value is not None]
    if sought and len(targets) > 1:
        rows = make_rows(targets, predictions, kind, labels, positive, threshold)
        for weights_RN in draws(len(targets), resamples, seed):
            for name, values in values_of(sought, rows, weights_RN).items():
                drawn[name].extend(values[~np.isnan(values)].tolist())
    intervals = {}
    for name, defined in drawn.items():
        low, high = np.percentile(defined, [2.5, 97.5]).tolist() if len(defined) > resamples / 2 else (None, None)
        intervals[name] = Interval(low, high, resamples, resamples - len(defined))
    return intervals


def constant_answer(
    targets: np.ndarray, predictions: np.ndarray, kind: str, labels: Sequence[str], threshold: Any = 0.5
) -> str | None:
    """What a model answers that gives two or more rows all the same answer, though it is not right for all; else None.

    Numbers count as the same where they differ by less than a hundredth of the targets' range.
    """
    if len(predictions) < 2 or not np.isfinite(predictions).all():
        return None
    if kind == "number":
        spread = np.ptp(targets)
        return f"about {predictions.mean():.4g}" if np.ptp(predictions) < _SAME_NUMBER * spread else None
    answers_NC = predicted(predictions, kind, threshold)
    if not (answers_NC == answers_NC[0]).all() or (answers_NC == present(targets, kind)).all():
        return None
    return ", ".join(label for label, is_said in zip(labels, answers_NC[0], strict=True) if is_said) or "no label"


def confusion(targets: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """int64 [C, C] counts of rows for kind "class": true classes down, predicted classes across."""
    check_arrays(targets, predictions, targets.shape[-1])
    return present(targets, "class").astype(np.int64).T @ predicted(predictions, "class", 0.5).astype(np.int64)


def worst_rows(targets: np.ndarray, predictions: np.ndarray, kind: str, count: int = 100) -> np.ndarray:
    """int64: the rows of the largest `row_losses`, worst first, equal ones in file order; a NaN is the worst."""
    losses = row_losses(targets, predictions, kind)
    return np.argsort(-np.where(np.isnan(losses), np.inf, losses), kind="stable")[:count]
