"""Prodigy: an object a line with a text, the spans and the answer, one for each text and annotator.

  {"text": "Anna sat.", "_input_hash": 1, "spans": [{"start": 0, "end": 4, "label": "PER", "token_start": 0,
   "token_end": 0}], "tokens": [...], "answer": "accept", "_annotator_id": "ner-anna"}

Lines with the same _input_hash are annotations of one text; of those of one annotator the last counts. Only accepted
lines are annotations. Answers to questions on a single span (the views ner and spans) say nothing about the other
words, and those of views without spans (classification) nothing about any: both are left out, and counted. A line
without an answer is accepted, as Prodigy's db-in takes it, if it has spans. Offsets are code points.

Source: prodi.gy/docs/api-interfaces, "ner_manual"; its forum, "Difference between input hash and task hash".
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from bert.files import json_text
from tasks.annotations.annotated_texts import AnnotationSettings, LabelledSpan, PredictedText
from tasks.annotations.marks import MarkedText, mark_of
from tasks.annotations.rows import read_rows, text_of
from tasks.annotations.writing import Writing
from tasks.files.records import cell_of, value_of
from tasks.files.reports import Tally

UNITS = ("code_points",)
_MARKS = ("answer", "_input_hash", "_task_hash", "_view_id", "_session_id", "_annotator_id")
_ANSWERED = ("answer", "_task_hash", "_view_id", "_session_id", "_annotator_id", "_timestamp", "_is_binary", "versions")
_ONE_SPAN = ("ner", "spans")
_OF_SPANS = ("", "ner_manual", "spans_manual", "relations", "review", "blocks", "llm_io", *_ONE_SPAN)


def is_row(row: Mapping[str, Any]) -> bool:
    tokens = row.get("tokens")
    has_tokens = isinstance(tokens, list) and any(isinstance(token, Mapping) for token in tokens)
    return isinstance(row.get("text"), str) and (has_tokens or any(name in row for name in _MARKS))


def read(path: str, settings: AnnotationSettings, tally: Tally) -> list[MarkedText]:
    """The texts of a file, each with its annotators."""
    table = read_rows(path, settings.encoding)
    rows: dict[Any, MarkedText] = {}
    for row, place in zip(table.rows, table.places, strict=True):
        text = text_of(cell_of(row, place, settings.text or "text"))
        key = (str(row["_input_hash"]), text) if row.get("_input_hash") is not None else place
        identity = next((str(row[name]) for name in ("id", "_input_hash") if row.get(name) is not None), "")
        identity = str(value_of(row, "meta.id") or identity)
        first = rows.setdefault(key, MarkedText(identity, text, (), place, place, row))
        if not _is_annotation(row, place, tally):
            continue
        marks = dict(first.marks)
        annotator = str(row.get("_annotator_id") or row.get("_session_id") or "")
        if annotator in marks:
            tally.add("annotations of a text that their annotator annotated again, left out", place)
        spans = cell_of(row, place, "spans")
        if not isinstance(spans.value or [], list) or not all(isinstance(span, Mapping) for span in spans.value or ()):
            raise spans.error('is no list of spans; write objects like {"start": 0, "end": 4, "label": "PER"}')
        marks[annotator] = [mark_of(*map(span.get, ("start", "end", "label", "text"))) for span in spans.value or ()]
        rows[key] = first._replace(marks=tuple(marks.items()))
    return list(rows.values())


def _is_annotation(row: Mapping[str, Any], place: str, tally: Tally) -> bool:
    """Whether a line says which spans its text has; else it is counted."""
    answer, view = row.get("answer"), row.get("_view_id") or ""
    if answer is None:
        return bool(row.get("spans"))
    if answer != "accept":
        tally.add(f"answers {answer}, left out", place)
    elif view not in _OF_SPANS:
        tally.add(f"answers of the view {view}, which has no spans, left out", place)
    elif row.get("_is_binary", view in _ONE_SPAN and len(row.get("spans") or ()) == 1):
        tally.add("answers on a single span, which say nothing about the other words, left out", place)
    else:
        return True
    return False


def write(texts: Sequence[PredictedText], output: pathlib.Path, how: Writing) -> dict[pathlib.Path, str]:
    """Tasks without an answer, with the tokens that ner.manual shows; other fields of the input stay."""
    rows = []
    for text in texts:
        row = text.row_of("prodigy")
        others = {name: value for name, value in row.items() if name not in _ANSWERED}
        if not row and text.id:
            others["meta"] = {"id": text.id}
        tokens_before: Any = row.get("tokens")
        tokens: Sequence[Any] = tokens_before if _has_borders(tokens_before, text.spans) else _tokens(text)
        first, last = ({token[side]: token["id"] for token in tokens} for side in ("start", "end"))
        spans = [
            {"start": span.start, "end": span.end, "label": span.label, "score": score}
            | {"token_start": first[span.start], "token_end": last[span.end]}
            for span, score in zip(text.spans, text.scores, strict=True)
        ]
        rows.append({**others, "text": text.text, "tokens": tokens, "spans": spans})
    return {output: "".join(map(json_text, rows))}


def _tokens(text: PredictedText) -> list[dict[str, Any]]:
    tokens = []
    for number, (start, end) in enumerate(text.words):
        word, after = text.text[start:end], text.text[end : end + 1]
        tokens.append({"text": word, "start": start, "end": end, "id": number, "ws": after.isspace()})
    return tokens


def _has_borders(tokens: Any, spans: Sequence[LabelledSpan]) -> bool:
    """Whether tokens of an input can be used: all spans begin and end with one."""
    if not isinstance(tokens, list) or not all(isinstance(token, Mapping) for token in tokens):
        return False
    if not all(type(token.get(name)) is int for token in tokens for name in ("start", "end", "id")):
        return False
    starts, ends = ({token[side] for token in tokens} for side in ("start", "end"))
    return all(span.start in starts and span.end in ends for span in spans)
