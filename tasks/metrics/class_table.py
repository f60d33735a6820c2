"""Scores per class: precision, recall, F1, support, and the areas under the ROC and precision-recall curves.

The areas are of one class against the rest, by the probability of that class: ROC (the share of pairs of a row of the
class and another row that are in the right order, equal probabilities counting half), and precision over recall as
average precision, without interpolation. Both are those of scikit-learn 1.9 (roc_auc_score, average_precision_score).
If all rows or no rows are of the class, they are undefined. The macro means are over the classes with a value.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert.errors import printable
from tasks.metrics import classification_metrics, score
from tasks.metrics.score import Score
from tasks.metrics.weighted_metrics import predicted, present

MEASURES = ("precision", "recall", "f1")
AREAS = ("roc_auc", "average_precision")
COUNTS = ("support", "predicted")  # rows of the class, rows predicted as the class
ClassScores = dict[str, dict[str, Score]]  # class -> measure -> score


def of_classes(
    targets: np.ndarray,
    predictions: np.ndarray,
    kind: str,
    labels: Sequence[str],
    threshold: float | Sequence[float] = 0.5,
) -> tuple[ClassScores, dict[str, Score]]:
    """(the scores of each class, macro means); the arguments are those of `classification_metrics.score`."""
    names = [f"{measure}:{label}" for label in labels for measure in MEASURES]
    scores = classification_metrics.score(names, targets, predictions, kind, labels, threshold=threshold)
    present_NC, predicted_NC = present(targets, kind), predicted(predictions, kind, threshold)
    each: ClassScores = {}
    for label, present_N, predicted_N, shares_N in zip(
        labels, present_NC.T, predicted_NC.T, predictions.T, strict=True
    ):
        counts = {"support": Score(float(present_N.sum())), "predicted": Score(float(predicted_N.sum()))}
        each[label] = {name: scores[f"{name}:{label}"] for name in MEASURES} | counts | areas(present_N, shares_N)
    return each, {name: _mean([row[name] for row in each.values()]) for name in ("f1", *AREAS)}


def areas(is_class_N: np.ndarray, shares_N: np.ndarray) -> dict[str, Score]:
    """`AREAS` of one class (bool [N]) against the rest; ``shares_N``: larger where the class is likelier."""
    inside, outside = int(is_class_N.sum()), int((~is_class_N).sum())
    if not inside or not outside or not np.isfinite(shares_N).all():
        why = "some predictions are not finite" if inside and outside else "all rows or none are of this class"
        return dict.fromkeys(AREAS, Score(None, why))
    inside_K, outside_K = ranked(is_class_N, shares_N)
    above_K, wrong_K = inside_K.cumsum(), outside_K.cumsum()
    ordered_pairs = (inside_K * (outside - wrong_K + outside_K / 2)).sum()
    values = (ordered_pairs / (inside * outside), (inside_K * above_K / (above_K + wrong_K)).sum() / inside)
    return {name: Score(float(value)) for name, value in zip(AREAS, values, strict=True)}


def ranked(is_class_N: np.ndarray, shares_N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the class, and others, at each distinct share [K] from the highest down: equal ones count at once."""
    distinct_K, place_N = np.unique(shares_N, return_inverse=True)
    inside_K, outside_K = (np.bincount(place_N, rows_N, len(distinct_K)) for rows_N in (is_class_N, ~is_class_N))
    return inside_K[::-1], outside_K[::-1]


def _mean(scores: Sequence[Score]) -> Score:
    values = [score.value for score in scores if score.value is not None]
    left_out = len(scores) - len(values)
    note = f"{left_out} of {len(scores)} classes have none" if left_out else None
    return Score(float(np.mean(values)), note) if values else Score(None, "no class has one")


def table(each: ClassScores, macro: Mapping[str, Score] | None = None, heading: str = "class") -> str:
    """A line a class, and one with the macro means where there are any; "-" stands for an undefined value."""
    names = list(next(iter(each.values()), {}))
    each = {printable(label): row for label, row in each.items()}
    rows = {**each, **({"macro mean": macro} if macro else {})}
    first = max(len(heading), *map(len, rows)) + 2
    widths = [max(11, len(name) + 2) for name in names]

    def cell(row: Mapping[str, Score], name: str) -> str:
        value = row[name].value if name in row else None
        if name in row and value is None:
            return "-"
        return "" if value is None else f"{value:,.0f}" if name in COUNTS else f"{value:.4f}"

    lines = [(heading, names), *((label, [cell(row, name) for name in names]) for label, row in rows.items())]
    return "\n".join((label.ljust(first) + "".join(map(str.rjust, cells, widths))).rstrip() for label, cells in lines)


def as_json(each: ClassScores) -> dict[str, Any]:
    """class -> measure -> value and reason; null, never NaN."""
    return {label: score.as_json(row) for label, row in each.items()}
