"""Reading comprehension by start and end: the span of the passage with the highest score, or no answer.

Training is tasks/squad/job.py. Axes: K token of the windows, one after the other, W window, I start, J length.

Source: Devlin et al. 2018, sections 4.2 and 4.3; google-research/bert ``run_squad.py`` (write_predictions).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.architectures import ModelConfig
from bert.data.passages import Passages
from bert.errors import check_range
from bert.prediction import questions, scores, task_options, uncertainty
from bert.prediction.questions import PassageQuestion, WindowSettings
from bert.prediction.scores import Scorer
from bert.tokenizer.alignment import Pieces

KEY = "squad"  # of config.json


@dataclasses.dataclass(frozen=True)
class SquadOptions(WindowSettings):
    """How passages become windows, and scores an answer."""

    max_answer: int = 30  # tokens of an answer at most; run_squad.py
    best: int = 20  # candidates in the n-best list; run_squad.py
    no_answer: bool = False  # whether a question may have none (SQuAD 2.0)
    threshold: float = 0.0  # no answer if its score exceeds the best span's by more than this

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("max_answer", "best"):
            check_range(name, getattr(self, name), at_least=1)

    def to_json(self) -> dict[str, Any]:
        return {KEY: dataclasses.asdict(self)}


class Candidate(NamedTuple):
    """Pieces [first, stop) of a passage, and the sum of their two scores; (0, 0) is no answer."""

    first: int
    stop: int
    score: float


class SearchResult(NamedTuple):
    """The candidates for a question, best first, and the score of no answer, the smallest over its windows."""

    candidates: list[Candidate]
    null_score: float


def options_of(extra: Mapping[str, Any], config: ModelConfig) -> SquadOptions:
    """The settings in a model directory; of a model that others trained the usual ones, as far as it has positions."""
    return task_options.read(SquadOptions, extra, KEY, config.max_length)


def search(scores_K2: np.ndarray, passages: Passages, options: SquadOptions) -> list[SearchResult]:
    """The best spans of each question: inside the passage, start before end, each once.

    A start is looked for in the window that gives it the most context, so that windows share no candidate.

    Args:
      scores_K2: float [K, 2], scores of being the start and the end, of each token of ``passages.encoded``.
    """
    counts = np.zeros(len(scores_K2), bool)
    counts[passages.place_K] = True
    candidates: list[list[Candidate]] = [[] for _ in range(len(passages))]
    null_N = np.full(len(passages), np.inf)
    windows = zip(passages.text_W, passages.bounds_W2, passages.places_W, passages.encoded.starts, strict=False)
    for text, (first, stop), place, cls in windows:
        null_N[text] = min(null_N[text], float(scores_K2[cls].sum()))
        here = slice(place, place + stop - first)
        start_I = np.where(counts[here], scores_K2[here, 0].astype(np.float64), -np.inf)
        for i, j, score in _best_pairs(start_I, scores_K2[here, 1].astype(np.float64), options):
            candidates[text].append(Candidate(int(first) + i, int(first) + j + 1, score))
    return [
        SearchResult(sorted(spans, key=lambda c: (-c.score, c.first, c.stop))[: options.best], float(null_score))
        for spans, null_score in zip(candidates, null_N, strict=True)
    ]


def _best_pairs(start_I: np.ndarray, end_I: np.ndarray, options: SquadOptions) -> list[tuple[int, int, float]]:
    """(start, end inclusive, score) of the best spans in one window."""
    count, longest = len(start_I), min(options.max_answer, len(start_I))
    if not count:
        return []
    padded = np.concatenate([end_I, np.full(longest - 1, -np.inf)])
    total_IJ = start_I[:, None] + np.lib.stride_tricks.sliding_window_view(padded, longest)
    flat = total_IJ.ravel()
    chosen = np.argpartition(-flat, min(options.best, len(flat)) - 1)[: options.best]
    return [(int(k // longest), int(k // longest + k % longest), float(flat[k])) for k in chosen if flat[k] > -np.inf]


def answers(
    results: Sequence[SearchResult], contexts: Sequence[str], pieces_N: Sequence[Pieces], options: SquadOptions
) -> list[dict[str, Any]]:
    """For each question ``{"answer", "start", "end", "probability", "null_odds", "candidates"}``.

    start and end are characters of the context, the end exclusive, both None for no answer, which is the text "".
    null_odds: the score of no answer minus the best span's (None where there is no span, as in an empty passage).
    candidates: the same first four keys each, best first; their probabilities, the softmax of the scores, sum to 1.
      No two have the same characters.
    """
    predictions = []
    for (candidates, null_score), context, pieces in zip(results, contexts, pieces_N, strict=True):
        scored: dict[tuple[int, int], float] = {}
        for c in candidates:  # a character may have several pieces, such as a Korean syllable
            scored.setdefault(pieces.span_of(c.first, c.stop), c.score)
        rows = [(*span, score) for span, score in scored.items()]
        listed: list[tuple[int | None, int | None, float]] = list(rows)
        if options.no_answer or not rows:
            listed = sorted([*rows, (None, None, null_score)], key=lambda row: -row[2])
        p = scores.softmax(np.array([row[2] for row in listed])).tolist()
        listed_answers = [
            {"answer": "" if a is None else context[a:b], "start": a, "end": b, "probability": share}
            for (a, b, _), share in zip(listed, p, strict=True)
        ]
        odds = null_score - rows[0][2] if rows else None
        silent = odds is None or (options.no_answer and odds > options.threshold)
        best = next(option for option in listed_answers if (option["start"] is None) == silent)
        predictions.append(best | {"null_odds": odds, "candidates": listed_answers})
    return predictions


def predict(scorer: Scorer, rows: Sequence[Any], *, details: bool = False, measure: str = "") -> list[dict[str, Any]]:
    """See `read`; the candidates only with ``details``. ``rows``: see `questions.queries_of`."""
    options = options_of(scorer.extra, scorer.config)
    return shown(read(scorer, questions.queries_of(rows), options, measure=measure), details)


def shown(predictions: Sequence[dict[str, Any]], details: bool) -> list[dict[str, Any]]:
    """The predictions, with candidates only where details are wanted."""
    dropped = () if details else ("candidates",)
    return [{name: value for name, value in row.items() if name not in dropped} for row in predictions]


def read(
    scorer: Scorer, queries: Sequence[PassageQuestion], options: SquadOptions, *, measure: str = ""
) -> list[dict[str, Any]]:
    """The answers to questions, see `answers`; with ``measure`` also the uncertainty under its name (uncertainty.py),
    over the candidates."""
    fitted = questions.fitted(options, scorer.tokenizer)
    cut, pieces_N = questions.windows_of(queries, scorer.tokenizer, fitted)
    scores_K2 = scorer.of_tokens(cut.encoded, options.max_length)
    predictions = answers(search(scores_K2, cut, options), [query.context for query in queries], pieces_N, options)
    p_NC = np.zeros((len(predictions), options.best + 1))
    for p_C, row in zip(p_NC, predictions, strict=True):
        p_C[: len(row["candidates"])] = [candidate["probability"] for candidate in row["candidates"]]
    return uncertainty.added(predictions, measure, p_NC)
