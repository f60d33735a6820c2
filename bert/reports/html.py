"""HTML that cannot be broken by the texts in it: plain strings are escaped wherever they are put into a tag."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert.errors import printable


class Html(str):
    """Markup; every other string is text."""


def escaped(content: Any) -> Html:
    """Markup as it is, anything else as text in which nothing is markup; control characters are spelled out."""
    return content if isinstance(content, Html) else Html(html.escape(printable(str(content), lines=True)))


def joined(parts: Iterable[Any]) -> Html:
    return Html("".join(map(escaped, parts)))


def tag(name: str, *content: Any, **attributes: Any) -> Html:
    """An element. ``class_`` and ``data_x`` stand for class and data-x; True is an attribute without a value, None
    and False are none."""
    words = [name]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(key)
        elif value is not None and value is not False:
            words.append(f'{key}="{escaped(value)}"')
    inner = joined(content)
    return Html(f"<{' '.join(words)}>{inner}</{name}>")


def paragraph(*content: Any, **attributes: Any) -> Html:
    return tag("p", *content, **attributes)


def fold(summary: Any, *content: Any, open: bool = False, **attributes: Any) -> Html:
    """Content that a click shows and hides."""
    return tag("details", tag("summary", summary), *content, open=open, **attributes)


def section(heading: str, *content: Any, **attributes: Any) -> Html:
    return tag("section", tag("h2", heading), *content, **attributes) if any(content) else Html("")


def table(caption: str, header: Sequence[Any], rows: Iterable[Sequence[Any]], **attributes: Any) -> Html:
    """A table whose first column names its rows. Cells are text, or cells made by `cell`, `number`."""
    lines = [[tag("th", row[0], scope="row"), *map(cell, row[1:])] for row in rows]
    numeric = [any(line[i].startswith('<td class="number"') for line in lines) for i in range(len(header))]
    columns = zip(header, numeric, strict=True)
    head = tag("tr", *(tag("th", name, scope="col", class_="number" if right else None) for name, right in columns))
    body = (tag("tr", *line) for line in lines)
    parts = tag("caption", caption), tag("thead", head), tag("tbody", *body)
    return tag(
        "div", tag("table", *parts, **attributes), class_="scroll", tabindex=0, role="region", aria_label=caption
    )


def cell(content: Any, **attributes: Any) -> Html:
    """A cell, unless the content is one already."""
    is_cell = isinstance(content, Html) and content.startswith("<td")
    return content if is_cell else tag("td", content, **attributes)


def number(value: float | None, shown: Any = None, **attributes: Any) -> Html:
    """A cell with a number, rounded; the attribute data-value has all its digits."""
    content = short(value) if shown is None else shown
    return tag("td", content, class_="number", data_value="" if value is None else repr(value), **attributes)


def interval(score: Mapping[str, Any]) -> str:
    """The interval of a score, "0.7000 to 0.9000"; empty where it has none."""
    low, high = score.get("low"), score.get("high")
    return "" if low is None or high is None else f"{short(low)} to {short(high)}"


def clipped(name: str, most: int = 80) -> str:
    """A name of a class as headings and tables show it: long ones lose their middle."""
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"


def short(value: float | None) -> str:
    """A number as people read it: whole ones with commas, four decimals, or three digits where it is tiny."""
    if value is None:
        return "undefined"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) >= 1000):
        return f"{value:,.0f}"
    if value and abs(value) < 0.001:
        return f"{value:.3g}"
    return f"{value:,.4f}" if abs(value) < 100 else f"{value:,.1f}"
