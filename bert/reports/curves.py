"""The curves of runs: which metrics share a chart, and its description for Vega-Lite."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from bert import metric_names
from bert.metric_names import is_count, is_note
from bert.reports.charts import Chart, legend, series_scale
from bert.reports.html import clipped, short
from bert.reports.runs import Point, Run

POINTS = 24_000  # of all curves of a page: 2 MB
MOST, LEAST = 500, 50  # points of a curve: what a screen can show, and what still shows its shape
NO_CURVES = ("tokens", "seconds_per_step", "skipped")
TITLES = {
    "learning_rate": "learning rate", "gradient_norm": "gradient norm", "tokens_per_second": "tokens per second",
    "peak_share": "share of the devices' peak FLOP/s",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Curve:
    """A metric of a split of a run; ``metric`` may differ from its chart's, as that of the validation loss does."""

    run: str
    split: str
    metric: str
    points: list[Point]


def title(metric: str) -> str:
    """The name of a metric on the page: "f1 of spam", "learning rate"."""
    return TITLES.get(metric) or clipped(metric_names.title(metric))


def shown(metric: str, value: float | None) -> str:
    """The value of a metric in reports."""
    return f"{value:,.0f}" if is_count(metric) and value is not None else short(value)


def curves_of(runs: Sequence[Run]) -> dict[str, list[Curve]]:
    """Chart -> its curves, the loss first, rates last.

    Equal metrics under two names are shown once. What has no two points is no curve; the loss is shown all the same.
    """
    charts: dict[str, list[Curve]] = {"loss": []}
    for run in runs:
        for split, series in run.splits.items():
            loss = run.start.get("loss") or "loss"
            for metric, points in series.items():
                if metric in NO_CURVES or is_note(metric) or is_count(metric):
                    continue
                if all(value is None for _, value in points):
                    continue
                if metric != "loss" and series.get("loss") == points:
                    continue
                if any(name != metric and name.startswith(f"{metric}:") and series[name] == points for name in series):
                    continue  # f1 and f1:LABEL
                chart = "loss" if split == "validation" and metric == loss else metric
                charts.setdefault(chart, []).append(Curve(run.name, split, metric, points))
    names = [name for name, curves in charts.items() if name == "loss" or any(len(c.points) > 1 for c in curves)]
    last = [name for name in TITLES if name in names]
    return {name: charts[name] for name in [*(n for n in names if n not in last), *last] if charts[name]}


def skipped_steps(run: Run) -> list[int]:
    """The logged steps before which steps were skipped since the line before."""
    steps, before = [], 0.0
    for step, value in run.splits.get("train", {}).get("skipped", []):
        if value is not None and value > before:
            steps.append(step)
        before = before if value is None else value
    return steps


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """At most ``most`` points: of each of equal parts the first, the last, the smallest, the largest and an undefined
    one."""
    if len(points) <= most:
        return list(points)
    parts = max(1, most // 5)
    chosen: set[int] = set()
    for part in range(parts):
        inside = range(part * len(points) // parts, (part + 1) * len(points) // parts)
        known = [(value, i) for i in inside if (value := points[i][1]) is not None]
        undefined = next((i for i in inside if points[i][1] is None), None)
        chosen |= {inside[0], inside[-1]} | ({min(known)[1], max(known)[1]} if known else set())
        chosen |= set() if undefined is None else {undefined}
    return [points[i] for i in sorted(chosen)]


def charts(runs: Sequence[Run]) -> tuple[list[Chart], str]:
    """The charts, and a sentence where they do not show every point."""
    groups = curves_of(runs)
    count = sum(map(len, groups.values())) or 1
    most = max(LEAST, min(MOST, POINTS // count))
    skipped = [(run.name, step) for run in runs for step in skipped_steps(run)]
    steps = [step for curves in groups.values() for curve in curves for step, _ in curve.points]
    ends = (min(steps), max(steps)) if steps else (0, 0)
    drawn = [_chart(name, curves, runs, most, skipped, ends) for name, curves in groups.items()]
    longest = max((len(curve.points) for curves in groups.values() for curve in curves), default=0)
    note = f"Curves show up to {most} of their {longest:,} points, with the extremes of each stretch."
    return drawn, note if longest > most else ""


def _chart(
    name: str,
    curves: list[Curve],
    runs: Sequence[Run],
    most: int,
    skipped: list[tuple[str, int]],
    ends: tuple[int, int],
) -> Chart:
    """The chart of a metric; ``ends``: the first and the last step, the same in all charts."""
    several, splits = len(runs) > 1, sorted({curve.split for curve in curves})
    rows = [
        {"series": curve.run if several else curve.split, "split": curve.split, "step": step, "value": value}
        | {"dot": curve.split != "train" or len(curve.points) < 3}
        for curve in curves
        for step, value in thinned(curve.points, most)
    ]
    names = [run.name for run in runs] if several else ["train", "validation"]
    color: dict[str, Any] = {"field": "series", "type": "nominal", "scale": series_scale(names)}
    color["legend"] = legend() if several or len(splits) > 1 else None
    layers = [_line(split) for split in splits]
    layers[0]["params"] = [{"name": "chosen", "select": {"type": "point", "fields": ["series"]}, "bind": "legend"}]
    if any(row["dot"] for row in rows):
        dots = {"transform": [{"filter": {"field": "dot", "equal": True}}], "encoding": {"opacity": _IF_CHOSEN}}
        layers.append({"mark": {"type": "point", "filled": True, "size": 26}, **dots})
    layers.append(_pointed_at(title(name), several))
    if skipped and name in ("loss", "gradient_norm"):
        marks = [{"series": run if several else "train", "step": step} for run, step in skipped]
        rule = {"type": "rule", "strokeDash": [2, 2], "tooltip": True}
        layers.append({"data": {"values": marks}, "mark": rule, "encoding": {"y": None}})
    scale = {"nice": False} | ({"domain": list(ends)} if ends[0] < ends[1] else {})
    x = {"field": "step", "type": "quantitative", "axis": {"format": ".6~s", "tickMinStep": 1}, "scale": scale}
    # Digits are named, for Vega counts too few of them itself where the top is no power of ten: 0.12 was "0.1".
    axis = {"format": ".6~s" if name == "tokens_per_second" else ".6~g"}
    y = {"field": "value", "type": "quantitative", "scale": {"zero": False}, "axis": axis}
    spec = {"data": {"values": rows}, "encoding": {"x": x, "y": y, "color": color}, "layer": layers, "height": 190}
    return Chart(title(name), spec, _note(name, curves, skipped))


_IF_CHOSEN = {"condition": {"param": "chosen", "value": 1}, "value": 0.12}


def _line(split: str) -> dict[str, Any]:
    """The lines of a split: whole ones of the training part, dashed ones of others."""
    mark = {"type": "line", "strokeWidth": 1.75} | ({} if split == "train" else {"strokeDash": [5, 3]})
    chosen = [{"filter": {"field": "split", "equal": split}}]
    return {"transform": chosen, "mark": mark, "encoding": {"opacity": _IF_CHOSEN}}


def _pointed_at(measure: str, several: bool) -> dict[str, Any]:
    """The point that is nearest to the pointer, and what it says."""
    tooltip: list[dict[str, Any]] = [
        {"field": "series", "type": "nominal", "title": "run" if several else "part"},
        {"field": "step", "type": "quantitative", "format": ","},
        {"field": "value", "type": "quantitative", "title": measure, "format": ".5~g"},
    ]
    if several:
        tooltip.insert(1, {"field": "split", "type": "nominal", "title": "part"})
    near = {"name": "near", "select": {"type": "point", "nearest": True, "on": "pointerover", "clear": "pointerout"}}
    opacity = {"condition": {"param": "near", "value": 1, "empty": False}, "value": 0}
    mark = {"type": "point", "filled": True, "size": 70}
    return {"mark": mark, "params": [near], "encoding": {"opacity": opacity, "tooltip": tooltip}}


def _note(name: str, curves: Sequence[Curve], skipped: Sequence[tuple[str, int]]) -> str:
    """What the title does not say."""
    other = sorted({title(curve.metric) for curve in curves if curve.metric != name})
    sentences = [f"Validation: {', '.join(other)}."] if other else []
    if skipped and name in ("loss", "gradient_norm"):
        sentences.append("Dotted lines: steps were skipped, for loss or gradient was not finite.")
    return " ".join(sentences)
