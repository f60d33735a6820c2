"""Reading comprehension by B/I/O tags, trained on the votes of several annotators; any number of answers a question.

L = -sum_i sum_j t_ij log p_ij over the tokens i of the passage, where t_i is the share of annotators who gave token i
each tag. Reading files is in reading/questions.py, votes in votes.py, scores in bio_scores.py, the loss in
token_labels.py; what prediction needs besides weights is bert/prediction/bio_spans.py.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging
from ml_collections import ConfigDict

from bert.config import BertConfig
from bert.data.examples import ExampleSettings, TrainingBatches
from bert.errors import InputError
from bert.prediction import bio_spans, questions, scores
from bert.prediction.bio_spans import TAGS, BioReading
from bert.prediction.questions import Asked
from bert.prediction.scores import Devices
from bert.text.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from tasks import bio_scores, votes
from tasks.job import chosen_metric, fingerprint_of, report_of
from tasks.reading import questions as files
from tasks.reading.questions import Question, Questions, QuestionSettings
from tasks.sources import listed
from tasks.token_labels import TokenLabels, windows_with_targets
from tasks.votes import VoteSettings

DEFAULT_METRIC = "cross_entropy"
FILES = tuple(field.name for field in dataclasses.fields(QuestionSettings))  # settings of how files are read


@dataclasses.dataclass(frozen=True)
class Job:
    """Questions and spans, read and checked; see `tasks.job.Job`."""

    train: Questions
    validation: Questions | None
    reading: BioReading
    voting: VoteSettings
    names: tuple[str, ...]  # of the metrics that are logged
    choice: Choice | None
    loss: TokenLabels
    files: Mapping[str, Any]  # how files are read, for config.json
    labels: tuple[str, ...] = TAGS
    fresh: tuple[str, ...] = ("token_classifier",)

    @property
    def report(self) -> str:
        return report_of(self.train, self.validation)

    @property
    def fingerprint(self) -> str:
        parts = [part.rows if part else [] for part in (self.train, self.validation)]
        return fingerprint_of([[(r.question, r.context, r.annotations) for r in rows] for rows in parts])

    def with_labels(self, labels: Sequence[str]) -> "Job":
        return dataclasses.replace(self, labels=tuple(labels))

    def task(self, config: BertConfig) -> TokenLabels:
        return self.loss

    def extra(self, scores: Metrics) -> dict[str, Any]:
        return self.reading.to_json() | {"files": dict(self.files)}

    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        rows = self.train.rows
        cut, pieces_N = questions.windows_of(asked_of(rows), tokenizer, self.reading)
        marked = bio_scores.mark(rows, pieces_N)
        if marked.report:
            logging.warning("training: %s", marked.report)
        counts_KC = bio_scores.vote_counts(marked, pieces_N, self.voting.weights)
        target_KC, voted_K = votes.target(counts_KC, self.voting, bio_scores.OUTSIDE)
        order = bio_spans.columns_of(self.labels, "the model")
        targets = np.empty_like(target_KC)
        targets[:, order] = target_KC
        return TrainingBatches(windows_with_targets(cut, targets, voted_K.astype(np.float32)), settings)

    def evaluator(
        self, tokenizer: Tokenizer, config: BertConfig, settings: ExampleSettings, devices: Devices
    ) -> Callable[[dict], Metrics]:
        assert self.validation is not None
        rows = self.validation.rows
        cut, pieces_N = questions.windows_of(asked_of(rows), tokenizer, self.reading)
        marked, order = bio_scores.mark(rows, pieces_N), bio_spans.columns_of(self.labels, "the model")
        if marked.report:
            logging.warning("validation: %s", marked.report)

        def evaluate(params: dict) -> Metrics:
            logits_KC = scores.of_tokens(params, config, cut.encoded, settings, devices)[cut.place_K]
            p_KC = scores.softmax(logits_KC[:, order])
            found = bio_scores.score(p_KC, cut.starts, rows, pieces_N, marked, self.voting.weights, self.reading)
            return {name: found[name].value for name in self.names}

        return evaluate

    def baseline(self) -> Metrics:
        return {}


def asked_of(rows: Sequence[Question]) -> list[Asked]:
    return [Asked(row.question, row.context, f"{row.place}: question {row.id}") for row in rows]


def read(config: ConfigDict) -> Job:
    """The job that the settings of configs/bio_mrc.py describe.

    Raises:
      InputError: whatever is wrong with files, annotations or settings, by name.
    """
    if not config.data:
        raise InputError("config.data is missing; name the file with the questions")
    reading = BioReading(**{field.name: config[field.name] for field in dataclasses.fields(BioReading)})
    voting = VoteSettings(votes.weights_from(config.annotator_weights), config.votes)
    loss = TokenLabels(len(TAGS), config.loss_per, config.classifier_dropout)
    names = listed(config.metrics) or (DEFAULT_METRIC, "kl", "exact_match", "f1", "exact_f1", "overlap_f1",
                                       "annotator_mean", "annotator_human", "n")  # fmt: skip
    bio_scores.check_names(names)
    choosing = chosen_metric(config.metric, names)
    kept = {name: config[name] for name in FILES}
    train, validation = read_parts(config, QuestionSettings(**kept))
    everyone = [*train.rows, *(validation.rows if validation else [])]
    known = {annotation.annotator for row in everyone for annotation in row.annotations}
    votes.check_names(voting, sorted(known))
    larger = choosing not in bio_scores.LOWER_IS_BETTER
    choice = Choice(choosing, larger, config.patience) if validation else None
    return Job(train, validation, reading, voting, names, choice, loss, kept)


def read_parts(config: ConfigDict, settings: QuestionSettings) -> tuple[Questions, Questions | None]:
    """Training and validation questions: two files, or one of which whole articles are split off."""
    train = files.read_questions(config.data, settings, labelled="needed")
    if config.validation:
        return train, files.read_questions(config.validation, settings, labelled="needed")
    if config.validation_share:
        return files.split(train, config.validation_share, config.seed)
    return train, None
