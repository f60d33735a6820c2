"""Reads files of questions for evaluation and prediction, in bio_mrc and squad."""

import dataclasses

from tasks.evaluation import Evaluator
from tasks.questions.question_rows import Questions, QuestionSettings
from tasks.questions.questions import for_scoring, read_questions


class QuestionsEvaluator(Evaluator):
    """What the evaluators of both tasks share."""

    file_defaults = dataclasses.asdict(QuestionSettings())
    unit = "questions"

    def read(self, data: str, *, split: str, labelled: str) -> Questions:
        del split
        questions = read_questions(data, QuestionSettings(**self.settings), labelled=labelled)
        return for_scoring(questions) if labelled == "needed" else questions
