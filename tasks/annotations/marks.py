"""Turns the spans that a tool wrote into labelled spans: finds the unit of the offsets, and drops what is no span.

The unit is that of the whole file: the one in which most spans have the text that the tool wrote with them, or, where
it wrote none, begin and end with words. Of equal ones, it is the tool's usual one. A span whose own text is not at its
offsets in that unit, but in another (a tool was updated between two annotations), is read in the other. A span that
fits in none is dropped; so are spans outside of the text, empty and blank ones, and those without a label. All are
counted.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bert import surrogates, words
from tasks.annotations.annotated_texts import AnnotatedText, LabelledSpan, Origin
from tasks.annotations.offsets import NAMES, Offsets, differ, offsets_of
from tasks.files.annotators import SINGLE
from tasks.files.reports import Tally

OUTSIDE = "spans outside of the text, dropped"
_GAPS = re.compile(r"\s+|\\n")  # Label Studio writes line ends as \n in a span's text, and blanks as one


class Mark(NamedTuple):
    """A span as a tool wrote it.

    start, end: in the file's unit; of any type, for nothing was checked.
    label: None or blank where there is none. text: that the tool wrote with the span; None: it wrote none.
    parts: of how many pieces it consists, start and end being those of the whole.
    """

    start: Any
    end: Any
    label: Any
    text: str | None = None
    parts: int = 1


def mark_of(start: Any, end: Any, label: Any, text: Any) -> Mark:
    """A mark; a text that is none does not count."""
    return Mark(start, end, label, text if isinstance(text, str) else None)


class MarkedText(NamedTuple):
    """An `AnnotatedText` with the marks of its annotators in place of spans, and the row that the tool wrote.

    An annotator whom the file does not name is "".
    """

    id: str
    text: str
    marks: Sequence[tuple[str, Sequence[Mark]]]
    place: str
    document: str
    row: Mapping[str, Any]


def annotated(
    marked: Sequence[MarkedText], tool: str, units: Sequence[str], setting: str, path: str, tally: Tally
) -> tuple[list[AnnotatedText], list[str]]:
    """(the texts with their spans in code points, a note on the unit where it matters).

    Args:
      units: of the tool's versions, the usual one first.
      setting: a unit, or "auto".
    """
    clean = []
    for row in marked:
        if surrogates.contains(row.text):
            tally.add("texts with unpaired surrogates, which are now U+FFFD", row.place)
        clean.append(row._replace(text=surrogates.replace(row.text)))
    unit, notes = (setting, []) if setting != "auto" else _unit_of(clean, units, path)
    order = list(dict.fromkeys((unit, *(units if setting == "auto" else ()))))
    return [_with_spans(row, order, Origin(tool, unit, row.row), tally) for row in clean], notes


def fault_of(start: int, end: int, text: str) -> str | None:
    """Why a span of a text cannot be used, as reports count it; None where it can."""
    faults = {
        "spans that end before they start, dropped": end < start,
        OUTSIDE: start < 0 or end > len(text),
        "empty spans, dropped": start == end,
        "spans of blanks alone, dropped": not text[start:end].strip(),
    }
    return next((name for name, holds in faults.items() if holds), None)


def _unit_of(marked: Sequence[MarkedText], units: Sequence[str], path: str) -> tuple[str, list[str]]:
    """The unit in which most spans fit, of those that lie elsewhere in another unit; a note where that is not sure, or
    not the usual unit."""
    fitting, first, have_texts = dict.fromkeys(units, 0), "", True
    spans_of: dict[str, list[tuple[int, int] | None]] = {unit: [] for unit in units}
    for row in marked:
        if not any(differ(row.text, unit) for unit in units):
            continue
        borders, offsets = _borders(row.text), [offsets_of(row.text, unit) for unit in units]
        for mark in (mark for _, marks in row.marks for mark in marks):
            spans = [_span(mark, counted) for counted in offsets]
            if len(set(spans)) > 1:
                first, have_texts = first or row.place, have_texts and mark.text is not None
                for unit, span in zip(units, spans, strict=True):
                    spans_of[unit].append(span)
                    fitting[unit] += span is not None and _fits(mark, row.text, span, borders)
    unit = max(units, key=fitting.__getitem__)
    count = len(spans_of[unit])
    if not count or (unit == units[0] and have_texts and fitting[unit] == count):
        return unit, []
    others = [other for other in units if spans_of[other] != spans_of[unit]]
    counts = ", ".join(f"{fitting[name]:,} fit {NAMES[name]}" for name in (unit, *others))
    note = f"{path}: offsets count {NAMES[unit]} (of {count:,} spans that tell, {counts}; first {first})"
    if any(fitting[other] == fitting[unit] for other in others):
        note += "; set offsets if that is wrong"
    return unit, [note]


def _fits(mark: Mark, text: str, span: tuple[int, int], borders: tuple[set[int], set[int]]) -> bool:
    if mark.text is not None:
        return _has_its_text(mark, text, span)
    return span[0] in borders[0] and span[1] in borders[1]


def _borders(text: str) -> tuple[set[int], set[int]]:
    places = words.places_of_words(text)
    return {start for start, _ in places}, {end for _, end in places}


def _span(mark: Mark, offsets: Offsets) -> tuple[int, int] | None:
    return offsets.span(mark.start, mark.end) if type(mark.start) is type(mark.end) is int else None


def _has_its_text(mark: Mark, text: str, span: tuple[int, int]) -> bool:
    return mark.text is None or _GAPS.sub("", text[slice(*span)]) == _GAPS.sub("", surrogates.replace(mark.text))


def _with_spans(row: MarkedText, units: Sequence[str], origin: Origin, tally: Tally) -> AnnotatedText:
    offsets = [offsets_of(row.text, unit) for unit in units] if row.marks else []
    annotations, lost = [], []
    for named, marks in row.marks:
        annotator = named or SINGLE
        place = f"{row.place}: annotator {annotator}" if len(row.marks) > 1 else row.place
        spans = tuple(span for mark in marks for span in _spans_of(mark, row.text, offsets, place, tally))
        if spans or not marks:
            annotations.append((annotator, spans))
            lost += [(annotator, label) for label in {*map(_label, marks)} - {span.label for span in spans}]
        else:
            tally.add("annotations of which no span can be used, left out", place)
    return AnnotatedText(row.id, row.text, tuple(annotations), row.place, row.document, origin, tuple(sorted(lost)))


def _label(mark: Mark) -> str:
    return "" if mark.label is None else " ".join(surrogates.replace(str(mark.label)).split())


def _spans_of(mark: Mark, text: str, offsets: Sequence[Offsets], place: str, tally: Tally) -> Iterator[LabelledSpan]:
    """The span of a mark; none, counted, where it is none."""
    label = _label(mark)
    if not label:
        tally.add("spans without a label, dropped", place)
        return
    if type(mark.start) is not int or type(mark.end) is not int:
        tally.add("spans whose offsets are no whole numbers, dropped", place)
        return
    tried = offsets if mark.text is not None else offsets[:1]
    spans = [span for span in (_span(mark, unit) for unit in tried) if span is not None]
    right = next((span for span in spans if _has_its_text(mark, text, span)), None)
    if right is None and spans:
        what = "discontinuous spans" if mark.parts > 1 else "spans whose text is not that at their offsets"
        tally.add(f"{what}, dropped", place)
        return
    fault = OUTSIDE if right is None else fault_of(*right, text)
    if right is None or fault:
        tally.add(fault or OUTSIDE, place)
        return
    yield LabelledSpan(*right, label)
