"""Metrics of tags of words against those of one or several annotators. Axes: K word of all sentences, C tag."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from bert import bio_tags
from bert.bio_tags import are_bio
from bert.training.evaluate import Metrics
from tasks import votes
from tasks.metrics import agreement, constant_predictions, entity_metrics
from tasks.metrics.agreement import AnnotatorScores
from tasks.metrics.score import Score
from tasks.tagging.tag_schemes import TaggedSentence
from tasks.votes import NONE

LOSS = "cross_entropy"  # that is trained, per word
LOWER_IS_BETTER = tuple(agreement.OF_VOTES)
_OF_ENTITIES = ("f1", "precision", "recall", "strict_f1", "macro_f1")
_ALWAYS = ("accuracy", *LOWER_IS_BETTER, "n", "n_sentences")


def known_metrics(labels: Sequence[str]) -> tuple[str, ...]:
    """Names of the metrics that these tags have."""
    return (*_OF_ENTITIES, *_of_types(labels), *_ALWAYS, *agreement.OF_ANNOTATORS) if are_bio(labels) else _ALWAYS


def default_metrics(labels: Sequence[str], several: bool) -> tuple[str, ...]:
    """The usual names, the one that chooses the best evaluation first; ``several``: there are several annotators."""
    if not are_bio(labels):
        return ("accuracy", "cross_entropy", "n")
    if several:
        return ("cross_entropy", "kl", "f1", "annotator_mean", "annotator_human", "accuracy", "n")
    return ("f1", "precision", "recall", "strict_f1", "accuracy", "cross_entropy", "n")


def outside(labels: Sequence[str]) -> int | None:
    """Index of the tag O."""
    return list(labels).index("O") if "O" in labels else None


def vote_counts(rows: Sequence[TaggedSentence], labels: Sequence[str], weights: Mapping[str, float]) -> np.ndarray:
    """float64 [K, C]: the annotators' votes for each tag of each word."""
    index: dict[str | None, int] = {label: i for i, label in enumerate(labels)} | {None: NONE}
    counts = [np.zeros((0, len(labels)))]
    for row in rows:
        tags = [(name, np.array([index[tag] for tag in row_tags])) for name, row_tags in row.annotations]
        counts.append(votes.counts(tags, len(labels), weights) if tags else np.zeros((len(row.words), len(labels))))
    return np.concatenate(counts)


def score(
    p_KC: np.ndarray,
    predicted: Sequence[Sequence[str]],
    rows: Sequence[TaggedSentence],
    labels: Sequence[str],
    weights: Mapping[str, float],
) -> dict[str, Score]:
    """Every metric of `known_metrics`.

    accuracy, precision, recall, f1, macro_f1, f1:TYPE (entities by seqeval's lenient rule), strict_f1 (by IOB2):
      against the tag that most annotators gave, see `majority_tags`. Words that nobody tagged are not compared.
    cross_entropy, kl, brier, calibration_error: a word, against the shares of the votes.
    annotator_*: F1 of entities with each annotator: their mean (by sentences), the best, that with the majority (f1),
      that of the annotators with each other, and Fleiss' kappa of their tags; weights play no part.

    Args:
      p_KC: float [K, C], probabilities of each word's tags. predicted: the tags of each sentence.
    """
    counts_KC = vote_counts(rows, labels, weights)
    scores, voted_K = agreement.against_votes(counts_KC, p_KC, outside(labels))
    gold_N = majority_tags(counts_KC, [len(row.words) for row in rows], labels)
    flat = np.array([tag for tags in predicted for tag in tags], dtype=object)
    right_K = flat == np.array([tag for tags in gold_N for tag in tags], dtype=object)
    words = float(voted_K.sum())
    scores |= {
        "accuracy": Score(float(right_K[voted_K].mean())) if words else Score(None, "no word is tagged"),
        "n": Score(words),
        "n_sentences": Score(float(sum(bool(row.annotations) for row in rows))),
    }
    if are_bio(labels):
        scores |= _entities(gold_N, predicted, labels)
        beside = beside_annotators(rows, predicted)
        scores |= agreement.summary(beside, scores["f1"], vote_counts(rows, labels, {}))
    return {name: scores[name] for name in known_metrics(labels)}


def constant(predicted: Sequence[Sequence[str]], scores: Mapping[str, Score]) -> Metrics:
    """The note on a tagger that gives every word the same tag (constant_predictions.py); ``scores``: of these."""
    tags = [tag for sentence in predicted for tag in sentence]
    answer = constant_predictions.only(tags) if scores["accuracy"].value != 1 else None
    return constant_predictions.noted(answer, len(tags))


def by_type(
    gold_N: Sequence[Sequence[str | None]], predicted: Sequence[Sequence[str]], labels: Sequence[str]
) -> dict[str, dict[str, Score]]:
    """precision, recall, f1, support and predicted of each type of entity, of tags without entities of each tag.

    By seqeval's lenient rule; words without a gold tag (see `majority_tags`) are not compared.
    """
    if are_bio(labels):
        pairs = _tagged_pairs(gold_N, predicted)
        return entity_metrics.scores_by_type([gold for gold, _ in pairs], [tags for _, tags in pairs])
    gold = np.array([tag or "" for tags in gold_N for tag in tags])
    predicted_K = np.where(gold == "", "", np.array([tag for tags in predicted for tag in tags]))
    scores = {}
    for label in labels:
        is_gold, is_predicted = gold == label, predicted_K == label
        hits, wanted, marked = (int(rows.sum()) for rows in (is_gold & is_predicted, is_gold, is_predicted))
        scores[label] = entity_metrics.type_scores(hits, wanted, marked, label)
    return scores


def beside_annotators(rows: Sequence[TaggedSentence], predicted: Sequence[Sequence[str]]) -> AnnotatorScores:
    """The predicted tags against each annotator's; see `agreement.annotator_scores`."""
    return agreement.annotator_scores([dict(row.annotations) for row in rows], predicted)


def majority_tags(counts_KC: np.ndarray, lengths: Sequence[int], labels: Sequence[str]) -> list[list[str | None]]:
    """For each sentence the tags that most annotators gave, None where none did; of equally many O, else the first of
    the labels. An I that continues nothing is made a B."""
    best_K = votes.majority(counts_KC, outside(labels))
    names = [labels[i] if voted else None for i, voted in zip(best_K, counts_KC.sum(1) > 0, strict=True)]
    ends = np.cumsum(lengths)
    tags_N = [names[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    if are_bio(labels):
        for tags in tags_N:
            for run in _tagged_runs(tags):
                tags[run] = bio_tags.repaired(tags[run])
    return tags_N


def _tagged_runs(tags: Sequence[str | None]) -> list[slice]:
    """Where words with a tag follow each other."""
    runs, place = [], 0
    for tagged, group in itertools.groupby(tags, lambda tag: tag is not None):
        start, place = place, place + len(list(group))
        runs += [slice(start, place)] * tagged
    return runs


def _entities(
    gold_N: Sequence[Sequence[str | None]], predicted: Sequence[Sequence[str]], labels: Sequence[str]
) -> dict[str, Score]:
    pairs = _tagged_pairs(gold_N, predicted)
    gold_runs, runs = [gold for gold, _ in pairs], [tags for _, tags in pairs]
    lenient = entity_metrics.entity_scores(gold_runs, runs, "lenient")
    strict = entity_metrics.entity_scores(gold_runs, runs, "strict")
    scores = {name: lenient[name] for name in ("precision", "recall", "f1", "macro_f1")} | {"strict_f1": strict["f1"]}
    absent = Score(None, "neither there nor predicted")
    return scores | {name: lenient.get(name, absent) for name in _of_types(labels)}


def _tagged_pairs(
    gold_N: Sequence[Sequence[str | None]], predicted: Sequence[Sequence[str]]
) -> list[tuple[list[str], Sequence[str]]]:
    """(gold tags, predicted tags) of each run of words that have a gold tag."""
    return [
        ([str(tag) for tag in gold[run]], tags[run])
        for gold, tags in zip(gold_N, predicted, strict=True)
        for run in _tagged_runs(gold)
    ]


def _of_types(labels: Sequence[str]) -> tuple[str, ...]:
    kinds = dict.fromkeys(bio_tags.parse(label)[1] for label in labels if label != "O")
    return tuple(f"f1:{kind}" for kind in kinds if kind)
