"""A metric: its value, or the reason why it is undefined; its form in reports and in JSON."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bert.errors import printable
from bert.metric_names import OF_POSITIVE, is_count, title


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


def report_table(
    scores: Mapping[str, Score],
    intervals: Mapping[str, Interval] | None = None,
    positive: str | None = None,
    unit: str = "rows",
) -> str:
    """The scores as lines of a report: name, value, interval and remarks; ``unit``: what the metric n counts."""
    titles = {title(name, positive): name for name in scores}  # f1 and f1:LABEL may be the same
    width = max(map(len, titles), default=0)
    lines = []
    for shown, name in titles.items():
        value, reason = scores[name]
        interval = (intervals or {}).get(name)
        if value is None:
            text = f"undefined: {reason}"
        elif name == "n":
            text = f"{value:,.0f} {unit} scored"
        elif is_count(name):
            text = f"{value:8,.0f}"
        else:
            text = f"{value:8.4f}"
            if interval and interval.low is not None:
                text += f"   95 % interval {interval.low:.4f} to {interval.high:.4f}"
            if interval and interval.left_out:
                text += f"   ({interval.left_out:,} of {interval.resamples:,} resamples left out)"
            text += f"   ({reason})" if reason else ""
        lines.append(printable(f"{shown:<{width}}  {text}"))
    return "\n".join(lines)


def as_json(
    scores: Mapping[str, Score], intervals: Mapping[str, Interval] | None = None, positive: str | None = None
) -> dict[str, Any]:
    """name -> value, reason and interval; null, never NaN. f1 and acc_and_f1 have the ``positive`` class as "label"."""
    intervals = intervals or {}
    return {
        name: result._asdict()
        | (intervals[name]._asdict() if name in intervals else {})
        | ({"label": positive} if positive is not None and name in OF_POSITIVE else {})
        for name, result in scores.items()
    }
