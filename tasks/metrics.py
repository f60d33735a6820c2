"""How good predictions are: scores with reasons, intervals, the confusion matrix, and the rows to look at.

Pure functions of NumPy arrays that hold every row once, so nothing is ever averaged over batches; no files, no model.
Definitions are those of scikit-learn 1.9 and scipy 1.17, written as sums over rows, so that a thousand resamples are
one matrix product; tests/tasks/metrics_test.py holds them to the originals.

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
  Matthews. Predictions of one class against several true ones give 0.0, as in scikit-learn, and a note: always saying
    the same is chance level, and a mean over seeds must count such a run. Where all rows are of one class there is
    nothing to tell apart, so it is None.
  Logarithms. A share that rounded to 0 counts as the smallest one that its dtype holds, so a loss stays finite.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.errors import InputError

_NAMES = {
    "class": ("accuracy", "f1", "acc_and_f1", "macro_f1", "micro_f1", "weighted_f1", "matthews", "cross_entropy", "n"),
    "classes": ("micro_f1", "macro_f1", "weighted_f1", "exact_match", "cross_entropy", "n"),
    "number": ("pearson", "spearman", "corr", "mse", "mae", "n"),
}
_PER_LABEL = ("f1:", "precision:", "recall:")
_LOWER_IS_BETTER = ("cross_entropy", "mse", "mae")
_TIE = 1e-6  # votes turned into float32 shares and scaled to sum to 1 differ by less, and by no more than rounding


class Score(NamedTuple):
    """value: None where undefined. reason: why it is undefined, or a note on a value that is."""

    value: float | None
    reason: str | None = None


class Interval(NamedTuple):
    """A 95 % interval; None where the score or half of the resamples are undefined, or there is one row only.

    left_out: how many of the resamples are not in it, for they are undefined.
    """

    low: float | None
    high: float | None
    resamples: int
    left_out: int


class _Rows(NamedTuple):
    """What the scores of all rows, or of any draw of them, are made of."""

    kind: str
    labels: Sequence[str]
    positive: str | None
    columns: dict[str, np.ndarray]  # float64 [N] or [N, C]


def default_metrics(kind: str, labels: Sequence[str]) -> tuple[str, ...]:
    """The names that people expect for this kind, the one that chooses the best checkpoint first."""
    if kind == "class":
        f1 = ("f1",) if len(labels) == 2 else ()
        return ("accuracy", *f1, "macro_f1", "matthews", "cross_entropy", "n")
    if kind == "classes":
        return ("micro_f1", "macro_f1", "exact_match", "cross_entropy", "n", *(f"f1:{label}" for label in labels))
    return ("pearson", "spearman", "mse", "mae", "n")


def check_names(names: Sequence[str], kind: str, labels: Sequence[str], positive: str | None = None) -> None:
    """Raises InputError where a metric is unknown for this kind, or has no meaning for these labels."""
    if kind not in _NAMES:
        raise ValueError(f"kind {kind!r} is none of {', '.join(_NAMES)}")
    if positive is not None and positive not in labels:
        raise InputError(f"positive label {positive!r} is none of the labels: {', '.join(labels)}")
    for name in names:
        if name in ("f1", "acc_and_f1") and kind == "class" and positive is None and len(labels) != 2:
            raise InputError(
                f"metric {name} needs a positive label, for there are {len(labels)} labels, or use f1:LABEL"
            )
        starts = () if kind == "number" else _PER_LABEL
        if name not in _NAMES[kind] and not (name.startswith(starts) and name.partition(":")[2] in labels):
            known = ", ".join([*_NAMES[kind], *(start + "LABEL" for start in starts)])
            raise InputError(f"metric {name!r} is not known for kind {kind!r}; known are {known}")


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

    Raises:
      InputError: a name that is not known for this kind.
      ValueError: arrays of other shapes, or targets that are not finite.
    """
    check_names(names, kind, labels, positive)
    _check_arrays(targets, predictions, 1 if kind == "number" else len(labels))
    count = len(targets)
    broken = count - int(np.isfinite(predictions).all(axis=1).sum())
    if broken or not count:
        reason = f"{broken:,} of {count:,} rows have predictions that are not finite" if broken else "no rows"
        return {name: Score(float(count)) if name == "n" else Score(None, reason) for name in names}
    rows = _rows(targets, predictions, kind, labels, positive, threshold)
    notes = {"matthews": constant_answer(predictions, kind, labels)}
    values = {name: float(value) for name, (value,) in _values(names, rows, np.ones((1, count))).items()}
    return {
        name: Score(None, _why(name, rows)) if np.isnan(value) else Score(value, notes.get(name))
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

    It tells how far the score would move with other rows of the same kind, not with another training run.
    Source: Efron and Tibshirani 1993, section 13.3. Arguments and errors as in `score`.
    """
    names = [name for name in names if name != "n"]
    scores = score(names, targets, predictions, kind, labels, positive=positive, threshold=threshold)
    drawn: dict[str, list[float]] = {name: [] for name in names}
    sought = [name for name in names if scores[name].value is not None]
    if sought and len(targets) > 1:
        rows = _rows(targets, predictions, kind, labels, positive, threshold)
        for weights_RN in _draws(len(targets), resamples, seed):
            for name, values in _values(sought, rows, weights_RN).items():
                drawn[name].extend(values[~np.isnan(values)].tolist())
    intervals = {}
    for name, kept in drawn.items():
        low, high = np.percentile(kept, [2.5, 97.5]).tolist() if len(kept) > resamples / 2 else (None, None)
        intervals[name] = Interval(low, high, resamples, resamples - len(kept))
    return intervals


def better(name: str, a: float | None, b: float | None) -> bool:
    """Whether a is better than b, lower for losses, higher for the rest; undefined (None, NaN) is never better."""
    if name == "n" or not (any(name in known for known in _NAMES.values()) or name.startswith(_PER_LABEL)):
        raise ValueError(f"{name!r} is no metric that one value of can be better than another")
    if a is None or np.isnan(a):
        return False
    if b is None or np.isnan(b):
        return True
    return a < b if name in _LOWER_IS_BETTER else a > b


def constant_answer(predictions: np.ndarray, kind: str, labels: Sequence[str], threshold: Any = 0.5) -> str | None:
    """A note where two or more rows all get the same answer, the mark of a run that learned nothing; else None."""
    if len(predictions) < 2:
        return None
    if kind == "number":
        return "predicts one number only" if (predictions == predictions[0]).all() else None
    answers_NC = _predicted(predictions, kind, threshold)
    if not (answers_NC == answers_NC[0]).all():
        return None
    if kind == "class":
        return f"predicts one class only: {labels[int(answers_NC[0].argmax())]}"
    return "predicts the same labels for every row"


def confusion(targets: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """int64 [C, C] counts of rows for kind "class": true classes down, predicted classes across."""
    _check_arrays(targets, predictions, targets.shape[-1])
    return _present(targets, "class").astype(np.int64).T @ _predicted(predictions, "class", 0.5).astype(np.int64)


def row_losses(targets: np.ndarray, predictions: np.ndarray, kind: str) -> np.ndarray:
    """float64 [N]: cross-entropy in nats to the soft target, its mean over several labels, or the squared error."""
    _check_arrays(targets, predictions, targets.shape[-1])
    floor = np.finfo(predictions.dtype)  # a share next to 1 is known to half a spacing, one next to 0 much better
    shares, wanted = predictions.astype(np.float64), targets.astype(np.float64)
    if kind == "number":
        return ((shares - wanted) ** 2)[:, 0]
    losses_NC = -wanted * np.log(np.maximum(shares, float(floor.tiny)))
    if kind == "class":
        return losses_NC.sum(axis=1)
    losses_NC -= (1 - wanted) * np.log(np.maximum(1 - shares, float(floor.epsneg) / 2))
    return losses_NC.mean(axis=1)


def worst_rows(targets: np.ndarray, predictions: np.ndarray, kind: str, count: int = 100) -> np.ndarray:
    """int64: the rows of the largest `row_losses`, worst first, equal ones in file order; a NaN is the worst."""
    losses = row_losses(targets, predictions, kind)
    return np.argsort(-np.where(np.isnan(losses), np.inf, losses), kind="stable")[:count]


def report_table(scores: Mapping[str, Score], intervals: Mapping[str, Interval] | None = None) -> str:
    """The scores as lines for people: name, value, interval, and what there is to know about them."""
    width = max((len(name) for name in scores), default=0)
    lines = []
    for name, (value, reason) in scores.items():
        interval = (intervals or {}).get(name)
        if value is None:
            text = f"undefined: {reason}"
        elif name == "n":
            text = f"{value:,.0f} rows scored"
        else:
            text = f"{value:8.4f}"
            if interval and interval.low is not None:
                text += f"   95 % interval {interval.low:.4f} to {interval.high:.4f}"
            if interval and interval.left_out:
                text += f"   ({interval.left_out:,} of {interval.resamples:,} resamples left out)"
            text += f"   ({reason})" if reason else ""
        lines.append(f"{name:<{width}}  {text}")
    return "\n".join(lines)


def as_json(scores: Mapping[str, Score], intervals: Mapping[str, Interval] | None = None) -> dict[str, Any]:
    """name -> value and reason, with low, high, resamples and left_out where there is an interval; null, never NaN."""
    intervals = intervals or {}
    return {
        name: result._asdict() | (intervals[name]._asdict() if name in intervals else {})
        for name, result in scores.items()
    }


def _check_arrays(targets: np.ndarray, predictions: np.ndarray, classes: int) -> None:
    if targets.ndim != 2 or targets.shape != predictions.shape or targets.shape[1] != classes:
        # (N, 1) against (N,) would broadcast to (N, N) and give a loss without an error
        raise ValueError(f"targets {targets.shape} and predictions {predictions.shape} must both be (rows, {classes})")
    if not np.issubdtype(predictions.dtype, np.floating):
        raise ValueError(f"predictions are {predictions.dtype}; they must be floating-point shares or numbers")
    if not np.isfinite(targets).all():
        raise ValueError("some targets are not finite; rows without a label cannot be scored")


def _present(targets_NC: np.ndarray, kind: str) -> np.ndarray:
    """bool [N, C]: what is true of each row."""
    if kind == "classes":
        return targets_NC > 0.5
    first_N = (targets_NC >= targets_NC.max(axis=1, keepdims=True) - _TIE).argmax(axis=1)
    return first_N[:, None] == np.arange(targets_NC.shape[1])


def _predicted(predictions_NC: np.ndarray, kind: str, threshold: Any) -> np.ndarray:
    """bool [N, C]: what is said of each row."""
    if kind == "classes":
        return predictions_NC > np.asarray(threshold)
    return predictions_NC.argmax(axis=1)[:, None] == np.arange(predictions_NC.shape[1])


def _rows(targets, predictions, kind: str, labels: Sequence[str], positive: str | None, threshold) -> _Rows:
    losses = row_losses(targets, predictions, kind)
    if kind == "number":
        numbers = {"targets": targets[:, 0].astype(np.float64), "predictions": predictions[:, 0].astype(np.float64)}
        errors = {"mse": losses, "mae": np.abs(numbers["targets"] - numbers["predictions"])}
        return _Rows(kind, labels, None, numbers | errors)
    present_NC, predicted_NC = _present(targets, kind), _predicted(predictions, kind, threshold)
    counted = {"present": present_NC, "predicted": predicted_NC, "hits": present_NC & predicted_NC}
    counted["right"] = (present_NC == predicted_NC).all(axis=1)
    columns = {name: column.astype(np.float64) for name, column in counted.items()}
    positive = labels[1] if positive is None and len(labels) == 2 else positive
    return _Rows(kind, labels, positive, columns | {"cross_entropy": losses})


def _draws(count: int, resamples: int, seed: int) -> Iterator[np.ndarray]:
    """float64 [R, N], a few resamples at a time: how often each drew each row."""
    rng = np.random.default_rng(seed)
    at_once = max(1, 200_000 // count)  # 1.6 MB a matrix, so that it stays in the cache
    for start in range(0, resamples, at_once):
        number = min(at_once, resamples - start)
        drawn = rng.integers(0, count, (number, count)) + count * np.arange(number)[:, None]
        yield np.bincount(drawn.ravel(), minlength=number * count).reshape(number, count).astype(np.float64)


def _values(names: Sequence[str], rows: _Rows, weights_RN: np.ndarray) -> dict[str, np.ndarray]:
    """name -> float64 [R], one value for each weighting of the rows; NaN where undefined."""
    of_kind = _number_values if rows.kind == "number" else _class_values
    values = of_kind(rows, weights_RN) | {"n": weights_RN.sum(axis=1)}
    return {name: values[name] for name in names}


def _class_values(rows: _Rows, weights_RN: np.ndarray) -> dict[str, np.ndarray]:
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
    for start, values_RC in zip(_PER_LABEL, per_label, strict=True):
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


def _number_values(rows: _Rows, weights_RN: np.ndarray) -> dict[str, np.ndarray]:
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


def _why(name: str, rows: _Rows) -> str:
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
