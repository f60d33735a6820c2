"""A list of passages on the page, with a filter and an order; its style is passages.css, its script passages.js."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert.reports.html import Html, escaped, joined, paragraph, tag
from bert.reports.runs import Run

SIZE = 400_000  # bytes of passages on a page
ITEMS = 150


@dataclasses.dataclass(frozen=True)
class Passage:
    """What stands above a passage, the passage, and what stands below it; ``ranks``: measure -> its value."""

    heading: Html
    body: Html
    below: Html
    ranks: Mapping[str, float | None]


def browser(
    run: Run, ranked: Iterator[Passage], measures: Mapping[str, str], unit: str, key: Any = "", **attributes: Any
) -> Html:
    """The list, as long as it fits the page.

    Args:
      ranked: the passages, the most important ones first.
      measures: of `Passage.ranks` -> what people call it; the first one orders the list.
      key: how to read the passages.
    """
    items, size = list[tuple[Passage, Html]](), 0
    for passage in itertools.islice(ranked, ITEMS):
        item = _item(passage, measures)
        size += len(item.encode())
        if items and size > SIZE:
            break
        items.append((passage, item))
    if not items:
        return Html("")
    first = next(iter(measures))
    items.sort(key=lambda pair: -_rank(pair[0], first))
    options = [tag("option", words, value=name) for name, words in measures.items()]
    count = _counted(len(items), run, unit)
    controls = [
        tag("label", "Containing ", tag("input", type="search", autocomplete="off")),
        tag("label", "Order ", tag("select", *options, autocomplete="off")),
    ]
    return tag(
        "div",
        tag("div", *controls, class_="controls"),
        paragraph(tag("output", count, data_of=count), class_="soft"),
        tag("div", key, class_="key") if key else "",
        *(item for _, item in items),
        class_="passages",
        **attributes,
    )


def interleaved(rows: Sequence[dict[str, Any]], *orders: Sequence[float | None]) -> Iterator[dict[str, Any]]:
    """The rows, each once: the one with the largest value of the first measure, of the second, and so on."""
    ranked = [sorted(range(len(rows)), key=lambda i: -_number(values[i])) for values in orders]
    chosen = dict.fromkeys(itertools.chain.from_iterable(zip(*ranked, strict=True)))
    return (rows[i] for i in chosen)


def _counted(count: int, run: Run, unit: str) -> str:
    scored = run.evaluation.get("rows_scored", count)
    return f"All {count:,} {unit}." if count == scored else f"{count:,} of {scored:,} {unit}, the most telling ones."


def _item(passage: Passage, measures: Mapping[str, str]) -> Html:
    ranks = {f"data_{name}": _rank(passage, name) for name in measures}
    heading = tag("div", passage.heading, class_="heading")
    return tag("article", heading, passage.body, tag("div", passage.below, class_="below"), class_="passage", **ranks)


def _rank(passage: Passage, name: str) -> float:
    return _number(passage.ranks.get(name))


def _number(value: float | None) -> float:
    return -1.0 if value is None else value


def shown(part: str | None) -> Html:
    """A part of a text; None: one that is left out."""
    if part is None:
        return tag("span", " … ", class_="cut", title="left out")
    return escaped(part.replace("\r\n", "\n").replace("\r", "\n"))


def span_classes(marks: str) -> str:
    """The classes of a part of spans: small letters for each, capitals for the first."""
    return " ".join(mark.lower() + (f" {mark}" if mark.isupper() else "") for mark in marks)


def answers(words: str, texts: Sequence[tuple[str, str]]) -> Html:
    """A line such as "predicted: “Paris” 0.90, “Rome” 0.40", of texts and what is said of each."""
    each = [joined([tag("q", shown(text)), f" {note}" if note else ""]) for text, note in texts]
    listed = joined(words for i, text in enumerate(each) for words in (", " if i else "", text))
    return paragraph(tag("span", f"{words}: ", class_="soft"), listed if texts else "nothing")
