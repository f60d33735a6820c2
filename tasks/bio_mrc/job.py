"""Reading comprehension by B/I/O tags, trained on the votes of annotators; any number of answers per question.

L = -sum_i sum_j t_ij log p_ij over the tokens i of the passage, where t_i is the share of annotators who gave token i
each tag. Files: tasks/questions/ (which token is B: answer_tokens.py). Votes: tasks/votes.py. Loss:
tasks/token_labels.py. Scores: bio_scores.py. Prediction: bert/prediction/bio_mrc.py.
"""

import dataclasses

import numpy as np
from absl import logging
from ml_collections import ConfigDict

from bert.architectures import ModelConfig
from bert.data.encoded_examples import ExampleSettings, TrainingBatches
from bert.data.passages import Passages
from bert.prediction import bio_mrc, questions
from bert.prediction.bio_mrc import TAGS, BioMrcOptions
from bert.prediction.scores import Scorer
from bert.tokenizer.alignment import Pieces
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from tasks import votes
from tasks.bio_mrc import bio_scores
from tasks.job import choice_of, dropout_rate, metric_names, settings_of
from tasks.questions.answer_tokens import SpanTags, mark
from tasks.questions.model_files import QuestionsJob, question_parts
from tasks.questions.question_rows import Questions, QuestionSettings
from tasks.token_labels import TokenLabels, windows_with_targets
from tasks.votes import VoteSettings

CONFIG = "configs/bio_mrc.py"

MarkedWindows = tuple[Passages, list[Pieces], SpanTags]  # the annotators' tags of the pieces


@dataclasses.dataclass(frozen=True)
class Job(QuestionsJob):
    """Questions and spans; see `tasks.job.ExamplesJob`."""

    train: Questions
    validation: Questions | None
    options: BioMrcOptions
    files: QuestionSettings
    voting: VoteSettings
    names: tuple[str, ...]  # of the metrics that are logged
    loss: TokenLabels
    choice: Choice | None = None
    labels: tuple[str, ...] = TAGS
    fresh: tuple[str, ...] = ("token_classifier",)

    def task(self, config: ModelConfig) -> TokenLabels:
        return self.loss

    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        cut, pieces_N, marked = self._windows(self.train, tokenizer, "training")
        counts_KC = bio_scores.vote_counts(marked, pieces_N, self.voting.weights)
        target_KC, voted_K = votes.target(counts_KC, self.voting, bio_scores.OUTSIDE)
        targets = np.empty_like(target_KC)
        targets[:, bio_mrc.columns_of(self.labels, "the model")] = target_KC
        return TrainingBatches(windows_with_targets(cut, targets, voted_K.astype(np.float32)), settings)

    def encode(self, part: Questions, tokenizer: Tokenizer) -> MarkedWindows:
        return self._windows(part, tokenizer, "validation")

    def _windows(self, part: Questions, tokenizer: Tokenizer, name: str) -> MarkedWindows:
        cut, pieces_N = questions.windows_of(part.rows, tokenizer, self.options)
        marked = mark(part.rows, pieces_N)
        if marked.report:
            logging.warning("%s: %s", name, marked.report)
        return cut, pieces_N, marked

    def score(self, scorer: Scorer, part: Questions, encoded: MarkedWindows) -> Metrics:
        cut, pieces_N, marked = encoded
        p_KC = bio_mrc.probabilities(scorer, cut, self.options)
        scores, _ = bio_scores.score(p_KC, cut.starts, part.rows, pieces_N, marked, self.voting.weights, self.options)
        values = {name: scores[name].value for name in dict.fromkeys((*self.names, bio_scores.LOSS))}
        return values | bio_scores.constant(bio_mrc.spans(p_KC, cut.starts, self.options), scores)


def read(config: ConfigDict, *, equal_apart: bool = False) -> Job:
    """The job that the settings of configs/bio_mrc.py describe; ``equal_apart``: see `tasks.job.as_begun`."""
    options = settings_of(BioMrcOptions, config)
    voting = votes.settings_of(config)
    loss = TokenLabels(len(TAGS), config.loss_per, dropout_rate(config), config.label_smoothing)
    names = metric_names(config.metrics, bio_scores.USUAL, bio_scores.NAMES)
    files = settings_of(QuestionSettings, config)
    train, validation, files = question_parts(config, files, equal_apart)
    everyone = [*train.rows, *(validation.rows if validation else [])]
    known = {gold.annotator for row in everyone for gold in row.golds}
    votes.check_names(voting, sorted(known))
    choice = choice_of(config, names, bio_scores.LOWER_IS_BETTER, validation, bio_scores.LOSS)
    return Job(train, validation, options, files, voting, names, loss, choice)
