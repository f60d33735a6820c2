"""Metrics against several annotators who may disagree: distance to their votes, calibration, agreement among them.

Pure functions of arrays and tags; no files, no model. A target row has the share of votes of each class (two of three
annotators: 2/3). Rows of zeros (no vote) and rows with weight 0 do not count. Values are weighted means over the tokens
that count; None with a reason if there are none, or if a prediction is not finite. Invalid arrays raise ValueError.
Axes: N tokens, C classes.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypedDict

import numpy as np

from tasks import votes
from tasks.metrics.entity_metrics import check_taggings, compare, ratios
from tasks.metrics.score import Score
from tasks.votes import VoteSettings

OF_ANNOTATORS = ("annotator_mean", "annotator_best", "annotator_majority", "annotator_human", "annotator_kappa")
_ROUNDING = 1e-3  # how far from 1 the sum of shares may be that were rounded, or computed in few bits


def cross_entropy(target_NC: np.ndarray, predicted_NC: np.ndarray, weights_N: np.ndarray | None = None) -> Score:
    """Mean over tokens of -sum over classes of vote share times log predicted share, in nats.

    A share that rounded to 0 counts as the smallest one of its dtype, so that the value stays finite.
    """
    target_NC, predicted_NC, weights_N = _checked(target_NC, predicted_NC, weights_N)
    return _mean(-(target_NC * np.log(predicted_NC)).sum(axis=1), weights_N)


def kl(target_NC: np.ndarray, predicted_NC: np.ndarray, weights_N: np.ndarray | None = None) -> Score:
    """Cross-entropy less the entropy of the votes, in nats: 0 where the prediction is the vote distribution."""
    target_NC, predicted_NC, weights_N = _checked(target_NC, predicted_NC, weights_N)
    logs_NC = np.log(np.where(target_NC > 0, target_NC, 1.0))
    return _mean((target_NC * (logs_NC - np.log(predicted_NC))).sum(axis=1), weights_N)


def brier(target_NC: np.ndarray, predicted_NC: np.ndarray, weights_N: np.ndarray | None = None) -> Score:
    """Mean over tokens of the sum over classes of squared difference to the vote distribution, from 0 to 2.

    Source: Brier 1950, which sums over classes; halve it for the form of two classes that counts one of them.
    """
    target_NC, predicted_NC, weights_N = _checked(target_NC, predicted_NC, weights_N)
    return _mean(((predicted_NC - target_NC) ** 2).sum(axis=1), weights_N)


def vote_share(target_NC: np.ndarray, predicted_NC: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(share of the votes for the class with the largest prediction, that prediction), both float64 [N]."""
    best_N1 = predicted_NC.argmax(axis=1)[:, None]
    share_N1, confidence_N1 = (np.take_along_axis(array, best_N1, axis=1) for array in (target_NC, predicted_NC))
    return share_N1[:, 0].astype(np.float64), confidence_N1[:, 0].astype(np.float64)


def calibration_error(
    share_N: np.ndarray, confidence_N: np.ndarray, weights_N: np.ndarray | None = None, bins: int = 10
) -> Score:
    """Expected calibration error: mean over tokens of |mean share - mean confidence| of the token's bin.

    Bins are equally wide and take their upper end; 0 is in the first. Source: Guo et al. 2017, section 2, with shares
    of votes (see `vote_share`) in the place of right and wrong.

    Args:
      weights_N: give 0 to tokens without a vote, for their share of 0 says nothing.
    """
    share_N, confidence_N = np.asarray(share_N, np.float64), np.asarray(confidence_N, np.float64)
    if share_N.ndim != 1 or share_N.shape != confidence_N.shape or bins < 1:
        raise ValueError(f"shares {share_N.shape}, confidences {confidence_N.shape} must be (tokens,), {bins=} >= 1")
    weights_N = _weights(weights_N, len(share_N))
    counts_N = weights_N > 0
    share_N, confidence_N, weights_N = share_N[counts_N], confidence_N[counts_N], weights_N[counts_N]
    if not np.isfinite(confidence_N).all() or not len(weights_N):
        return _mean(confidence_N, weights_N)
    for name, values_N in (("shares", share_N), ("confidences", confidence_N)):
        if not ((values_N >= -_ROUNDING) & (values_N <= 1 + _ROUNDING)).all():
            raise ValueError(f"{name} from {values_N.min()} to {values_N.max()} must be between 0 and 1")
    bin_N = np.clip(np.searchsorted(np.linspace(0, 1, bins + 1), confidence_N) - 1, 0, bins - 1)
    gap_B = np.bincount(bin_N, weights_N * (share_N - confidence_N), minlength=bins)
    return Score(float(np.abs(gap_B).sum() / weights_N.sum()))


def fleiss_kappa(counts_NC: np.ndarray) -> Score:
    """Agreement of annotators beyond chance, from the number of votes for each class; 1 is full agreement.

    With n_i votes for item i, n_ij of them for class j: P_i = sum_j n_ij (n_ij - 1) / (n_i (n_i - 1)), P is the mean of
    P_i over items, p_j = sum_i n_ij / sum_i n_i, E = sum_j p_j^2, and kappa = (P - E) / (1 - E). This is Fleiss' form
    where all n_i are equal, extended to items with other numbers of votes. Items with fewer than two votes say nothing
    about agreement; they are left out, and the note counts them. Which annotator gave a vote plays no part.

    Source: Fleiss 1971, equations 1 to 7.
    """
    counts_NC = np.asarray(counts_NC, np.float64)
    if counts_NC.ndim != 2 or not ((counts_NC >= 0) & (counts_NC == np.round(counts_NC))).all():
        raise ValueError(f"{counts_NC.shape} counts must be (items, classes) of whole numbers; votes, not shares")
    votes_N = counts_NC.sum(axis=1)
    several_N = votes_N >= 2
    if not several_N.any():
        return Score(None, "no item has two votes")
    counts_NC, votes_N = counts_NC[several_N], votes_N[several_N]
    agreed = float(((counts_NC * (counts_NC - 1)).sum(axis=1) / (votes_N * (votes_N - 1))).mean())
    by_chance = float(((counts_NC.sum(axis=0) / votes_N.sum()) ** 2).sum())
    if (counts_NC.sum(axis=0) > 0).sum() == 1:
        return Score(None, "all votes are for one class")
    left_out = int((~several_N).sum())
    note = f"{left_out:,} of {len(several_N):,} items with fewer than two votes left out" if left_out else None
    return Score((agreed - by_chance) / (1 - by_chance), note)


# Metrics of tokens against the shares of the votes; calibration is that of the tag with the largest prediction.
OF_VOTES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Score]] = {
    "cross_entropy": cross_entropy,
    "kl": kl,
    "brier": brier,
    "calibration_error": lambda target_NC, p_NC, weights_N: calibration_error(*vote_share(target_NC, p_NC), weights_N),
}


def against_votes(
    counts_NC: np.ndarray, predicted_NC: np.ndarray, outside: int | None
) -> tuple[dict[str, Score], np.ndarray]:
    """(the metrics of `OF_VOTES`, bool [N]: whether a token has a vote), from the annotators' weighted votes.

    ``outside``: as in `votes.target`.
    """
    target_NC, voted_N = votes.target(counts_NC, VoteSettings(), outside)
    weights_N = voted_N.astype(np.float64)
    return {name: metric(target_NC, predicted_NC, weights_N) for name, metric in OF_VOTES.items()}, voted_N


class AnnotatorScore(NamedTuple):
    """The model against one annotator. n_sentences: those in which the annotator tagged a word."""

    f1: Score
    n_sentences: int


class AnnotatorScores(TypedDict):
    """See `annotator_scores`."""

    annotators: dict[str, AnnotatorScore]
    mean: Score
    weighted_mean: Score
    best: Score
    human: Score


def annotator_scores(
    tags_by_annotator: Sequence[Mapping[str, Sequence[str | None]]], predicted: Sequence[Sequence[str]]
) -> AnnotatorScores:
    """F1 of the predicted tags against each annotator, and of the annotators against each other.

    mean: over annotators. weighted_mean: the same, weighted by their sentences; this is what to hold against human,
    which is weighted likewise. best: of the annotator whom the model agrees with most, named in its note; with few
    sentences this is luck. human: `human_agreement`.

    Args:
      tags_by_annotator: for each sentence, annotator -> a tag for each word, None where the annotator gave none.
        Words that one side did not tag are not compared; they end an entity.
    """
    check_taggings(tags_by_annotator, predicted)
    sums = {name: np.zeros(4) for name in sorted({name for sentence in tags_by_annotator for name in sentence})}
    for sentence, tags in zip(tags_by_annotator, predicted, strict=True):
        for name, annotated in sentence.items():
            sums[name] += compare(annotated, tags)
    each = {name: AnnotatorScore(_f1(counts), int(counts[3])) for name, counts in sums.items()}
    known = {name: (f1.value, n) for name, (f1, n) in each.items() if f1.value is not None}
    missing = len(each) - len(known)
    note = f"{missing:,} of {len(each):,} annotators without an F1 left out" if missing else None
    top = max(known, key=lambda name: known[name], default="")
    best = Score(known[top][0], f"annotator {top}, texts: {known[top][1]:,}") if known else _weighted([], None)
    return {
        "annotators": each,
        "mean": _weighted([(value, 1) for value, _ in known.values()], note),
        "weighted_mean": _weighted(list(known.values()), note),
        "best": best,
        "human": human_agreement(tags_by_annotator),
    }


def summary(scores: AnnotatorScores, majority: Score, counts_NC: np.ndarray) -> dict[str, Score]:
    """The metrics of `OF_ANNOTATORS`; ``majority``: F1 with it; ``counts_NC``: the votes, each counting 1."""
    values = (scores["weighted_mean"], scores["best"], majority, scores["human"], fleiss_kappa(counts_NC))
    return dict(zip(OF_ANNOTATORS, values, strict=True))


def human_agreement(tags_by_annotator: Sequence[Mapping[str, Sequence[str | None]]]) -> Score:
    """Mean over pairs of annotators of the F1 of one against the other, weighted by the sentences that they share.

    The F1 of a pair is over all the sentences in which both tagged a word; it does not matter who is taken for gold.
    Pairs where neither marked anything have none; the note counts them.
    """
    check_taggings(tags_by_annotator, None)
    sums: dict[tuple[str, str], np.ndarray] = {}
    for sentence in tags_by_annotator:
        for pair in combinations(sorted(sentence), 2):
            counts = compare(sentence[pair[0]], sentence[pair[1]])
            if counts[3]:
                sums[pair] = sums.get(pair, 0) + np.array(counts)
    values = [(f1.value, int(counts[3])) for counts in sums.values() if (f1 := _f1(counts)).value is not None]
    if not values:
        return Score(None, "no two annotators marked anything in the same texts")
    missing = len(sums) - len(values)
    left_out = f"; without an F1, left out: {missing:,}" if missing else ""
    return _weighted(values, f"pairs: {len(values):,}{left_out}")


def _checked(
    target_NC: np.ndarray, predicted_NC: np.ndarray, weights_N: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows that count, in float64; shares of 0 that are predicted as the smallest one of their dtype."""
    if target_NC.ndim != 2 or target_NC.shape != predicted_NC.shape:
        raise ValueError(f"targets {target_NC.shape}, predictions {predicted_NC.shape} must both be (tokens, classes)")
    if not np.issubdtype(predicted_NC.dtype, np.floating):
        raise ValueError(f"predictions are {predicted_NC.dtype}; they must be floating-point shares")
    weights_N = _weights(weights_N, len(target_NC))
    rows = np.flatnonzero((weights_N > 0) & (target_NC != 0).any(axis=1))
    wanted_NC, shares_NC = target_NC[rows].astype(np.float64), predicted_NC[rows].astype(np.float64)
    shares_NC[~np.isfinite(shares_NC)] = np.nan  # an infinity would warn on its way to no value
    for name, values_NC in (("target", wanted_NC), ("prediction", shares_NC)):
        off_N = ~(np.abs(values_NC.sum(axis=1) - 1) <= _ROUNDING) | (values_NC < 0).any(axis=1)
        if name == "prediction":
            off_N &= ~np.isnan(values_NC).any(axis=1)  # such a run went wrong; the score says so
        if off_N.any():
            raise ValueError(f"{name} {rows[off_N.argmax()]} must hold shares that sum to 1; no counts, no logits")
    return wanted_NC, np.maximum(shares_NC, float(np.finfo(predicted_NC.dtype).tiny)), weights_N[rows]


def _weights(weights_N: np.ndarray | None, count: int) -> np.ndarray:
    weights_N = np.ones(count) if weights_N is None else np.asarray(weights_N, np.float64)
    if weights_N.shape != (count,) or not (np.isfinite(weights_N).all() and (weights_N >= 0).all()):
        raise ValueError(f"weights {weights_N.shape} must be ({count},), none negative or NaN")
    return weights_N


def _mean(values_N: np.ndarray, weights_N: np.ndarray) -> Score:
    if not len(values_N):
        return Score(None, "no token has a vote")
    broken = len(values_N) - int(np.isfinite(values_N).sum())
    if broken:
        return Score(None, f"{broken:,} of {len(values_N):,} tokens have predictions that are not finite")
    return Score(float((values_N * weights_N).sum() / weights_N.sum()))


def _f1(sums: np.ndarray) -> Score:
    hits, wanted, predicted, sentences = sums.tolist()
    return ratios(hits, wanted, predicted, "any type")["f1"] if sentences else Score(None, "no text has a tag")


def _weighted(values: Sequence[tuple[float, int]], note: str | None) -> Score:
    weight = sum(count for _, count in values)
    total = sum(value * count for value, count in values)
    return Score(total / weight, note) if weight else Score(None, "no annotator has an F1")
