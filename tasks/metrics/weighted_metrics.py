"""Scores as sums over rows with weights: all rows once, or a thousand resamples as one matrix product.

metrics.py says what the metrics are and which rules they follow; here is how they are computed. Arrays end in N rows,
R weightings of them, C classes.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

PER_LABEL = ("f1:", "precision:", "recall:")
OF_POSITIVE = ("f1", "acc_and_f1")  # of one class, which their names do not say
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
    if kind == "number":
        return ((shares - wanted) ** 2)[:, 0]
    losses_NC = -wanted * np.log(np.maximum(shares, float(floor.tiny)))
    if kind == "class":
        return losses_NC.sum(axis=1)
    losses_NC -= (1 - wanted) * np.log(np.maximum(1 - shares, float(floor.epsneg) / 2))
    return losses_NC.mean(axis=1)


def check_arrays(targets: np.ndarray, predictions: np.ndarray, classes: int) -> None:
    if targets.ndim != 2 or targets.shape != predictions.shape or targets.shape[1] != classes:
        # (N, 1) against (N,) would broadcast to (N, N) and give a loss without an error
        raise ValueError(f"targets {targets.shape} and predictions {predictions.shape} must both be (rows, {classes})")
    if not np.issubdtype(predictions.dtype, np.floating):
        raise ValueError(f"predictions are {predictions.dtype}; they must be floating-point shares or numbers")
    if not np.isfinite(targets).all():
        raise ValueError("some targets are not finite; rows without a label cannot be scored")


def present(targets_NC: np.ndarray, kind: str) -> np.ndarray:
    """bool [N, C]: what is true of each row."""
    if kind == "classes":
        return targets_NC > 0.5
    first_N = (targets_NC >= targets_NC.max(axis=1, keepdims=True) - _TIE).argmax(axis=1)
    return first_N[:, None] == np.arange(targets_NC.shape[1])


def predicted(predictions_NC: np.ndarray, kind: str, threshold: Any) -> np.ndarray:
    """bool [N, C]: what is said of each row."""
    if kind == "classes":
        return predictions_NC > np.asarray(threshold)
    return predictions_NC.argmax(axis=1)[:, None] == np.arange(predictions_NC.shape[1])


def make_rows(targets, predictions, kind: str, labels: Sequence[str], positive: str | None, threshold) -> Rows:
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
    of_kind = _number_values if rows.kind == "number" else _class_values
    values = of_kind(rows, weights_RN) | {"n": weights_RN.sum(axis=1)}
    return {name: values[name] for name in names}


def _class_values(rows: Rows, weights_RN: np.ndarray) -> dict[str, np.ndarray]:
    count = weights_RN.shape[1]
    sums = {name: weights_RN @ column for name, column in rows.columns.items()}
    hits_RC, present_RC, predicted_RC = sums["hits"], sums["present"], sums["predicted"]
    values = {name: sums["right"] / count for name in ("accuracy", "exact_match")}
    values["cross_entropy"] = sums["cross_entropy"] / count
    f1_RC = _ratio(2 * hits_RC, present_RC + predicted_RC)
    values["macro_f1"] = _ratio(np.nansum(f1_RC, axis=1), (~np.isnan(f1_RC)).sum(axis=1))
    values["micro_f1"] = _ratio(2 * hits_RC.sum(axis=1), (present_RC + predicted_RC).sum(axis=1))
    values["weighted_f1"] = _ratio(np.nansum(f1_RC * present_RC, axis=1), present_RC.sum(axis=1))
    if rows.kind == "class":
        values["matthews"] = _matthews(hits_RC.sum(axis=1), present_RC, predicted_RC, count)
    per_label = (f1_RC, _ratio(hits_RC, predicted_RC), _ratio(hits_RC, present_RC))
    for start, values_RC in zip(PER_LABEL, per_label, strict=True):
        values |= {start + label: values_RC[:, column] for column, label in enumerate(rows.labels)}
    if rows.positive is not None:
        values["f1"] = values[f"f1:{rows.positive}"]
        values["acc_and_f1"] = (values["accuracy"] + values["f1"]) / 2
    return values


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """above / below, NaN where below is 0."""
    return np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below != 0)


def _matthews(hits_R: np.ndarray, present_RC: np.ndarray, predicted_RC: np.ndarray, count: int) -> np.ndarray:
    """Gorodkin 2004, equation 8, as in scikit-learn; all terms are whole numbers, so the zeros are exact."""
    spread_present = count**2 - (present_RC**2).sum(axis=1)
    spread_predicted = count**2 - (predicted_RC**2).sum(axis=1)
    together = hits_R * count - (present_RC * predicted_RC).sum(axis=1)
    values = _ratio(together, np.sqrt(spread_present) * np.sqrt(spread_predicted))
    return np.where((spread_predicted == 0) & (spread_present > 0), 0.0, values)


def _number_values(rows: Rows, weights_RN: np.ndarray) -> dict[str, np.ndarray]:
    x, y = (_Side(rows.columns[side], weights_RN) for side in ("targets", "predictions"))
    undefined_R = x.constant_R | y.constant_R
    values = {name: weights_RN @ rows.columns[name] / weights_RN.shape[1] for name in ("mse", "mae")}
    values["pearson"] = _correlation(x.standard_1N, y.standard_1N, weights_RN, undefined_R)
    values["spearman"] = _correlation(x.ranks_RN(), y.ranks_RN(), weights_RN, undefined_R)
    values["corr"] = (values["pearson"] + values["spearman"]) / 2
    return values


class _Side:
    """Targets or predictions under each weighting of the rows: whether they are constant, and their ranks."""

    def __init__(self, numbers_N: np.ndarray, weights_RN: np.ndarray):
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


def why(name: str, rows: Rows) -> str:
    """Why this metric has no value over all rows."""
    if rows.kind == "number":
        if len(rows.columns["targets"]) == 1:
            return "one row only"
        constant = [side for side in ("targets", "predictions") if np.ptp(rows.columns[side]) == 0]
        return f"the {' and '.join(constant)} are constant"
    measure, _, label = name.partition(":")
    label = label or str(rows.positive)
    nothing = "no row has any label, and none was predicted"
    reasons = {
        "matthews": "all rows are of one class",
        "macro_f1": nothing,
        "micro_f1": nothing,
        "weighted_f1": "no row has any label",
        "precision": f"{label} is never predicted",
        "recall": f"no row is {label}",
    }
    return reasons.get(measure, f"no row is {label}, and it is never predicted")
