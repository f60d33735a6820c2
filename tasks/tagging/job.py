"""A tag for each word of a sentence, by one annotator or by the votes of several: columns, json lines, crowds.

Files: tagged.py. Votes: tasks/votes.py. Loss: tasks/token_labels.py. Scores: tag_scores.py. Prediction:
bert/prediction/tagging.py. Axes: K word of all sentences, C tag.
"""

import dataclasses
import functools
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict

from bert import bio_tags
from bert.architectures import ModelConfig
from bert.data.encoded_examples import EncodedExamples, ExampleSettings, TrainingBatches
from bert.errors import InputError, check_choice
from bert.prediction import tagging
from bert.prediction.scores import Scorer
from bert.prediction.tagging import Sentences, TaggingOptions
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from tasks import votes
from tasks.files import equal_texts
from tasks.job import ExamplesJob, choice_of, dropout_rate, metric_names, read_parts, settings_of
from tasks.tagging import tag_scores
from tasks.tagging.tag_schemes import TaggedRows, TaggedSentence, TagSettings
from tasks.tagging.tagged import read_tagged, split
from tasks.token_labels import TokenLabels, windows_with_targets
from tasks.votes import VoteSettings

LABELLED_PIECES = ("first", "all")
CONFIG = "configs/tagging.py"


@dataclasses.dataclass(frozen=True)
class Job(ExamplesJob):
    """Sentences and tags; see `tasks.job.ExamplesJob`."""

    train: TaggedRows
    validation: TaggedRows | None
    options: TaggingOptions
    files: TagSettings
    voting: VoteSettings
    names: tuple[str, ...]  # of the metrics that are logged
    loss: TokenLabels
    labelled_pieces: str = "first"  # which pieces of a word have its target: the first, or all
    labels: tuple[str, ...] = ()
    choice: Choice | None = None
    fresh: tuple[str, ...] = ("token_classifier",)
    unit = "words"
    compared = "sentences"

    def task(self, config: ModelConfig) -> TokenLabels:
        return self.loss

    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        counts_KC = tag_scores.vote_counts(self.train.rows, self.labels, self.voting.weights)
        target_KC, voted_K = votes.target(counts_KC, self.voting, tag_scores.outside(self.labels))
        sentences, all_pieces = self.encode(self.train, tokenizer), self.labelled_pieces == "all"
        return TrainingBatches(with_targets(sentences, target_KC, voted_K, self.labels, all_pieces), settings)

    def encode(self, part: TaggedRows, tokenizer: Tokenizer) -> Sentences:
        return tagging.windows_of([row.words for row in part.rows], tokenizer, self.options)

    def score(self, scorer: Scorer, part: TaggedRows, encoded: Sentences) -> Metrics:
        p_KC = tagging.probabilities(scorer, encoded, self.options)
        predicted = tagging.tags(p_KC, encoded.starts, self.labels, self.options)
        scores = tag_scores.score(p_KC, predicted, part.rows, self.labels, self.voting.weights)
        values = {name: scores[name].value for name in dict.fromkeys((*self.names, tag_scores.LOSS))}
        return values | tag_scores.constant(predicted, scores)

    def keys_of(self, part: TaggedRows) -> Iterable[Hashable]:
        return (equal_texts.key_of([" ".join(row.words)]) for row in part.rows)

    def contents(self, part: TaggedRows) -> Iterable[Any]:
        return ((row.words, row.annotations) for row in part.rows)


def with_targets(
    sentences: Sentences, target_KC: np.ndarray, voted_K: np.ndarray, labels: Sequence[str], all_pieces: bool
) -> EncodedExamples:
    """The windows with each word's target at its first piece, or at all of its pieces, where B-X continues as I-X.

    Args:
      target_KC, voted_K: float32 distributions and bool, of the words.
    """
    pieces = len(sentences.passages.place_K)
    word_of = np.searchsorted(sentences.first_K, np.arange(pieces), side="right") - 1
    is_first = np.isin(np.arange(pieces), sentences.first_K)
    targets = target_KC[word_of]
    for begin, label in enumerate(labels):
        prefix, kind = bio_tags.parse(label)
        inner = f"I-{kind}" if kind else "I"
        if prefix == "B" and inner in labels:
            moved = np.where(is_first, 0.0, targets[:, begin])
            targets[:, begin] -= moved
            targets[:, labels.index(inner)] += moved
    weights = voted_K[word_of] & (is_first | all_pieces)
    return windows_with_targets(sentences.passages, targets, weights.astype(np.float32))


def labels_of(rows: Sequence[TaggedSentence], scheme: str = "plain") -> tuple[str, ...]:
    """The tags of the sentences: O first, then by type, B before I; of B/I/O tags both of each type that occurs.

    Unless the scheme is plain, O is among them, though in some files each word is in an entity.
    """
    tags = {tag for row in rows for _, row_tags in row.annotations for tag in row_tags if tag is not None}
    tags |= set() if scheme == "plain" else {"O"}
    if bio_tags.are_bio(tuple(tags)):
        kinds = {bio_tags.parse(tag)[1] for tag in tags if tag != "O"}
        tags |= {f"{prefix}-{kind}" if kind else prefix for kind in kinds for prefix in "BI"}
    return tuple(sorted(tags, key=lambda tag: (tag != "O", bio_tags.parse(tag)[::-1], tag)))


def check_labels(rows: Sequence[TaggedSentence], labels: Sequence[str]) -> None:
    """Refuses a tag that the training sentences, or the model, do not have, by its place."""
    known = set(labels)
    for row in rows:
        for _, tags in row.annotations:
            for word, tag in zip(row.words, tags, strict=True):
                if tag is not None and tag not in known:
                    what = f"the word {word!r} of this sentence has the tag {tag!r}; known are {', '.join(labels)}"
                    raise InputError(f"{row.place}: {what}; correct it, or train with sentences that have it")


def read(config: ConfigDict, *, equal_apart: bool = False) -> Job:
    """The job that the settings of configs/tagging.py describe; ``equal_apart``: see `tasks.job.as_begun`."""
    check_choice("config.labelled_pieces", config.labelled_pieces, LABELLED_PIECES)
    options, rate = settings_of(TaggingOptions, config), dropout_rate(config)
    voting = votes.settings_of(config)
    files = settings_of(TagSettings, config)
    reader = functools.partial(read_tagged, settings=files, labelled="needed")
    train, validation = read_parts(config, "sentences", reader, split, equal_apart=equal_apart)
    rows = [*train.rows, *(validation.rows if validation else [])]
    votes.check_names(voting, sorted({name for row in rows for name, _ in row.annotations}))
    labels = labels_of(train.rows if config.validation else rows, files.scheme)
    if validation:
        check_labels(validation.rows, labels)
    several = any(len(row.annotations) > 1 for row in train.rows)
    usual, known = tag_scores.default_metrics(labels, several), tag_scores.known_metrics(labels)
    names = metric_names(config.metrics, usual, known)
    choice = choice_of(config, names, tag_scores.LOWER_IS_BETTER, validation, tag_scores.LOSS)
    loss = TokenLabels(len(labels), config.loss_per, rate, config.label_smoothing)
    return Job(train, validation, options, files, voting, names, loss, config.labelled_pieces, labels, choice)
