"""Classification and regression: the confusion matrix, each class, ROC, precision over recall, calibration, residuals,
and the rows with the largest losses."""

import math
import pathlib
from collections.abc import Sequence
from typing import Any

from bert.reports.charts import COLORS, DIAGONAL, INK, Chart, Sheet, legend, series_dash, series_scale
from bert.reports.html import Html, clipped, fold, joined, number, paragraph, section, short, table, tag
from bert.reports.runs import Run

MATRIX = 12  # classes of a matrix that can be read
PAIRS, WORST = 20, 50  # shown
FEW = 500  # rows; with fewer, chance alone moves a bin's share from the line
_MEASURES = {
    "precision": "precision", "recall": "recall", "f1": "F1", "support": "rows", "predicted": "predicted",
    "roc_auc": "ROC area", "average_precision": "PR area",
}  # fmt: skip


def sections(run: Run, sheet: Sheet) -> list[Html]:
    values = run.evaluation
    return [
        section("Which classes are confused", *confusion(values.get("confusion"), sheet)),
        section("Each class", classes(values.get("classes") or {}, values.get("macro") or {})),
        section("Thresholds and calibration", sheet.grid(_curves(values.get("curves") or {}))),
        section("Numbers", sheet.grid(_numbers(run))),
        section("Rows with the largest losses", *worst_rows(run)),
    ]


def confusion(matrix: dict[str, Any] | None, sheet: Sheet, what: str = "class", unit: str = "rows") -> list[Html]:
    """The matrix as a chart and as a table, or its largest errors; ``what``: what the unit is put into."""
    if not matrix:
        return []
    labels, counts = matrix["labels"], matrix["counts"]
    of_class = [sum(row) for row in counts]
    cells = [
        {"truth": labels[i], "predicted": labels[j], "rows": count, "share": count / of_class[i] if of_class[i] else 0}
        for i, row in enumerate(counts)
        for j, count in enumerate(row)
    ]
    if len(labels) > MATRIX:
        return [_pairs(cells, len(labels), unit)]
    header = ["truth \\ predicted", *map(clipped, labels)]
    rows = [
        [clipped(labels[i]), *(number(n, f"{n:,} ({n / of_class[i]:.0%})" if of_class[i] else f"{n:,}") for n in row)]
        for i, row in enumerate(counts)
    ]
    caption = f"{unit.capitalize()} by true and predicted {what} (share of the true {what})"
    return [sheet.figure(_matrix(cells, labels, unit)), fold("As a table", table(caption, header, rows))]


def _matrix(cells: list[dict[str, Any]], labels: Sequence[str], unit: str) -> Chart:
    axis = {"labelLimit": 180, "labelAngle": 0, "grid": False, "domain": False, "ticks": False}
    x = {
        "field": "predicted",
        "type": "nominal",
        "sort": labels,
        "title": "predicted",
        "axis": {**axis, "orient": "top"},
    }
    y = {"field": "truth", "type": "nominal", "sort": labels, "title": "truth", "axis": axis}
    opacity = {
        "field": "share",
        "type": "quantitative",
        "legend": None,
        "scale": {"domain": [0, 1], "range": [0.04, 0.75]},
    }
    tooltip = [{"field": name, "type": "nominal"} for name in ("truth", "predicted", "rows")]
    tooltip.append({"field": "share", "type": "quantitative", "format": ".1%", "title": "share of the true class"})
    rect = {"mark": {"type": "rect", "color": COLORS[0]}, "encoding": {"opacity": opacity, "tooltip": tooltip}}
    text = {
        "mark": {"type": "text", "fontSize": 13, "color": INK},
        "encoding": {"text": {"field": "rows", "format": ","}},
    }
    height = 46 * len(labels)
    spec = {"data": {"values": cells}, "encoding": {"x": x, "y": y}, "layer": [rect, text], "height": height}
    note = f"Number of {unit}; the darker, the larger their share of the true class. Right answers are on the diagonal."
    return Chart("confusion matrix", spec, note, wide=True)


def _pairs(cells: list[dict[str, Any]], count: int, unit: str) -> Html:
    wrong = sorted((cell for cell in cells if cell["truth"] != cell["predicted"]), key=lambda cell: -cell["rows"])
    rows = [
        [
            *map(clipped, (cell["truth"], cell["predicted"])),
            number(cell["rows"]),
            number(cell["share"], f"{cell['share']:.1%}"),
        ]
        for cell in wrong[:PAIRS]
        if cell["rows"]
    ]
    caption = f"Of {count} classes the most confused pairs; evaluation.json has the whole matrix"
    return table(caption, ["truth", "predicted", unit, "share of the true class"], rows)


def classes(scores: dict[str, Any], macro: dict[str, Any], what: str = "class") -> Html:
    """The scores of each class, with their macro mean."""
    if not scores:
        return Html("")
    names = [name for name in _MEASURES if name in next(iter(scores.values()))]
    each = {**scores, **({"macro mean": macro} if macro else {})}
    rows = [
        [clipped(label), *(_measure(name, measures[name]["value"]) if name in measures else "" for name in names)]
        for label, measures in each.items()
    ]
    return table(f"Scores of each {what} against the rest", [what, *(_MEASURES[name] for name in names)], rows)


def _measure(name: str, value: float | None) -> Html:
    whole = name in ("support", "predicted") and value is not None
    return number(value, f"{value:,.0f}" if whole else "–" if value is None else None)


def _curves(curves: dict[str, Any]) -> list[Chart]:
    charts = []
    for key, name, x, y in (
        ("roc", "ROC", "false positive rate", "true positive rate"),
        ("precision_recall", "precision over recall", "recall", "precision"),
    ):
        if lines := curves.get(key):
            charts.append(_lines(name, x, y, lines, diagonal=key == "roc"))
    if calibration := curves.get("calibration"):
        charts.append(calibration_chart(calibration))
    return charts


def _lines(name: str, x: str, y: str, lines: dict[str, list[list[float]]], diagonal: bool) -> Chart:
    rows = [
        {"class": label, "x": point[0], "y": point[1], "order": i}
        for label, points in lines.items()
        for i, point in enumerate(points)
    ]
    color = {"field": "class", "type": "nominal", "scale": series_scale(list(lines)), "legend": legend()}
    dash = {"field": "class", **series_dash(list(lines))}
    encoding: dict[str, Any] = {"x": _unit(x, "x"), "y": _unit(y, "y"), "color": color}
    chosen = {"name": "chosen", "select": {"type": "point", "fields": ["class"]}, "bind": "legend"}
    opacity = {"condition": {"param": "chosen", "value": 1}, "value": 0.12}
    tooltip = [{"field": "class", "type": "nominal"}]
    tooltip += [{"field": f, "type": "quantitative", "title": t, "format": ".3f"} for f, t in (("x", x), ("y", y))]
    line = {
        "mark": {"type": "line", "strokeWidth": 1.75},
        "params": [chosen],
        "encoding": {"order": {"field": "order"}, "strokeDash": dash, "opacity": opacity, "tooltip": tooltip},
    }
    layers = [*([DIAGONAL] if diagonal else []), line]
    note = "Dashed: a guess." if diagonal else ""
    return Chart(name, {"data": {"values": rows}, "encoding": encoding, "layer": layers, "height": 260}, note)


def _unit(title: str, field: str) -> dict[str, Any]:
    """An axis from 0 to 1."""
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [0, 1]},
        "axis": {"title": title},
    }


def calibration_chart(calibration: dict[str, Any]) -> Chart:
    rows = [
        {"x": row["probability"], "y": row["right"], "rows": row["count"]}
        | dict(zip(("low", "high"), wilson(row["right"], row["count"]), strict=True))
        for row in calibration["bins"]
    ]
    tooltip = [
        {"field": "x", "type": "quantitative", "title": "mean probability", "format": ".3f"},
        {"field": "y", "type": "quantitative", "title": "share right", "format": ".3f"},
        *({"field": end, "type": "quantitative", "format": ".3f"} for end in ("low", "high")),
        {"field": "rows", "type": "quantitative", "format": ","},
    ]
    between = {"y": {"field": "low", "type": "quantitative"}, "y2": {"field": "high"}}
    bars = {"mark": {"type": "rule", "color": COLORS[0], "opacity": 0.6}, "encoding": between}
    size = {"field": "rows", "type": "quantitative", "legend": None, "scale": {"range": [30, 400], "zero": True}}
    line = {"mark": {"type": "line", "strokeWidth": 1, "color": COLORS[0]}}
    dots = {"mark": {"type": "point", "filled": True, "color": COLORS[0], "opacity": 0.85}}
    layers = [DIAGONAL, bars, line, dots | {"encoding": {"size": size, "tooltip": tooltip}}]
    encoding = {"x": _unit("probability", "x"), "y": _unit("share that is right", "y")}
    few = " It is too high where rows are few." if sum(row["rows"] for row in rows) < FEW else ""
    note = (
        f"Expected calibration error {short(calibration['error'])}.{few} Below the dashed line the model is too sure."
    )
    return Chart("calibration", {"data": {"values": rows}, "encoding": encoding, "layer": layers, "height": 260}, note)


def wilson(share: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a share of ``count`` rows (Wilson 1927), which holds for few rows too."""
    z = 1.959964
    middle, scale = share + z * z / (2 * count), 1 + z * z / count
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def _numbers(run: Run) -> list[Chart]:
    """Predicted numbers against true ones, and their errors."""
    pairs = [
        {"truth": row["truth"], "predicted": row["predicted"]["value"], "place": str(row.get("id", row["place"]))}
        for row in run.rows
        if isinstance(row.get("predicted"), dict) and "value" in row["predicted"]
    ]
    residuals = run.evaluation.get("residuals")
    if not pairs:
        return []
    ends = [min(min(p["truth"], p["predicted"]) for p in pairs), max(max(p["truth"], p["predicted"]) for p in pairs)]
    axis = {"type": "quantitative", "scale": {"zero": False}}
    encoding = {"x": {"field": "truth", **axis}, "y": {"field": "predicted", **axis, "axis": {"title": "predicted"}}}
    tooltip = [{"field": name, "type": "nominal"} for name in ("place", "truth", "predicted")]
    dots = {"mark": {"type": "point", "filled": True, "size": 22, "opacity": 0.5}, "encoding": {"tooltip": tooltip}}
    diagonal = DIAGONAL | {"data": {"values": [{"truth": end, "predicted": end} for end in ends]}}
    spec = {"data": {"values": pairs}, "encoding": encoding, "layer": [diagonal, dots], "height": 260}
    charts = [Chart("predicted against true numbers", spec, f"{_kept(run)} Dashed: equal.".strip())]
    if residuals:
        edges = residuals["edges"]
        bars = [{"from": a, "to": b, "rows": n} for a, b, n in zip(edges, edges[1:], residuals["counts"], strict=False)]
        x = {"field": "from", "bin": "binned", "type": "quantitative", "axis": {"title": "predicted - true"}}
        y = {"field": "rows", "type": "quantitative", "axis": {"title": "rows"}}
        spec = {"data": {"values": bars}, "mark": {"type": "bar", "tooltip": True}, "height": 260}
        charts.append(Chart("residuals", spec | {"encoding": {"x": x, "x2": {"field": "to"}, "y": y}}, "All rows."))
    return charts


def _kept(run: Run) -> str:
    """Which rows are in the file, where not all are."""
    scored, count = run.evaluation.get("rows_scored"), run.evaluation.get("rows_kept")
    return f"{count:,} of {scored:,} rows: the worst, and others at equal distances." if scored != count else ""


def worst_rows(run: Run) -> list[Html]:
    rows = sorted(run.rows, key=lambda row: -(float("inf") if row["loss"] is None else row["loss"]))[:WORST]
    if not rows:
        return []
    lines = []
    for row in rows:
        place, texts = pathlib.PurePath(row["place"]).name, joined(tag("p", part) for part in row["text"])
        answers = _answer(row["truth"]), _predicted(row["predicted"])
        lines.append([place, tag("td", row.get("id", ""), class_="id"), number(row["loss"]), *answers, texts])
    header = ["place", "id", "loss", "truth", "predicted", "text"]
    scored = run.evaluation.get("rows_scored", len(run.rows))
    caption = f"{len(rows)} of {scored:,} rows, the largest loss first"
    return [table(caption, header, lines), paragraph("Wrong labels in the data often stand on top.", class_="soft")]


def _answer(truth: Any) -> str:
    if isinstance(truth, dict):  # shares
        return ", ".join(f"{clipped(name)} {share:.2f}" for name, share in truth.items())
    if isinstance(truth, float):
        return short(truth)
    return ", ".join(map(clipped, truth)) or "none" if isinstance(truth, list) else clipped(str(truth))


def _predicted(answer: dict[str, Any]) -> str:
    if "value" in answer:
        return short(answer["value"])
    shares, names = answer.get("probabilities", {}), answer.get("labels", [answer.get("label")])
    words = (clipped(str(name)) + (f" {shares[name]:.2f}" if name in shares else "") for name in names)
    return ", ".join(words) or "none"
