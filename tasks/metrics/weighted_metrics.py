"""`METRICS`, the metrics of classification and regression, with a weight for each row.

Rules and definitions are in classification_metrics.py. Arrays end in N rows, R weightings of them, C classes.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.target_kinds import KINDS, Kind

_TIE = 1e-6  # votes turned into float32 shares and scaled to sum to 1 differ by less, and by no more than rounding


class Rows(NamedTuple):
    """What the scores of all rows, or of any draw of them, are made of."""

    kind: str
    labels: Sequence[str]
    positive: str | None
    columns: dict[str, np.ndarray]  # float64 [N] or [N, C]


def row_losses(targets: np.ndarray, predictions: np.ndarray, kind: str) -> np.ndarray:
    """float64 [N]: cross-entropy in nats to the soft target, its mean over several labels, or the squared error."""
    check_arrays(targets, predictions, targets.shape[-1])
    floor = np.finfo(predictions.dtype)  # a share next to 1 is known to half a spacing, one next to 0 much better
    shares, wanted = predictions.astype(np.float64), targets.astype(np.float64)
    losses_N: np.ndarray
    if kind == "number":
        losses_N = ((shares - wanted) ** 2)[:, 0]
        return losses_N
    losses_NC: np.ndarray = -wanted * np.log(np.maximum(shares, float(floor.tiny)))
    if kind == "classes":
        losses_NC -= (1 - wanted) * np.log(np.maximum(1 - shares, float(floor.epsneg) / 2))
    losses_N = losses_NC.sum(axis=1) if kind == "class" else losses_NC.mean(axis=1)
    return losses_N


def check_arrays(targets: np.ndarray, predictions: np.ndarray, classes: int) -> None:
    if targets.ndim != 2 or targets.shape != predictions.shape or targets.shape[1] != classes:
        # (N, 1) against (N,) would broadcast to (N, N) and give a loss without an error
        raise ValueError(f"targets {targets.shape} and predictions {predictions.shape} must both be (rows, {classes})")
    if not np.issubdtype(predictions.dtype, np.floating):
        raise ValueError(f"predictions are {predictions.dtype}; they must be floating-point shares or numbers")
    if not np.isfinite(targets).all():
        raise ValueError("some targets are not finite; rows without a label cannot be scored")


def present(targets_NC: np.ndarray, kind: str) -> np.ndarray:
    """bool [N, C]: the true classes of each row."""
    if kind == "classes":
        return targets_NC > 0.5
    first_N = (targets_NC >= targets_NC.max(axis=1, keepdims=True) - _TIE).argmax(axis=1)
    present_NC: np.ndarray = first_N[:, None] == np.arange(targets_NC.shape[1])
    return present_NC


def predicted(predictions_NC: np.ndarray, kind: str, threshold: Any) -> np.ndarray:
    """bool [N, C]: the predicted classes of each row."""
    if kind == "classes":
        return predictions_NC > np.asarray(threshold)
    predicted_NC: np.ndarray = predictions_NC.argmax(axis=1)[:, None] == np.arange(predictions_NC.shape[1])
    return predicted_NC


def make_rows(
    targets: np.ndarray, predictions: np.ndarray, kind: str, labels: Sequence[str], positive: str | None, threshold: Any
) -> Rows:
    losses = row_losses(targets, predictions, kind)
    if kind == "number":
        numbers = {"targets": targets[:, 0].astype(np.float64), "predictions": predictions[:, 0].astype(np.float64)}
        errors = {"mse": losses, "mae": np.abs(numbers["targets"] - numbers["predictions"])}
        return Rows(kind, labels, None, numbers | errors)
    present_NC, predicted_NC = present(targets, kind), predicted(predictions, kind, threshold)
    counted = {"present": present_NC, "predicted": predicted_NC, "hits": present_NC & predicted_NC}
    counted["right"] = (present_NC == predicted_NC).all(axis=1)
    columns = {name: column.astype(np.float64) for name, column in counted.items()}
    positive = labels[1] if positive is None and len(labels) == 2 else positive
    return Rows(kind, labels, positive, columns | {"cross_entropy": losses})


def draws(count: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """float64 [R, N], a few resamples at a time: how often each drew each row."""
    rng = np.random.default_rng(seed)
    at_once = max(1, 200_000 // count)  # 1.6 MB a matrix, so that it stays in the cache
    for start in range(0, resamples, at_once):
        number = min(at_once, resamples - start)
        drawn = rng.integers(0, count, (number, count)) + count * np.arange(number)[:, None]
        yield np.bincount(drawn.ravel(), minlength=number * count).reshape(number, count).astype(np.float64)


def values_of(names: Sequence[str], rows: Rows, weights_RN: np.ndarray) -> dict[str, np.ndarray]:
    """name -> float64 [R], one value for each weighting of the rows; NaN where undefined."""
    sums = NumberSums(rows, weights_RN) if rows.kind == "number" else ClassSums(rows, weights_RN)
    return {name: METRICS[name].value(sums) if name in METRICS else _of_label(sums, name) for name in names}


class ClassSums:
    """Rows of classes under each weighting, [R] or [R, C]: how often a class is true, predicted, and both (hits)."""

    def __init__(self, rows: Rows, weights_RN: np.ndarray) -> None:
        self.rows, self.count, self.n_R = rows, weights_RN.shape[1], weights_RN.sum(axis=1)
        sums = {name: weights_RN @ column for name, column in rows.columns.items()}
        self.hits_RC, self.present_RC, self.predicted_RC = sums["hits"], sums["present"], sums["predicted"]
        self.accuracy_R, self.cross_entropy_R = sums["right"] / self.count, sums["cross_entropy"] / self.count
        self.f1_RC = _ratio(2 * self.hits_RC, self.present_RC + self.predicted_RC)

    def f1(self) -> np.ndarray:
        return _of_label(self, f"f1:{self.rows.positive}")

    def macro_f1(self) -> np.ndarray:
        return _ratio(np.nansum(self.f1_RC, axis=1), (~np.isnan(self.f1_RC)).sum(axis=1))

    def micro_f1(self) -> np.ndarray:
        return _ratio(2 * self.hits_RC.sum(axis=1), (self.present_RC + self.predicted_RC).sum(axis=1))

    def weighted_f1(self) -> np.ndarray:
        return _ratio(np.nansum(self.f1_RC * self.present_RC, axis=1), self.present_RC.sum(axis=1))

    def matthews(self) -> np.ndarray:
        """Gorodkin 2004, equation 8, as in scikit-learn; all terms are whole numbers, so the zeros are exact."""
        spread_present = self.count**2 - (self.present_RC**2).sum(axis=1)
        spread_predicted = self.count**2 - (self.predicted_RC**2).sum(axis=1)
        together = self.hits_RC.sum(axis=1) * self.count - (self.present_RC * self.predicted_RC).sum(axis=1)
        values = _ratio(together, np.sqrt(spread_present) * np.sqrt(spread_predicted))
        return np.where((spread_predicted == 0) & (spread_present > 0), 0.0, values)


def _of_label(sums: Any, name: str) -> np.ndarray:
    """f1:LABEL, precision:LABEL or recall:LABEL, from `ClassSums`."""
    measure, _, label = name.partition(":")
    below_RC = {"precision": sums.predicted_RC, "recall": sums.present_RC}
    values_RC = sums.f1_RC if measure == "f1" else _ratio(sums.hits_RC, below_RC[measure])
    values_R: np.ndarray = values_RC[:, list(sums.rows.labels).index(label)]
    return values_R


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below, NaN where below is 0."""
    values: np.ndarray = np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below != 0)
    return values


class NumberSums:
    """Targets and predictions that are numbers, under each weighting."""

    def __init__(self, rows: Rows, weights_RN: np.ndarray) -> None:
        self.rows, self.weights_RN, self.n_R = rows, weights_RN, weights_RN.sum(axis=1)

    @functools.cached_property
    def _sides(self) -> tuple["_Side", "_Side"]:
        x, y = (_Side(self.rows.columns[side], self.weights_RN) for side in ("targets", "predictions"))
        return x, y

    def mean(self, name: str) -> np.ndarray:
        means_R: np.ndarray = self.weights_RN @ self.rows.columns[name] / self.weights_RN.shape[1]
        return means_R

    def pearson(self) -> np.ndarray:
        x, y = self._sides
        return _correlation(x.standard_1N, y.standard_1N, self.weights_RN, x.constant_R | y.constant_R)

    def spearman(self) -> np.ndarray:
        x, y = self._sides
        return _correlation(x.ranks_RN(), y.ranks_RN(), self.weights_RN, x.constant_R | y.constant_R)


class _Side:
    """Targets or predictions under each weighting of the rows: whether they are constant, and their ranks."""

    def __init__(self, numbers_N: np.ndarray, weights_RN: np.ndarray) -> None:
        # taken apart once, before any weighting, so that far-off or tiny numbers lose no digits in the sums
        centred = numbers_N - numbers_N.mean()
        self.standard_1N = (centred / (np.abs(centred).max() or 1.0))[None]
        order = np.argsort(numbers_N, kind="stable")
        starts = np.flatnonzero(np.diff(numbers_N[order], prepend=np.nan) != 0)
        self._of_row_N = np.empty(len(numbers_N), np.int64)
        self._of_row_N[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
        self._weights_RK = np.add.reduceat(weights_RN[:, order], starts, axis=1)  # of each distinct number
        self.constant_R = self._weights_RK.max(axis=1) == len(numbers_N)

    def ranks_RN(self) -> np.ndarray:
        """Average ranks among the rows drawn, equal numbers sharing theirs."""
        return (self._weights_RK.cumsum(axis=1) - (self._weights_RK - 1) / 2)[:, self._of_row_N]


def _correlation(x: np.ndarray, y: np.ndarray, weights_RN: np.ndarray, undefined_R: np.ndarray) -> np.ndarray:
    """Pearson's coefficient [R] of x and y, both [1, N] or [R, N]; NaN where undefined_R says so."""
    count = weights_RN.shape[1]
    x = x - (weights_RN * x).sum(axis=1, keepdims=True) / count
    y = y - (weights_RN * y).sum(axis=1, keepdims=True) / count
    weighted_x = weights_RN * x
    lengths = np.sqrt((weighted_x * x).sum(axis=1)) * np.sqrt((weights_RN * y * y).sum(axis=1))
    values = _ratio((weighted_x * y).sum(axis=1), lengths)
    return np.where(undefined_R, np.nan, np.clip(values, -1.0, 1.0))


class Metric(NamedTuple):
    """value: float64 [R] from `ClassSums` or `NumberSums`. kinds: of targets, see bert/target_kinds.py."""

    kinds: tuple[Kind, ...]
    value: Callable[[Any], np.ndarray]
    lower_is_better: bool = False


# Every metric of classifiers by name, beside f1:LABEL, precision:LABEL and recall:LABEL. A new one is a line here.
_BOTH: tuple[Kind, ...] = ("class", "classes")
METRICS: dict[str, Metric] = {
    "accuracy": Metric(("class",), lambda sums: sums.accuracy_R),
    "f1": Metric(("class",), ClassSums.f1),
    "acc_and_f1": Metric(("class",), lambda sums: (sums.accuracy_R + sums.f1()) / 2),
    "macro_f1": Metric(_BOTH, ClassSums.macro_f1),
    "micro_f1": Metric(_BOTH, ClassSums.micro_f1),
    "weighted_f1": Metric(_BOTH, ClassSums.weighted_f1),
    "matthews": Metric(("class",), ClassSums.matthews),
    "exact_match": Metric(("classes",), lambda sums: sums.accuracy_R),
    "cross_entropy": Metric(_BOTH, lambda sums: sums.cross_entropy_R, lower_is_better=True),
    "pearson": Metric(("number",), NumberSums.pearson),
    "spearman": Metric(("number",), NumberSums.spearman),
    "corr": Metric(("number",), lambda sums: (sums.pearson() + sums.spearman()) / 2),
    "mse": Metric(("number",), lambda sums: sums.mean("mse"), lower_is_better=True),
    "mae": Metric(("number",), lambda sums: sums.mean("mae"), lower_is_better=True),
    "n": Metric(KINDS, lambda sums: sums.n_R),
}


def why(name: str, rows: Rows) -> str:
    """Why this metric has no value over all rows."""
    if rows.kind == "number":
        if len(rows.columns["targets"]) == 1:
            return "one row only"
        constant = [side for side in ("targets", "predictions") if np.ptp(rows.columns[side]) == 0]
        return f"the {' and '.join(constant)} are constant"
    measure, _, label = name.partition(":")
    label = label or str(rows.positive)
    reasons = {
        "matthews": "all rows are of one class",
        **dict.fromkeys(("macro_f1", "micro_f1"), "no row has any label, and none was predicted"),
        "weighted_f1": "no row has any label",
        "precision": f"{label} is never predicted",
        "recall": f"no row is {label}",
    }
    return reasons.get(measure, f"no row is {label}, and it is never predicted")
