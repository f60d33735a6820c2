"""Reads SQuAD files. Each answer to a question is the vote of one annotator.

It reads the official files (articles with paragraphs with questions), the same as a plain list, and flat rows as
written by `datasets` (context, question, and answers {"text": [...], "answer_start": [...]} in one row).

Annotators are called "1", "2", ... in the order of the answers; each answer is a vote, also if it equals another. A
question with no answers, or with is_impossible, has one annotator who found nothing. A question without the field
`answers` is not annotated. An answer with the text "" is a vote for no answer, as in files from some tools.

Positions are for training. If an answer is not at answer_start, or has none, its only occurrence is used; with no
occurrence or several, the answer has no position. Golds are the texts of all answers, whatever their positions and
is_impossible, because the official scripts read nothing else.

Source: rajpurkar.github.io/SQuAD-explorer, the files dev-v1.1.json and dev-v2.0.json.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bert.errors import InputError
from tasks.files.cells import TableCell
from tasks.files.records import Table, cell_of
from tasks.questions.question_rows import Annotation, Gold, Question, QuestionFields, Spans, id_of, list_of, object_of

_ANSWER = "{'text': ..., 'answer_start': ...}"
_NO_ANSWER = Annotation("1", ()), Gold("1", ())
Paragraph = tuple[str, str, list[TableCell]]  # group, context, questions


def read_squad(table: Table, fields: QuestionFields) -> Iterator[Question]:
    """The questions of all articles."""
    for group, context, cells in _paragraphs(table, fields):
        for cell in cells:
            row, place = object_of(cell, "{'id': ..., 'question': ..., 'answers': [...]}"), cell.place
            identity = id_of(cell_of(row, place, "id"))
            question = fields.question(row.get("question"), place)
            annotations, golds, lost = _annotations(row, context, place, fields) if fields.annotated else ((), (), "")
            yield Question(identity, question, context, annotations, place, group, golds, lost)


def _paragraphs(table: Table, fields: QuestionFields) -> Iterator[Paragraph]:
    for number, (article, place) in enumerate(zip(table.rows, table.places, strict=True), 1):
        title = article.get("title")
        title = title if isinstance(title, str) else ""
        if article.get("paragraphs") is None and article.get("context") is not None:
            yield title, fields.text(article, place, "context"), [TableCell(place, article)]
            continue
        paragraphs = list_of(cell_of(article, place, "paragraphs"), "objects with context and qas")
        for i, paragraph in enumerate(paragraphs, 1):
            where = f"{place}, paragraph {i}"
            paragraph = object_of(TableCell(where, paragraph), "{'context': ..., 'qas': [...]}")
            context = fields.text(paragraph, where, "context")
            rows = list_of(cell_of(paragraph, where, "qas"), "questions")
            cells = [TableCell(f"{where}, question {j}", row) for j, row in enumerate(rows, 1)]
            yield title or f"article {number}", context, cells


def _annotations(
    row: Mapping[str, Any], context: str, place: str, fields: QuestionFields
) -> tuple[tuple[Annotation, ...], tuple[Gold, ...], str]:
    """Positions, texts, and why positions are missing ("" where none is)."""
    impossible = row.get("is_impossible")
    if impossible not in (None, True, False):
        raise cell_of(row, place, "is_impossible").error("must be true or false; correct it")
    answers = _answers(cell_of(row, place, "answers"))
    annotation, gold = _NO_ANSWER
    if answers is None and not impossible:
        return (), (), ""
    if not answers:
        return (annotation,), (gold,), ""
    annotations, golds, lost = [], [], {}
    for number, answer in enumerate(answers, 1):
        where = f"{place}: answer {number}"
        text, start = _answer(TableCell(where, answer), fields)
        golds.append(Gold(str(number), (text,)))
        if impossible:
            continue
        spans, reason = _spans(text, start, context, where, fields)
        if spans is None:
            fields.tally.add(f"answers without a position for training ({reason})", where)
            lost[reason] = True
        else:
            annotations.append(Annotation(str(number), spans))
    if impossible:
        fields.tally.add("is_impossible though there are answers: trained as without one, scored by the answers", place)
        return (annotation,), tuple(golds), ""
    return tuple(annotations), tuple(golds), f"no position of an answer: {'; '.join(lost)}" if lost else ""


def _answers(cell: TableCell) -> list[Any] | None:
    """The answers, an object each; None where the question is not annotated."""
    if cell.value is None:
        return None
    if not isinstance(cell.value, Mapping):
        return list_of(cell, f"answers like {_ANSWER}")
    texts = list_of(cell_of(cell.value, cell.place, "text"), "texts")
    starts = cell_of(cell.value, cell.place, "answer_start")
    numbers = [None] * len(texts) if starts.value is None else list_of(starts, "numbers")
    if len(texts) != len(numbers):
        counts = f"{len(texts)} of text but {len(numbers)} of answer_start"
        raise InputError(f"{cell.place}: {counts}; each answer needs both")
    return [{"text": text, "answer_start": start} for text, start in zip(texts, numbers, strict=True)]


def _answer(cell: TableCell, fields: QuestionFields) -> tuple[str, int | None]:
    """The text of an answer and its answer_start, None where it has none."""
    answer = object_of(cell, _ANSWER)
    text, start = fields.text(answer, cell.place, "text"), answer.get("answer_start")
    if start is not None and type(start) is not int:
        raise cell_of(answer, cell.place, "answer_start").error("must be a whole number, in code points")
    return text, start


def _spans(text: str, start: int | None, context: str, place: str, fields: QuestionFields) -> tuple[Spans | None, str]:
    """The span of an answer, none for a vote for no answer; None, and why, where it has no position."""
    if not text:
        fields.tally.add("answers with the text '', each a vote for no answer", place)
        return (), ""
    if not text.strip():
        return None, "blanks alone"
    if start is not None and start >= 0 and context.startswith(text, start):
        return ((start, start + len(text)),), ""
    first = context.find(text)
    if first < 0:
        return None, "not in the passage"
    why = "no answer_start" if start is None else "not at answer_start"
    if context.find(text, first + 1) >= 0:
        return None, f"more than once in the passage, {why}"
    fields.tally.add(f"answers whose position is the one place of their text in the passage ({why})", place)
    return ((first, first + len(text)),), ""
