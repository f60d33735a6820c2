"""SQuAD files: each answer of a question is the vote of one annotator.

Read are the official files (articles with paragraphs with questions), the same as a plain list, and flat rows as
`datasets` writes them (context, question and answers in one row, with answers {"text": [...], "answer_start": [...]}).

Annotators are called "1", "2", ... in the order of the answers; equal answers are as many votes. A question with no
answers, or with is_impossible, has one annotator who found nothing; one without the field `answers` is not annotated.
An answer with the text "" is a vote for no answer, as files from other tools write it.

Source: rajpurkar.github.io/SQuAD-explorer, the files dev-v1.1.json and dev-v2.0.json.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bert.errors import InputError
from tasks.reading.question_rows import (
    Annotation,
    Found,
    Question,
    QuestionSettings,
    Spans,
    Tally,
    id_of,
    list_of,
    object_of,
    question_of,
    text_of,
)
from tasks.reading.records import Table, short

_ANSWER = "{'text': ..., 'answer_start': ...}"
Paragraph = tuple[str, str, list[tuple[str, Any]]]  # group, context, (place, question) of each question


def read_squad(table: Table, settings: QuestionSettings, tally: Tally, annotated: bool) -> Found:
    """The questions of all articles, each with why none of its answers can be used ("" where one can).

    Args:
      annotated: whether answers are read.

    Raises:
      InputError: a field that is missing or of another type.
    """
    for group, context, rows in _paragraphs(table, tally):
        for place, row in rows:
            row = object_of(row, place, "{'id': ..., 'question': ..., 'answers': [...]}")
            identity = id_of(row.get("id"), f"{place}: id")
            asked = question_of(row.get("question"), place, settings, tally)
            annotations, lost = _annotations(row, context, place, tally) if annotated else ((), "")
            yield Question(identity, asked, context, annotations, place, group), lost


def _paragraphs(table: Table, tally: Tally) -> Iterator[Paragraph]:
    for number, (article, place) in enumerate(zip(table.rows, table.places, strict=True), 1):
        title = article.get("title")
        title = title if isinstance(title, str) else ""
        if article.get("paragraphs") is None and article.get("context") is not None:
            yield title, text_of(article["context"], f"{place}: context", tally), [(place, article)]
            continue
        paragraphs = list_of(article.get("paragraphs"), f"{place}: paragraphs", "objects with context and qas")
        for i, paragraph in enumerate(paragraphs, 1):
            where = f"{place}, paragraph {i}"
            paragraph = object_of(paragraph, where, "{'context': ..., 'qas': [...]}")
            context = text_of(paragraph.get("context"), f"{where}: context", tally)
            rows = list_of(paragraph.get("qas"), f"{where}: qas", "questions")
            yield (
                title or f"article {number}",
                context,
                [(f"{where}, question {j}", row) for j, row in enumerate(rows, 1)],
            )


def _annotations(row: Mapping[str, Any], context: str, place: str, tally: Tally) -> tuple[tuple[Annotation, ...], str]:
    impossible = row.get("is_impossible")
    if impossible not in (None, True, False):
        raise InputError(f"{place}: is_impossible {short(impossible)} must be true or false")
    answers = _answers(row.get("answers"), f"{place}: answers")
    nothing = (Annotation("1", ()),)
    if impossible:
        if answers:
            tally.add("is_impossible though there are answers, which are left out", place)
        return nothing, ""
    if answers is None:
        return (), ""
    found = []
    for number, answer in enumerate(answers, 1):
        spans = _spans(answer, context, f"{place}: answer {number}", tally)
        if spans is not None:
            found.append(Annotation(str(number), spans))
    if not answers:
        return nothing, ""
    return tuple(found), "" if found else "none of its answers is in the passage"


def _answers(value: Any, where: str) -> list[Any] | None:
    """The answers, an object each; None where the question is not annotated."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return list_of(value, where, f"answers like {_ANSWER}")
    texts = list_of(value.get("text"), f"{where}: text", "texts")
    starts = list_of(value.get("answer_start"), f"{where}: answer_start", "numbers")
    if len(texts) != len(starts):
        raise InputError(f"{where}: {len(texts)} of text but {len(starts)} of answer_start; each answer needs both")
    return [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]


def _spans(value: Any, context: str, where: str, tally: Tally) -> Spans | None:
    """The span of an answer, none for a vote for no answer; None where it is dropped."""
    answer = object_of(value, where, _ANSWER)
    text = text_of(answer.get("text"), f"{where}: text", tally)
    start = answer.get("answer_start")
    if start is not None and type(start) is not int:
        raise InputError(f"{where}: answer_start {short(start)} must be a whole number, in code points")
    if not text:
        tally.add("answers with the text '', each a vote for no answer", where)
        return ()
    if not text.strip():
        tally.add("answers of blanks alone, dropped", where)
        return None
    if start is None or start < 0 or not context.startswith(text, start):
        start = context.find(text)
        if start < 0 or context.find(text, start + 1) >= 0:
            times = "not" if start < 0 else "more than once"
            tally.add(f"answers whose text is not at answer_start, and {times} in the passage, dropped", where)
            return None
        tally.add("answers whose text is not at answer_start but once elsewhere, moved there", where)
    return ((start, start + len(text)),)
