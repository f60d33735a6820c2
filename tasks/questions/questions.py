"""Reads questions and annotated spans: chooses the reader and the questions to keep.

Not here: `Question` (question_rows.py), the readers (squad_files.py; annotated_questions.py for annotation tools;
span_files.py for the other formats), and what becomes of the questions (parts.py).

With format "auto", exports of annotation tools are recognised; else the first row decides: squad (`paragraphs`, or flat
rows with `answers`), multispanqa (`context` is a list of words), pico (`docid`), lines (`context` is a text; our own
format, described in span_files.py). Rows are those of a table, the list `data`, a list, or one object per line.

Which questions are kept. For prediction: all, in their order, except questions whose document is missing. For scoring:
those with the texts of an annotator's answers. For training (parts.py): of these, those with the position of an answer
and a passage that is not blank. Dropped questions are counted by reason. An annotator who marked nothing means "no
answer" and is kept; an annotator with only invalid spans is left out. A question with an answer without a position
never counts as a question without an answer.
"""

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bert.corpus.corpus_files import saved_data_set
from bert.errors import InputError, check_choice, listed
from tasks.annotations.tools import TOOLS
from tasks.files import annotators
from tasks.files.cells import TableCell, short
from tasks.files.json_tables import read_jsonl, read_value
from tasks.files.records import Table, TableSettings, row_places
from tasks.files.reports import ReadReport, Tally, check_labelled
from tasks.files.tables import check_path, ending_to_read, read_table, unreadable
from tasks.questions.annotated_questions import read_annotated_questions, tool_of_questions
from tasks.questions.parts import none_kept
from tasks.questions.question_rows import (
    NO_DOCUMENT,
    NO_PASSAGE,
    Question,
    QuestionFields,
    Questions,
    QuestionSettings,
    object_of,
)
from tasks.questions.span_files import read_multispanqa, read_pico, read_span_lines
from tasks.questions.squad_files import read_squad

READERS: dict[str, Callable[[Table, QuestionFields], Iterator[Question]]] = {
    "squad": read_squad,
    "multispanqa": read_multispanqa,
    "pico": read_pico,
    "lines": read_span_lines,
}
_NOT_READ = dict.fromkeys((".csv", ".tsv"), "write it as json lines: id, question, context, annotations")


def read_questions(path: str, settings: QuestionSettings, *, labelled: str) -> Questions:
    """The questions of a file.

    Args:
      labelled: "needed": questions that can be scored, see parts.py; "if there": all, with what annotations
        they have; "no": all, without annotations.

    Raises:
      InputError: nothing there, another kind of file, bad JSON, a field that is missing or of another type, an id that
        stands twice, or no question left; in one line with the place and the way out.
    """
    check_labelled(labelled)
    fields = QuestionFields(settings, labelled != "no")
    try:
        table, questions = _read(str(path), settings, fields)
    except PermissionError as error:
        raise unreadable(error.filename) from None
    if not questions:
        raise InputError(f"{path}: no questions in it; is it the right file?")
    _check_ids(questions)
    return _choose(questions, table, fields, labelled)


def _read(path: str, settings: QuestionSettings, fields: QuestionFields) -> tuple[Table, list[Question]]:
    """(the rows of a file, the questions in them); of an export of an annotation tool the rows are not given."""
    check_choice("format", settings.format, ("auto", *READERS, *TOOLS))
    tool = settings.format if settings.format in TOOLS else ""
    if settings.format == "auto" and not saved_data_set(check_path(path)):
        tool = tool_of_questions(path, settings.encoding)
    if tool:
        questions, notes = read_annotated_questions(path, tool, fields)
        return Table((), [], [], tuple(notes), path), questions
    table = _read_rows(path, settings)
    if not table.rows:
        return table, []
    of_tools = "is for exports of annotation tools"
    if settings.questions:
        table = table._replace(notes=(*table.notes, f"{path}: questions {of_tools}, and unused here"))
    if settings.offsets != "auto" and fields.annotated:
        table = table._replace(notes=(*table.notes, f"{path}: offsets {of_tools}; here, spans count code points"))
    format = _format_of(table) if settings.format == "auto" else settings.format
    return table, list(READERS[format](table, fields))


def _read_rows(path: str, settings: QuestionSettings) -> Table:
    """The rows of a table, or of a JSON file: a list of objects, that in its list `data`, or an object a line."""
    file = check_path(path)
    if saved_data_set(file):
        return read_table(path)
    if file.is_dir():
        inner = listed(sorted(entry.name for entry in file.iterdir()), 10)
        raise InputError(f"{path}: a folder with {inner}; name a file of questions, or a folder saved by datasets")
    ending = ending_to_read(file, " as questions", _NOT_READ)
    if ending in (".parquet", ".arrow"):
        return read_table(path)
    lines = TableSettings(encoding=settings.encoding)
    value = read_jsonl(path, lines) if ending in (".jsonl", ".ndjson") else read_value(path, lines)
    if isinstance(value, Table):
        return value
    rows = _rows(path, value)
    return Table((), rows, row_places(path, len(rows)), (), path)


def _rows(path: str, value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict) and "data" not in value and ("context" in value or "docid" in value):
        return [value]  # a file of one line
    rows = value.get("data") if isinstance(value, dict) else value
    if not isinstance(rows, list):
        inside = f"it holds {listed(value, 10) or 'nothing'}" if isinstance(value, dict) else short(value)
        raise InputError(f"{path}: no list 'data' ({inside}); write {{'data': [...]}}, the list alone, or json lines")
    for i, row in enumerate(rows, 1):
        object_of(
            TableCell(f"{path}: row {i}", row),
            "{'title': ..., 'paragraphs': [...]} or {'question': ..., 'context': ...}",
        )
    return rows


def _format_of(table: Table) -> str:
    first = table.rows[0]
    if first.get("docid") is not None:
        return "pico"
    if isinstance(first.get("context"), list):
        return "multispanqa"
    if any(first.get(name) is not None for name in ("paragraphs", "answers", "is_impossible")):
        return "squad"
    if "context" in first:
        return "lines"
    raise InputError(
        f"{table.places[0]}: has {listed(first, 10) or 'no fields'}; no format of questions is like that, see "
        f"{', '.join(READERS)}"
    )


def _check_ids(questions: Iterable[Question]) -> None:
    places: dict[str, str] = {}
    for question in questions:
        first = places.setdefault(question.id, question.place)
        if first != question.place:
            raise InputError(f"{question.place}: the id {short(question.id)} is also that of {first}; make ids unique")


def _choose(questions: list[Question], table: Table, fields: QuestionFields, labelled: str) -> Questions:
    """The questions that are kept, with the annotators that are kept, and the report."""
    setting = fields.settings.annotators
    choice = annotators.choice_of(setting)
    known = dict.fromkeys(gold.annotator for question in questions for gold in question.golds)
    dropped, without_golds, kept_with, rows = Tally(), Tally(), Tally(), []
    groups: dict[str, str] = {}
    for full in questions:
        question = _with_annotators(full, choice)
        if len(question.golds) < len(full.golds):
            without_golds.add(f"questions of which annotators {setting} leaves golds out", question.place)
        why = question.untrainable
        if why == NO_DOCUMENT or (why and labelled == "needed" and not question.golds):
            dropped.add(why, question.place)
            continue
        if labelled != "needed" and why and (labelled == "if there" or why == NO_PASSAGE):
            kept_with.add(f"{why}, but kept", question.place)
        # The same passage in both parts of a split would be a leak.
        rows.append(question._replace(group=question.group or groups.setdefault(question.context, question.id)))
    notes = [*table.notes, *fields.tally.notes(), *without_golds.notes(), *kept_with.notes()]
    unknown = [name for name in sorted(choice.names) if name not in known] if labelled != "no" else []
    absent = f"annotators {', '.join(unknown)}: no question has them; there are {listed(known, 10)}"
    if unknown:
        notes.append(absent)
    if not rows:
        raise none_kept(table.path, len(questions), dropped, f"{absent}; " if unknown else "")
    return Questions(rows, ReadReport(table.path, len(questions), len(rows), dropped.counts, tuple(notes)))


def _with_annotators(question: Question, choice: annotators.AnnotatorChoice) -> Question:
    """The question with the annotators that are kept, and why it cannot be trained on, if so."""
    chosen = tuple(annotation for annotation in question.annotations if annotation.annotator in choice)
    golds = tuple(gold for gold in question.golds if gold.annotator in choice)
    names = {annotation.annotator for annotation in chosen}
    lost = question.untrainable and any(any(gold.texts) and gold.annotator not in names for gold in golds)
    if lost and not any(annotation.spans for annotation in chosen):
        chosen = ()
    why = ""
    if _is_blank(question.context) and question.untrainable != NO_DOCUMENT:
        why = NO_PASSAGE
    elif not chosen and question.golds and not golds:
        why = "none of its annotators is kept"
    elif not chosen:
        why = question.untrainable or "no annotation"
    return question._replace(annotations=chosen, golds=golds, untrainable=why)


def _is_blank(text: str) -> bool:
    """Whether nothing in a text is visible: blanks, controls, and zero-width characters at most."""
    return all(character.isspace() or unicodedata.category(character) in ("Cc", "Cf") for character in text)
