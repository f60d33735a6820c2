"""Label Studio: tasks with the annotations of their texts; JSON (a list, or a task a line) and JSON-MIN.

  {"id": 1, "data": {"text": "Anna sat."}, "annotations": [{"completed_by": 3, "was_cancelled": false, "result": [
    {"type": "labels", "from_name": "label", "to_name": "text",
     "value": {"start": 0, "end": 4, "text": "Anna", "labels": ["PER"]}}]}]}
  {"id": 1, "text": "Anna sat.", "label": [{"start": 0, ..., "labels": ["PER"]}], "annotator": 3, "annotation_id": 5}

JSON-MIN has a row for each annotation. Before version 1.0, and in John Snow Labs' Annotation Lab, annotations are
called completions, and name a created_username. Annotations that were skipped are none; predictions and drafts are none
either. Of several annotations by one annotator the last counts. Where a task has a ground truth, it alone counts. Spans
with several labels are one for each. Regions of other kinds (hypertext, paragraphs, choices) are not read.

Offsets are code points since version 1.4, UTF-16 units before, and in part of the versions of 2023 and 2024.
Source: labelstud.io/guide/task_format; HumanSignal/label-studio, pull requests 1559 and 6135, issues 1347, 3078, 4988.
"""

import collections
import itertools
import pathlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from bert.errors import InputError, listed
from bert.files import json_text
from tasks.annotations.annotated_texts import AnnotationSettings, PredictedText
from tasks.annotations.marks import Mark, MarkedText, mark_of
from tasks.annotations.rows import read_rows, text_of
from tasks.annotations.writing import Writing
from tasks.files.cells import TableCell
from tasks.files.records import Table, cell_of
from tasks.files.reports import Tally

UNITS = ("code_points", "utf16")
_MIN = ("annotation_id", "annotator")  # fields of every row of JSON-MIN
_OF_ANNOTATION = ("id", *_MIN, "created_at", "updated_at", "lead_time", "agreement")  # and what else it has beside data


def is_row(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("data"), Mapping) or all(name in row for name in _MIN)


def read(path: str, settings: AnnotationSettings, tally: Tally) -> list[MarkedText]:
    """The tasks of a file, each with its annotators."""
    table = read_rows(path, settings.encoding)
    tasks = _tasks(table)
    field, elsewhere = _text_field(path, tasks, settings.text)
    rows = []
    for task, place in tasks:
        text = text_of(cell_of(task["data"], f"{place}: data", field))
        identity = task.get("id", task["data"].get("id"))
        marks = _by_annotator(task, place, elsewhere, tally)
        rows.append(MarkedText("" if identity is None else str(identity), text, marks, place, place, task))
    return rows


def _tasks(table: Table) -> list[tuple[dict[str, Any], str]]:
    """The tasks with their places; those of JSON-MIN are put together from their rows."""
    tasks: dict[Any, tuple[dict[str, Any], str]] = {}
    for row, place in zip(table.rows, table.places, strict=True):
        if isinstance(row.get("data"), Mapping):
            tasks[place] = row, place
            continue
        key = place if row.get("id") is None else str(row["id"])
        others = {name: value for name, value in row.items() if name not in _OF_ANNOTATION}
        results = {name: value for name, value in others.items() if _is_results(value)}
        data = {name: value for name, value in others.items() if name not in results}
        task, _ = tasks.setdefault(key, ({"id": row.get("id"), "data": data, "annotations": []}, place))
        if row.get("annotation_id") is not None:
            regions = [
                {"type": "labels", "from_name": name, "value": value} for name in results for value in results[name]
            ]
            task["annotations"].append({"completed_by": row.get("annotator"), "result": regions})
    return list(tasks.values())


def _is_results(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) and "labels" in item for item in value)


def _text_field(path: str, tasks: Sequence[tuple[Mapping[str, Any], str]], setting: str) -> tuple[str, set[str]]:
    """(the field of the data that has the text: the one of the setting, or the only one, or the one in which most spans
    are; the to_name of regions that are on another one)."""
    fields = list(dict.fromkeys(name for task, _ in tasks for name, _ in _texts(task["data"])))
    fitting: dict[str, collections.Counter[str]] = {}  # to_name -> field -> how many regions have their text in it
    for task, _ in tasks if len(fields) > 1 else ():
        for region in itertools.chain.from_iterable(map(_regions, _annotations(task))):
            counts = fitting.setdefault(str(region.get("to_name")), collections.Counter())
            value = region["value"]
            inside, start, end = value.get("text"), value.get("start"), value.get("end")
            if isinstance(inside, str) and type(start) is type(end) is int:
                counts.update(name for name, text in _texts(task["data"]) if text[start:end] == inside)
    total = sum(fitting.values(), collections.Counter())
    named = [name for name in (*(field for field, _ in total.most_common(1)), *fitting, "text") if name in fields]
    field = setting or (fields[0] if len(fields) == 1 else next(iter(named), ""))
    if not field:
        has = f"the fields {listed(fields, 10)}" if fields else "no field with text"
        raise InputError(f"{path}: its data have {has}; set text to the one that is annotated")
    best = {name: max(counts, key=counts.__getitem__, default=name) for name, counts in fitting.items()}
    elsewhere = {name for name in best if fitting[name][best[name]] > fitting[name][field]}
    untold = {name for name, counts in fitting.items() if not counts}  # called as a field, they are on that
    return field, elsewhere | {name for name in untold if name in fields and name != field}


def _texts(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """(dotted name, text) of the fields with text, also in objects."""
    for name, value in data.items():
        if isinstance(value, str):
            yield prefix + name, value
        elif isinstance(value, Mapping):
            yield from _texts(value, f"{prefix}{name}.")


def _annotations(task: Mapping[str, Any]) -> list[Any]:
    return _list(task.get("annotations")) or _list(task.get("completions"))


def _regions(annotation: Any) -> list[Mapping[str, Any]]:
    """The labelled spans of an annotation."""
    results = _list(annotation.get("result")) if isinstance(annotation, Mapping) else []
    return [region for region in results if _is_span(region)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_span(region: Any) -> bool:
    is_labels = isinstance(region, Mapping) and region.get("type") == "labels"
    return is_labels and isinstance(region.get("value"), Mapping)


def _by_annotator(
    task: Mapping[str, Any], place: str, elsewhere: Collection[str], tally: Tally
) -> tuple[tuple[str, list[Mark]], ...]:
    """``elsewhere``: to_name of regions that are on another text."""
    annotations = _annotations(task)
    for annotation in annotations:
        if not isinstance(annotation, Mapping) or not isinstance(annotation.get("result"), list | None):
            cell = TableCell(f"{place}: annotations", annotation)
            raise cell.error('is no annotation; write objects like {"completed_by": 1, "result": [...]}')
    finished = [one for one in annotations if not (one.get("was_cancelled") or one.get("skipped"))]
    if len(finished) < len(annotations):
        tally.add("annotations that were skipped, left out", place, len(annotations) - len(finished))
    truth = [one for one in finished if one.get("ground_truth")]
    if truth and len(truth) < len(finished):
        tally.add("annotations beside a ground truth, left out", place, len(finished) - len(truth))
    marks: dict[str, list[Mark]] = {}
    for number, annotation in enumerate(truth or finished, 1):
        annotator = _annotator(annotation) or ("" if number == 1 else str(number))
        if annotator in marks:
            tally.add("annotations of a text that their annotator annotated again, left out", place)
        regions = _regions(annotation)
        others = [region for region in annotation.get("result") or () if not _is_span(region)]
        kinds = [str(region.get("type")) if isinstance(region, Mapping) else "None" for region in others]
        for kind in kinds:
            tally.add(f"regions of type {kind}, which are not read", place)
        if not regions and any(kind.endswith("labels") for kind in kinds):  # spans of another form are not nothing
            tally.add("annotations of which no span can be used, left out", place)
            continue
        here = [region for region in regions if str(region.get("to_name")) not in elsewhere]
        if len(here) < len(regions):
            tally.add("regions of another text, which are not read (text)", place, len(regions) - len(here))
        marks[annotator] = [mark for region in here for mark in _marks(region["value"])]
    return tuple(marks.items())


def _annotator(annotation: Mapping[str, Any]) -> str:
    who = annotation.get("completed_by", annotation.get("created_username"))
    if isinstance(who, Mapping):
        who = who.get("email") or who.get("id")
    return "" if who is None else str(who)


def _marks(value: Mapping[str, Any]) -> Iterator[Mark]:
    """A mark for each label of a region."""
    labels = value.get("labels")
    for label in labels if isinstance(labels, list) and labels else [None]:
        yield mark_of(value.get("start"), value.get("end"), label, value.get("text"))


def write(texts: Sequence[PredictedText], output: pathlib.Path, how: Writing) -> dict[pathlib.Path, str]:
    """Tasks with predictions. Data, id and meta are those of the input; so are the names of the tags, if it has any."""
    rows = [text.row_of("label_studio") for text in texts]
    from_name, to_name = next((names for row in rows if (names := _controls(row))), how.controls)
    tasks = []
    for number, (text, row) in enumerate(zip(texts, rows, strict=True), 1):
        unchanged = {name: row[name] for name in ("id", "data", "meta") if row.get(name) is not None}
        data = {"data": {"text": text.text} | ({"id": text.id} if text.id else {})}
        regions = []
        for i, (span, score) in enumerate(zip(text.spans, text.scores, strict=True), 1):
            start, end = how.bounds(text, span)
            value = {"start": start, "end": end, "text": text.text[span.start : span.end], "labels": [span.label]}
            region = {"from_name": from_name, "to_name": to_name, "type": "labels", "value": value, "score": score}
            regions.append({"id": f"{number}-{i}", **region})
        of_text = {} if text.score is None else {"score": text.score}
        predictions = [{"model_version": how.model, **of_text, "result": regions}]
        tasks.append({**data, **unchanged, "predictions": predictions})
    return {output: json_text(tasks)}


def _controls(task: Mapping[str, Any]) -> tuple[str, str] | None:
    """The names of the tags with the labels and with the text; None where no region names both."""
    for annotation in (*_annotations(task), *_list(task.get("predictions"))):
        for region in _regions(annotation):
            if region.get("from_name") and region.get("to_name"):
                return str(region["from_name"]), str(region["to_name"])
    return None
