"""What the jobs and the evaluators of bio_mrc and squad share: how both read files of questions."""

import dataclasses
import functools
from collections.abc import Hashable, Iterable
from typing import Any

from ml_collections import ConfigDict

from tasks.evaluation import Evaluator
from tasks.job import ExamplesJob, read_parts
from tasks.questions.annotated_questions import with_questions
from tasks.questions.parts import for_scoring, for_training, passage_keys, placed, split
from tasks.questions.question_rows import Questions, QuestionSettings
from tasks.questions.questions import read_questions


class QuestionsJob(ExamplesJob):
    """Questions on passages; see `tasks.job.ExamplesJob`."""

    train: Questions
    validation: Questions | None
    files: QuestionSettings
    unit = "questions"
    compared = "passages"

    def keys_of(self, part: Questions) -> Iterable[Hashable]:
        return passage_keys(part)

    def contents(self, part: Questions) -> Iterable[Any]:
        # Without the questions that are scored only: runs that were begun when these had no part in it continue.
        return (row.content for row in placed(part).rows)


def question_parts(
    config: ConfigDict, files: QuestionSettings, equal_apart: bool
) -> tuple[Questions, Questions | None, QuestionSettings]:
    """The training and the validation part, and the settings by which a finished model reads files.

    Args:
      equal_apart: see `tasks.job.as_begun`.
    """
    reader = functools.partial(read_questions, settings=files, labelled="needed")
    train, validation = read_parts(config, "questions", reader, split, equal_apart=equal_apart)
    complete = with_questions(files, train)
    if config.validation and complete != files:  # the same questions, though its texts may lack a label
        validation = read_questions(config.validation, complete, labelled="needed")
    return for_training(train), validation and for_scoring(validation), complete


class QuestionsEvaluator(Evaluator):
    """A finished model on questions; see `tasks.evaluation.Evaluator`."""

    file_defaults = dataclasses.asdict(QuestionSettings())
    unit = "questions"

    def read(self, data: str, *, split: str, labelled: str) -> Questions:
        del split
        questions = read_questions(data, QuestionSettings(**self.settings), labelled=labelled)
        return for_scoring(questions) if labelled == "needed" else questions
