"""Reading comprehension by B/I/O tags, trained on the votes of several annotators; any number of answers a question.

L = -sum_i sum_j t_ij log p_ij over the tokens i of the passage, where t_i is the share of annotators who gave token i
each tag. Reading files is in tasks/questions/, votes in votes.py, scores in bio_scores.py, the loss in
token_labels.py; what prediction needs besides weights is bert/prediction/bio_mrc.py.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from absl import logging
from ml_collections import ConfigDict

from bert.architectures import ModelConfig
from bert.data.encoded_examples import ExampleSettings, TrainingBatches
from bert.prediction import bio_mrc, questions, scores
from bert.prediction.bio_mrc import TAGS, BioMrcOptions
from bert.prediction.scores import Devices
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from tasks import votes
from tasks.bio_mrc import bio_scores
from tasks.job import choice_of, dropout_rate, fingerprint_of, metric_names, read_parts, report_of, settings_of
from tasks.questions.question_rows import Questions, QuestionSettings
from tasks.questions.questions import for_scoring, for_training, passage_keys, placed, read_questions, split
from tasks.token_labels import TokenLabels, windows_with_targets
from tasks.votes import VoteSettings


@dataclasses.dataclass(frozen=True)
class Job:
    """Questions and spans, read and checked; see `tasks.job.Job`."""

    train: Questions
    validation: Questions | None
    options: BioMrcOptions
    voting: VoteSettings
    names: tuple[str, ...]  # of the metrics that are logged
    choice: Choice | None
    loss: TokenLabels
    files: QuestionSettings
    labels: tuple[str, ...] = TAGS
    fresh: tuple[str, ...] = ("token_classifier",)
    positive: str | None = None

    @property
    def report(self) -> str:
        return report_of(self.train, self.validation, "passages", passage_keys)

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.train, self.validation and placed(self.validation), lambda row: row.content)

    def with_labels(self, labels: Sequence[str]) -> "Job":
        return dataclasses.replace(self, labels=tuple(labels))

    def task(self, config: ModelConfig) -> TokenLabels:
        return self.loss

    def extra(self, scores: Metrics) -> dict[str, Any]:
        return self.options.to_json() | {"files": dataclasses.asdict(self.files)}

    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        rows = self.train.rows
        cut, pieces_N = questions.windows_of(rows, tokenizer, self.options)
        marked = bio_scores.mark(rows, pieces_N)
        if marked.report:
            logging.warning("training: %s", marked.report)
        counts_KC = bio_scores.vote_counts(marked, pieces_N, self.voting.weights)
        target_KC, voted_K = votes.target(counts_KC, self.voting, bio_scores.OUTSIDE)
        order = bio_mrc.columns_of(self.labels, "the model")
        targets = np.empty_like(target_KC)
        targets[:, order] = target_KC
        return TrainingBatches(windows_with_targets(cut, targets, voted_K.astype(np.float32)), settings)

    def evaluator(
        self, tokenizer: Tokenizer, config: ModelConfig, settings: ExampleSettings, devices: Devices
    ) -> Callable[[dict], Metrics]:
        assert self.validation is not None
        rows = self.validation.rows
        cut, pieces_N = questions.windows_of(rows, tokenizer, self.options)
        marked, order = bio_scores.mark(rows, pieces_N), bio_mrc.columns_of(self.labels, "the model")
        if marked.report:
            logging.warning("validation: %s", marked.report)

        def evaluate(params: dict) -> Metrics:
            logits_KC = scores.of_tokens(params, config, cut.encoded, settings, devices)[cut.place_K]
            p_KC = scores.softmax(logits_KC[:, order])
            found = bio_scores.score(p_KC, cut.starts, rows, pieces_N, marked, self.voting.weights, self.options)
            values = {name: found[name].value for name in dict.fromkeys((*self.names, bio_scores.LOSS))}
            return values | bio_scores.constant(bio_mrc.spans(p_KC, cut.starts, self.options), found)

        return evaluate

    def baseline(self) -> Metrics:
        return {}


def read(config: ConfigDict, *, equal_apart: bool = False) -> Job:
    """The job that the settings of configs/bio_mrc.py describe; ``equal_apart``: see `tasks.job.as_begun`."""
    options = settings_of(BioMrcOptions, config)
    voting = votes.settings_of(config)
    loss = TokenLabels(len(TAGS), config.loss_per, dropout_rate(config))
    names = metric_names(config.metrics, bio_scores.USUAL, bio_scores.NAMES)
    files = settings_of(QuestionSettings, config)
    splitting = functools.partial(split, equal_apart=equal_apart)
    train, validation = read_parts(
        config, "questions", lambda path: read_questions(path, files, labelled="needed"), splitting
    )
    train, validation = for_training(train), validation and for_scoring(validation)
    everyone = [*train.rows, *(validation.rows if validation else [])]
    known = {gold.annotator for row in everyone for gold in row.golds}
    votes.check_names(voting, sorted(known))
    choice = choice_of(config, names, bio_scores.LOWER_IS_BETTER, validation, bio_scores.LOSS)
    return Job(train, validation, options, voting, names, choice, loss, files)
