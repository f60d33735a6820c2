"""A chart on the page: a description for Vega-Lite, and the element that it is drawn into. Colours are the style's."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from bert.reports.html import Html, tag

# Colours of Okabe and Ito (2008), which people with any colour vision tell apart; page.css has their values.
COLORS = [f"var(--c{i})" for i in range(1, 8)]
DASHES = [[1, 0], [6, 2], [2, 2], [8, 2, 2, 2]]
INK, SOFT, LINE = "var(--ink)", "var(--soft)", "var(--line)"
CONFIG: dict[str, Any] = {
    "background": None,
    "font": "system-ui, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": SOFT, "titleColor": SOFT, "gridColor": LINE, "domainColor": LINE, "tickColor": LINE,
        "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "tickCount": 5, "labelFlush": True,
    },
    "axisY": {"title": None, "domain": False, "ticks": False, "labelPadding": 6},
    "axisX": {"grid": False},
    "legend": {"labelColor": INK, "titleColor": SOFT, "labelFontSize": 12, "labelLimit": 130, "symbolStrokeWidth": 2.5},
    "range": {"category": COLORS},
    "text": {"color": INK},
    "rule": {"color": SOFT},
    "mark": {"color": COLORS[0]},
}  # fmt: skip

# A layer that shows where both axes are equal.
DIAGONAL: dict[str, Any] = {
    "data": {"values": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]},
    "mark": {"type": "line", "color": SOFT, "strokeDash": [3, 3], "strokeWidth": 1},
    "encoding": {"color": None},
}


@dataclasses.dataclass(frozen=True)
class Chart:
    """A title, what Vega-Lite draws below it, and a line that says how to read it."""

    title: str
    spec: dict[str, Any]
    note: str = ""
    wide: bool = False


def series_scale(names: Sequence[str]) -> dict[str, Any]:
    """The colours of names, the same in each chart."""
    return {"domain": list(names), "range": [COLORS[i % len(COLORS)] for i in range(len(names))]}


def series_dash(names: Sequence[str]) -> dict[str, Any]:
    """The dashes of lines of these names: whole ones, others where the colours begin again."""
    dashes = [DASHES[i // len(COLORS) % len(DASHES)] for i in range(len(names))]
    return {"type": "nominal", "scale": {"domain": list(names), "range": dashes}, "legend": legend()}


def legend() -> dict[str, Any]:
    return {"orient": "top", "title": None, "symbolType": "stroke", "columns": 2}


class Sheet:
    """The charts of a page, in the order of their elements."""

    def __init__(self) -> None:
        self.specs: list[dict[str, Any]] = []

    def figure(self, chart: Chart) -> Html:
        """The element that a script draws the chart into."""
        number = len(self.specs)
        described = {"description": f"{chart.title}. {chart.note}".strip(), "width": "container"}
        self.specs.append({"autosize": {"type": "fit-x", "contains": "padding"}, **described, **chart.spec})
        caption = tag("figcaption", tag("strong", chart.title), " ", tag("span", chart.note, class_="soft"))
        plot = tag("div", class_="plot", data_chart=number)
        return tag("figure", caption, plot, class_="wide" if chart.wide else None)

    def grid(self, charts: Sequence[Chart]) -> Html:
        return tag("div", *map(self.figure, charts), class_="charts") if charts else Html("")
