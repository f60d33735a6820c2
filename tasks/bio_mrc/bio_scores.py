"""Metrics of B/I/O probabilities of passages against the spans that annotators marked.

Axes: K piece of all passages, one after the other, C tag (B, I, O), N passage.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from bert.data import passages
from bert.prediction import bio_mrc
from bert.prediction.bio_mrc import TAGS, BioMrcOptions, Span
from bert.tokenizer.alignment import Pieces
from bert.training.evaluate import Metrics
from tasks import votes
from tasks.metrics import agreement, constant_predictions, span_metrics
from tasks.metrics.agreement import AnnotatorScores
from tasks.metrics.ratio_intervals import Ratio
from tasks.metrics.score import Score
from tasks.questions.answer_tokens import SpanTags
from tasks.questions.question_rows import Question

OUTSIDE = TAGS.index("O")
_NOTHING = "no question is annotated"
USUAL = (
    "cross_entropy", "kl", "exact_match", "f1", "exact_f1", "overlap_f1", "annotator_mean", "annotator_human", "n",
)  # fmt: skip
LOSS = "cross_entropy"  # that is trained, per token
LOWER_IS_BETTER = ("cross_entropy", "cross_entropy_per_example", "kl", "brier", "calibration_error")
NAMES = (
    *LOWER_IS_BETTER, "exact_match", "f1", "exact_precision", "exact_recall", "exact_f1", "overlap_precision",
    "overlap_recall", "overlap_f1", *agreement.OF_ANNOTATORS, "n", "n_tokens",
)  # fmt: skip


def vote_counts(marked: SpanTags, pieces_N: Sequence[Pieces], weights: Mapping[str, float]) -> np.ndarray:
    """float64 [K, 3]: the annotators' votes for each tag of each piece."""
    counts = [
        votes.counts(tags, len(TAGS), weights) if tags else np.zeros((len(pieces), len(TAGS)))
        for tags, pieces in zip(marked.tags_N, pieces_N, strict=True)
    ]
    return np.concatenate([np.zeros((0, len(TAGS))), *counts])


def score(
    p_KC: np.ndarray,
    starts: np.ndarray,
    rows: Sequence[Question],
    pieces_N: Sequence[Pieces],
    marked: SpanTags,
    weights: Mapping[str, float],
    options: BioMrcOptions,
) -> tuple[dict[str, Score], dict[str, Sequence[Ratio]]]:
    """Every metric of `NAMES`; and the ratios of sums over questions that some are (ratio_intervals.py).

    cross_entropy, kl, brier, calibration_error: a token, against the shares of the votes.
    cross_entropy_per_example: the mean over passages of L = -sum_i sum_j t_ij log p_ij.
    exact_match, f1: SQuAD's, of the predicted spans' texts (joined by blanks) with an annotator's, the best of them.
    exact_*, overlap_*: MultiSpanQA's, against the spans of the majority: the texts of an annotator who marked just
      these pieces, or where there is none of the pieces.
    annotator_*: F1 of spans, B and I of pieces, with each annotator: their mean, weighted by passages, the best, that
      with the majority, that of the annotators with each other, the mean weighted likewise; and Fleiss'
      kappa of their tags.
    n: questions with an annotator's texts, which the scores of texts count; passages of whose spans none has a piece
      have no part in the others. Those without annotations have no part in any.

    Args:
      p_KC: float [K, 3], probabilities of B, I and O of each piece. starts: int [N + 1].
    """
    counts_KC = vote_counts(marked, pieces_N, weights)
    scores, voted_K = agreement.against_votes(counts_KC, p_KC, OUTSIDE)
    mean, annotated = scores["cross_entropy"], sum(bool(tags) for tags in marked.tags_N)
    tokens = float(voted_K.sum())
    scores["cross_entropy_per_example"] = Score(
        None if mean.value is None else mean.value * tokens / annotated, mean.reason
    )
    predicted_N = bio_mrc.spans(p_KC, starts, options)
    texts_N = _texts(rows, pieces_N, predicted_N)
    known = [n for n, row in enumerate(rows) if row.golds]
    pairs = [(" ".join(texts_N[n]), [" ".join(texts) for _, texts in rows[n].golds], rows[n].context) for n in known]
    exact_N = np.array([span_metrics.exact_match(text, golds) for text, golds, _ in pairs], float)
    f1_N = np.array([
        span_metrics.token_f1(text, golds, characters=span_metrics.without_blanks(passage))
        for text, golds, passage in pairs
    ], float)  # fmt: skip
    scores |= {"exact_match": _mean(exact_N), "f1": _mean(f1_N)}
    majority_N = majority_spans(counts_KC, starts)
    golds_N = _majority_texts(rows, pieces_N, marked, majority_N)
    sums_N5 = span_metrics.multi_span_sums([golds_N[n] for n in known], [texts_N[n] for n in known])
    scores |= {name: _percent(value) for name, value in span_metrics.scores_of_sums(sums_N5).items()}
    # The majority, where weights count and ties are O, as the only annotator.
    majority_tags = [_tags(spans, len(pieces)) for spans, pieces in zip(majority_N, pieces_N, strict=True)]
    alone = [{"majority": tags} if by else {} for tags, by in zip(majority_tags, marked.tags_N, strict=True)]
    predicted = [_tags(spans, len(pieces)) for spans, pieces in zip(predicted_N, pieces_N, strict=True)]
    majority = agreement.annotator_scores(alone, predicted)["weighted_mean"]
    beside = beside_annotators(marked, predicted_N, pieces_N)
    scores |= agreement.summary(beside, majority, vote_counts(marked, pieces_N, {}))
    scores |= {"n": Score(float(len(known))), "n_tokens": Score(tokens)}
    return {name: scores[name] for name in NAMES}, _ratios(exact_N, f1_N, sums_N5)


def _ratios(exact_N: np.ndarray, f1_N: np.ndarray, sums_N5: np.ndarray) -> dict[str, Sequence[Ratio]]:
    """Of the scores of texts."""
    ones_N = np.ones(len(exact_N))
    ratios: dict[str, Sequence[Ratio]] = {"exact_match": [(exact_N, ones_N)], "f1": [(f1_N, ones_N)]}
    golds_N, predicted_N, hits_N, of_predicted_N, of_golds_N = sums_N5.T
    for name, above, below in (("exact", hits_N, hits_N), ("overlap", of_predicted_N, of_golds_N)):
        precision, recall = (above, predicted_N), (below, golds_N)
        ratios |= {f"{name}_precision": [precision], f"{name}_recall": [recall], f"{name}_f1": [precision, recall]}
    return ratios


def constant(predicted_N: Sequence[Sequence[Span]], scores: Mapping[str, Score]) -> Metrics:
    """The note on a reader that finds no span in any passage (constant_predictions.py); ``scores``: of these."""
    silent = len(predicted_N) > 1 and not any(predicted_N) and scores["exact_match"].value != 1
    return constant_predictions.noted("nothing" if silent else None, len(predicted_N))


def beside_annotators(
    marked: SpanTags, predicted_N: Sequence[Sequence[Span]], pieces_N: Sequence[Pieces]
) -> AnnotatorScores:
    """The predicted spans against each annotator's, as tags of pieces; see `agreement.annotator_scores`."""
    predicted = [_tags(spans, len(pieces)) for spans, pieces in zip(predicted_N, pieces_N, strict=True)]
    by_annotator = [{name: [TAGS[i] for i in tags_K] for name, tags_K in tags} for tags in marked.tags_N]
    return agreement.annotator_scores(by_annotator, predicted)


def row_losses(p_KC: np.ndarray, target_KC: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """float64 [N]: L of each passage, in nats."""
    log_KC = np.log(np.maximum(p_KC, np.finfo(np.float64).tiny))
    loss_K = -(target_KC * log_KC).sum(1)
    return np.array([part.sum() for part in passages.parts(loss_K, starts)])


def _texts(rows: Sequence[Question], pieces_N: Sequence[Pieces], spans_N: Sequence[Sequence[Span]]) -> list[list[str]]:
    return [
        [row.context[slice(*pieces.span_of(span.first, span.stop))] for span in spans]
        for row, pieces, spans in zip(rows, pieces_N, spans_N, strict=True)
    ]


def majority_spans(counts_KC: np.ndarray, starts: np.ndarray) -> list[list[Span]]:
    """The spans of the tags that most annotators gave."""
    tags_K = np.where(counts_KC.sum(1) > 0, votes.majority(counts_KC, OUTSIDE), OUTSIDE)
    return bio_mrc.spans(np.eye(len(TAGS))[tags_K], starts, BioMrcOptions(decoding="greedy"))


def _majority_texts(
    rows: Sequence[Question], pieces_N: Sequence[Pieces], marked: SpanTags, majority_N: Sequence[Sequence[Span]]
) -> list[list[str]]:
    """The texts of the majority's spans, in the words of most of the annotators who marked just these pieces: of a
    single annotator they are his golds, whatever became of them as pieces. Where nobody's spans have pieces, the most
    frequent golds."""
    texts_N = _texts(rows, pieces_N, majority_N)
    for n, (row, spans) in enumerate(zip(rows, majority_N, strict=True)):
        silent = {name for name, spans in row.annotations if not spans}  # whose gold is "" in SQuAD files
        texts = {name: gold if any(gold) or name not in silent else () for name, gold in row.golds}
        tags = _tags(spans, len(pieces_N[n]))
        same = [texts[name] for name, tags_K in marked.tags_N[n] if [TAGS[i] for i in tags_K] == tags]
        if not marked.tags_N[n]:
            same = [gold for gold in texts.values() if any(gold)] or list(texts.values())
        if same:
            texts_N[n] = list(Counter(same).most_common(1)[0][0])
    return texts_N


def _tags(spans: Sequence[Span], length: int) -> list[str]:
    tags = ["O"] * length
    for span in spans:
        tags[span.first : span.stop] = ["B", *["I"] * (span.stop - span.first - 1)]
    return tags


def _mean(value_N: np.ndarray) -> Score:
    return Score(float(value_N.mean())) if len(value_N) else Score(None, _NOTHING)


def _percent(value: float | None) -> Score:
    return Score(None, _NOTHING) if value is None else Score(value / 100)
