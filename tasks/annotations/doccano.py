"""doccano: an object a line with a text and its spans; of several annotators a file each, named after them.

  {"id": 1, "text": "Anna sat.", "label": [[0, 4, "PER"]]}
  {"id": 1, "text": "Anna sat.", "entities": [{"id": 7, "label": "PER", "start_offset": 0, "end_offset": 4}],
   "relations": [...]}

Versions 1.3 to 1.6 call the text data, and put texts that nobody annotated in unknown.jsonl. Older ones call the spans
labels, or annotations, which name a user each. Relations are not read.

Its page counts UTF-16 units, and the server stores what the page sends; versions of 2019 to 2021 counted code points.
Projects that count grapheme clusters are read right only where these are single characters.
Source: doccano/doccano, backend/data_export and data_import; pull request 108, issues 2290 and 2484.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from bert.files import json_text
from tasks.annotations.annotated_texts import AnnotationSettings, PredictedText
from tasks.annotations.marks import Mark, MarkedText, mark_of
from tasks.annotations.rows import read_rows, text_of
from tasks.annotations.writing import Writing
from tasks.files.cells import TableCell
from tasks.files.records import cell_of, value_of
from tasks.files.reports import Tally

UNITS = ("utf16", "code_points")
_KEYS = ("label", "labels", "entities", "spans", "annotations")
_BOUNDS = (("start_offset", "end_offset"), ("start", "end"))


def is_row(row: Mapping[str, Any]) -> bool:
    """A text; where its words stand beside it, they are what is tagged."""
    lists = [row[name] for name in ("tokens", "words") if isinstance(row.get(name), list)]
    has_words = any(isinstance(word, str) for words in lists for word in words)
    return isinstance(row.get(_text_field(row)), str) and not has_words


def _text_field(row: Mapping[str, Any]) -> str:
    return "data" if isinstance(row.get("data"), str) and "text" not in row else "text"


def read(path: str, settings: AnnotationSettings, tally: Tally) -> list[MarkedText]:
    """The texts of a file."""
    table, nothing = read_rows(path, settings.encoding), settings.no_spans != "unlabelled"
    rows = []
    key, has_spans = _key(table.rows)
    for row, place in zip(table.rows, table.places, strict=True):
        text = text_of(cell_of(row, place, settings.text or _text_field(row)))
        if relations := row.get("relations"):
            tally.add("relations, which are not read", place, len(relations) if isinstance(relations, list) else 1)
        marks: Sequence[tuple[str, Sequence[Mark]]] = ()
        if row.get(key) and not has_spans:
            tally.add(f"texts whose {key} is no list of spans, read as not annotated", place)
        elif row.get(key) is not None:
            marks = _marks(TableCell(f"{place}: {key}", row[key]))
            if not row[key]:
                what = "nothing in them" if nothing else "not annotated"
                tally.add(f"texts without a span, read as {what} (no_spans)", place)
                marks = marks if nothing else ()
        identity = value_of(row, "id")
        identity = "" if identity is None else str(identity)
        rows.append(MarkedText(identity, text, marks, place, place, row))
    return rows


def _key(rows: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """(the field with the spans: the one in which most rows have some, of equal ones the first that is there; whether
    any has)."""
    counts = {key: sum(_has_spans(row.get(key)) for row in rows) for key in _KEYS}
    there = [key for key in _KEYS if any(key in row for row in rows)] or list(_KEYS)
    key = max(there, key=counts.__getitem__)
    return key, counts[key] > 0


def _has_spans(value: Any) -> bool:
    return isinstance(value, list) and any(_is_span(item) for item in value)


def _is_span(item: Any) -> bool:
    if isinstance(item, Mapping):
        return any(start in item and end in item for start, end in _BOUNDS)
    return isinstance(item, list) and len(item) >= 3


def _marks(cell: TableCell) -> list[tuple[str, list[Mark]]]:
    if not isinstance(cell.value, list):
        raise cell.error("is no list; write the spans as [[start, end, label], ...]")
    by_user: dict[str, list[Mark]] = {} if cell.value else {"": []}
    for item in cell.value:
        if not _is_span(item):
            raise cell.part(item).error("is no span; write [start, end, label]")
        if isinstance(item, list):
            by_user.setdefault("", []).append(Mark(*item[:3]))
            continue
        start, end = next((item[start], item[end]) for start, end in _BOUNDS if start in item and end in item)
        mark = mark_of(start, end, item.get("label"), item.get("text"))
        by_user.setdefault(str(item.get("user") or ""), []).append(mark)
    return list(by_user.items())


def write(texts: Sequence[PredictedText], output: pathlib.Path, how: Writing) -> dict[pathlib.Path, str]:
    """What is imported as JSONL with the columns text and label. Other fields of the input stay."""
    rows = []
    for text in texts:
        row = text.row_of("doccano")
        left_out = (*_KEYS, "relations", _text_field(row))
        others = {name: value for name, value in row.items() if name not in left_out}
        label = [[*how.bounds(text, span), span.label] for span in text.spans]
        rows.append(({"id": text.id} if text.id else {}) | others | {"text": text.text, "label": label})
    return {output: "".join(map(json_text, rows))}
