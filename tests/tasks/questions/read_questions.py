"""Questions in a file, and what the report says of them, for the tests of each format."""

import json
import re

from tasks.questions.question_rows import QuestionSettings
from tasks.questions.questions import read_questions
from tests.tasks.one_line import message_of

CONTEXT = "café 🤗 in Paris,\r\n\r\nnot in  London. Paris is big. 𝒳!"


def read(path, labelled="needed", **settings):
    return read_questions(str(path), QuestionSettings(**settings), labelled=labelled)


def fault(path, labelled="needed", **settings):
    return message_of(lambda: read(path, labelled, **settings))


def texts(question):
    return [tuple(question.context[start:end] for start, end in one.spans) for one in question.annotations]


def notes_of(questions):
    """What was noted -> how often."""
    return {what: int(count) for what, count in re.findall(r"^(.*?): (\d+) \(first", str(questions.report), re.M)}


def squad(*questions, context=CONTEXT, title="Cities"):
    """The text of a SQuAD file with one paragraph."""
    rows = [{"id": f"q{i}", "question": "Where?", **question} for i, question in enumerate(questions, 1)]
    return json.dumps({"version": "1", "data": [{"title": title, "paragraphs": [{"context": context, "qas": rows}]}]})


def answer(text, start):
    return {"text": text, "answer_start": start}
