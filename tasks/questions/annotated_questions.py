"""Questions on texts with labelled spans, as annotation tools export them: each label is a question on each text.

What is asked is in the setting ``questions``; a label without a question there is asked by its name. An annotator who
marked nothing with a label, but annotated the text, votes for no answer. Ids are DOCUMENT/LABEL. The other way round,
the predicted spans of all labels of a text are one text for a tool (`predicted_texts`).

Tools: tasks/annotations/.
"""

import collections
import dataclasses
import itertools
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert import config_fields, words
from bert.errors import InputError, listed
from tasks.annotations.annotated_texts import AnnotatedTexts, AnnotationSettings, LabelledSpan, PredictedText
from tasks.annotations.rows import first_rows
from tasks.annotations.tools import read_annotated, tool_of
from tasks.questions.question_rows import Question, QuestionFields, Questions, QuestionSettings, questions_by_label
from tasks.questions.span_files import NO_SPANS, annotations_of, golds_of

_OF_QUESTIONS = ("context", "paragraphs", "docid")
_ANSWER = "answer"  # the label of spans that answer a question which is no label's


def tool_of_questions(path: str, encoding: str) -> str:
    """The annotation tool that wrote a file or folder; "" where none did, or where it holds questions."""
    tool = tool_of(path, encoding)
    if tool == "doccano" and pathlib.Path(path).is_file():  # it knows every row with a text
        rows = first_rows(path, encoding)
        return "" if any(name in row for row in rows for name in _OF_QUESTIONS) else tool
    return tool


def read_annotated_questions(path: str, tool: str, fields: QuestionFields) -> tuple[list[Question], list[str]]:
    """(a question for each text and label, notes).

    Raises InputError where there is no label to ask for, or one question is set for several.
    """
    file = read_annotated(path, config_fields.build(AnnotationSettings, vars(fields.settings), format=tool))
    notes = [f"{path}: read as an export of {file.tool}", *(file.notes if fields.annotated else ())]
    question_of_label = _question_of_label(path, file, fields, notes)
    counts = collections.Counter(text.id for text in file.texts)
    questions = []
    for number, text in enumerate(file.texts, 1):
        document = text.id or str(number)
        if counts[text.id] > 1 and text.id:
            document = f"{document}:{number}"
            fields.tally.add("texts with the id of another, called ID:NUMBER", text.place)
        for label, question in question_of_label.items():
            of_label = [
                (name, [list(span[:2]) for span in spans if span.label == label])
                for name, spans in text.annotations
                if fields.annotated and (name, label) not in text.lost
            ]
            place, context = text.place, text.text
            annotations, _ = annotations_of(of_label, context, f"{place}: {label}", fields.tally)
            lost = NO_SPANS if any(name == label for _, name in text.lost) else ""
            about = (context, annotations, place, text.document, golds_of(annotations, context), lost, label, text)
            questions.append(Question(f"{document}/{label}", question, *about))
    return questions, notes


def _question_of_label(path: str, file: AnnotatedTexts, fields: QuestionFields, notes: list[str]) -> dict[str, str]:
    """Label -> its question: those of the settings, then the labels of the file."""
    setting = questions_by_label(fields.settings.questions)
    labels = dict.fromkeys(span.label for text in file.texts for _, spans in text.annotations for span in spans)
    unknown = [label for label in setting if label not in labels]
    if unknown and labels and fields.annotated:
        notes.append(
            f"{path}: questions has {listed(unknown)}, which no text has; asked all the same (labels: {listed(labels)})"
        )
    if not fields.annotated and setting:
        labels = {}
    unnamed = [label for label in labels if label not in setting]
    if setting and unnamed:
        notes.append(f"{path}: labels without a question in questions, asked by their names: {listed(unnamed)}")
    if fields.settings.question and not setting:
        if len(labels) > 1:
            raise InputError(
                f"{path}: has the labels {listed(labels, 5)}; leave question empty, and set questions to "
                "LABEL=QUESTION,LABEL=QUESTION"
            )
        setting = dict.fromkeys(labels, fields.settings.question)
    question_of_label = setting | {label: label for label in labels if label not in setting}
    if not question_of_label:
        raise InputError(f"{path}: no text has a labelled span; set questions to what is asked, such as PER=Who?")
    return question_of_label


def with_questions(files: QuestionSettings, part: Questions) -> QuestionSettings:
    """The settings with all questions that were asked by labels, so that a finished model asks the same ones."""
    question_of_label = {row.label: row.question for row in part.rows if row.label}
    setting = json.dumps(question_of_label, ensure_ascii=False)
    return dataclasses.replace(files, questions=setting) if question_of_label else files


def key_of_text(row: Question) -> tuple[str, str]:
    """What questions on the labels of one text have in common; other questions are alone."""
    return row.place, row.context if row.label else row.id


def predicted_texts(rows: Sequence[Question], predictions: Sequence[Mapping[str, Any]]) -> list[PredictedText]:
    """The texts with the spans of all their labels; other questions are a text each, with the label "answer"."""
    by_text: dict[tuple[str, str], list[int]] = {}
    for i, row in enumerate(rows):
        by_text.setdefault(key_of_text(row), []).append(i)
    texts = []
    for indices in by_text.values():
        first = rows[indices[0]]
        ordered = sorted(
            (span["start"], span["end"], rows[i].label or _ANSWER, span["probability"])
            for i in indices
            for span in predictions[i]["spans"]
        )
        spans, scores = [LabelledSpan(*span[:3]) for span in ordered], [span[3] for span in ordered]
        identity, origin = (first.of_text.id, first.of_text.origin) if first.of_text else (first.id, None)
        places = _cut_at(spans, words.places_of_words(first.context))
        score = float(np.exp(np.log(np.maximum(scores, np.finfo(float).tiny)).mean())) if scores else None
        texts.append(PredictedText(identity, first.context, places, spans, scores, score, origin))
    return texts


def _cut_at(spans: Sequence[LabelledSpan], places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The words, cut where a span begins or ends inside of one, because tools want spans of whole words."""
    bounds = {bound for span in spans for bound in span[:2]}
    cut: list[tuple[int, int]] = []
    for start, end in places:
        inner = sorted(bound for bound in bounds if start < bound < end)
        cut += itertools.pairwise([start, *inner, end])
    return cut
