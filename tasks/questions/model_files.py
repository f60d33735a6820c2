"""Files of questions for finished models: how they are read is the same for both ways of reading comprehension."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from bert.inference import LoadedModel
from tasks import evaluation
from tasks.questions.question_rows import Questions, QuestionSettings
from tasks.questions.questions import for_scoring, read_questions


def settings_of(model: LoadedModel, changes: Mapping[str, str | None]) -> dict[str, Any]:
    """How the model's files are read: as it was trained, with what the command line changes."""
    return evaluation.file_settings(model, dataclasses.asdict(QuestionSettings()), changes)


def read_examples(model: LoadedModel, settings: Mapping[str, Any], data: str, split: str, labelled: str) -> Questions:
    """The questions of a file; where annotations are needed those that can be scored."""
    questions = read_questions(data, QuestionSettings(**settings), labelled=labelled)
    return for_scoring(questions) if labelled == "needed" else questions
