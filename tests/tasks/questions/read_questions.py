"""Questions in a file, and what the report says of them, for the tests of each format."""

import re

from tasks.questions.question_rows import QuestionSettings
from tasks.questions.questions import read_questions
from tests.tasks.one_line import message_of


def read(path, labelled="needed", **settings):
    return read_questions(str(path), QuestionSettings(**settings), labelled=labelled)


def fault(path, labelled="needed", **settings):
    return message_of(lambda: read(path, labelled, **settings))


def texts(question):
    return [tuple(question.context[start:end] for start, end in one.spans) for one in question.annotations]


def notes_of(questions):
    """What was noted -> how often."""
    return {what: int(count) for what, count in re.findall(r"^(.*?): (\d+) \(first", str(questions.report), re.M)}
