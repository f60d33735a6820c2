"""SQuAD files: each answer of a question is the vote of one annotator.

Read are the official files (articles with paragraphs with questions), the same as a plain list, and flat rows as
`datasets` writes them (context, question and answers in one row, with answers {"text": [...], "answer_start": [...]}).

Annotators are called "1", "2", ... in the order of the answers; equal answers are as many votes. A question with no
answers, or with is_impossible, has one annotator who found nothing; one without the field `answers` is not annotated.
An answer with the text "" is a vote for no answer, as files from other tools write it.

Positions are for training: an answer that is not at answer_start, or has none, gets the one place where its text is;
where that is nowhere or more than once it has no position. Golds are the texts of all answers, whatever their positions
and is_impossible say, for the official scripts read nothing else.

Source: rajpurkar.github.io/SQuAD-explorer, the files dev-v1.1.json and dev-v2.0.json.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bert.errors import InputError
from tasks.files.records import Table, short
from tasks.questions.question_rows import (
    Annotation,
    Found,
    Gold,
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

_ANSWER = "{'text': ..., 'answer_start': ...}"
Paragraph = tuple[str, str, list[tuple[str, Any]]]  # group, context, (place, question) of each question


def read_squad(table: Table, settings: QuestionSettings, tally: Tally, annotated: bool) -> Found:
    """The questions of all articles; ``annotated``: whether answers are read."""
    for group, context, rows in _paragraphs(table, tally):
        for place, row in rows:
            row = object_of(row, place, "{'id': ..., 'question': ..., 'answers': [...]}")
            identity = id_of(row.get("id"), f"{place}: id")
            asked = question_of(row.get("question"), place, settings, tally)
            annotations, golds, lost = _annotations(row, context, place, tally) if annotated else ((), (), "")
            yield Question(identity, asked, context, annotations, place, group, golds, lost)


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


def _annotations(
    row: Mapping[str, Any], context: str, place: str, tally: Tally
) -> tuple[tuple[Annotation, ...], tuple[Gold, ...], str]:
    """Positions, texts, and why positions are missing ("" where none is)."""
    impossible = row.get("is_impossible")
    if impossible not in (None, True, False):
        raise InputError(f"{place}: is_impossible {short(impossible)} must be true or false")
    answers = _answers(row.get("answers"), f"{place}: answers")
    nothing = (Annotation("1", ()),)
    if answers is None and not impossible:
        return (), (), ""
    if not answers:
        return nothing, (Gold("1", ()),), ""
    annotations, golds, lost = [], [], {}
    for number, answer in enumerate(answers, 1):
        where = f"{place}: answer {number}"
        text, start = _answer(answer, where, tally)
        golds.append(Gold(str(number), (text,)))
        if impossible:
            continue
        spans, reason = _spans(text, start, context, where, tally)
        if spans is None:
            tally.add(f"answers without a position for training ({reason})", where)
            lost[reason] = True
        else:
            annotations.append(Annotation(str(number), spans))
    if impossible:
        tally.add("is_impossible though there are answers: trained as without one, scored by the answers", place)
        return nothing, tuple(golds), ""
    return tuple(annotations), tuple(golds), f"no position of an answer: {'; '.join(lost)}" if lost else ""


def _answers(value: Any, where: str) -> list[Any] | None:
    """The answers, an object each; None where the question is not annotated."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return list_of(value, where, f"answers like {_ANSWER}")
    texts = list_of(value.get("text"), f"{where}: text", "texts")
    starts = value.get("answer_start")
    starts = [None] * len(texts) if starts is None else list_of(starts, f"{where}: answer_start", "numbers")
    if len(texts) != len(starts):
        raise InputError(f"{where}: {len(texts)} of text but {len(starts)} of answer_start; each answer needs both")
    return [{"text": text, "answer_start": start} for text, start in zip(texts, starts, strict=True)]


def _answer(value: Any, where: str, tally: Tally) -> tuple[str, int | None]:
    """The text of an answer and its answer_start, None where it has none."""
    answer = object_of(value, where, _ANSWER)
    text = text_of(answer.get("text"), f"{where}: text", tally)
    start = answer.get("answer_start")
    if start is not None and type(start) is not int:
        raise InputError(f"{where}: answer_start {short(start)} must be a whole number, in code points")
    return text, start


def _spans(text: str, start: int | None, context: str, where: str, tally: Tally) -> tuple[Spans | None, str]:
    """The span of an answer, none for a vote for no answer; None, and why, where it has no position."""
    if not text:
        tally.add("answers with the text '', each a vote for no answer", where)
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
    tally.add(f"answers whose position is the one place of their text in the passage ({why})", where)
    return ((first, first + len(text)),), ""
