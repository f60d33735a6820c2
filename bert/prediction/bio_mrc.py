"""Reading comprehension by tags: each token of the passage is B (begins an answer), I (inside) or O (outside).

With h_i the encoder's top vector of passage token i, p_i = softmax(W h_i + b) over (B, I, O). Any number of answers.
Training is tasks/bio_mrc/job.py. Axes: K token of all passages, one after the other, C tag.
"""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.architectures import ModelConfig
from bert.data import passages
from bert.data.passages import Passages
from bert.errors import InputError, check_choice, check_range
from bert.prediction import questions, scores, tag_decoding, task_options, uncertainty
from bert.prediction.questions import PassageQuestion, WindowSettings
from bert.prediction.scores import Scorer
from bert.tokenizer.alignment import Pieces

KEY = "bio_mrc"  # of config.json
TAGS = ("B", "I", "O")


@dataclasses.dataclass(frozen=True)
class BioMrcOptions(WindowSettings):
    """How passages become windows, and probabilities of tags spans."""

    # viterbi: the likeliest tags with no I after O; greedy: the likeliest tag of each token, an I after an O read as B.
    decoding: str = "viterbi"
    min_probability: float = 0.0  # spans below it are left out; see `Span`
    # Tokens of a span at most; 0: any number. Viterbi finds the best tags without longer spans, greedy drops them.
    max_span: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("decoding", self.decoding, tag_decoding.DECODING)
        check_range("min_probability", self.min_probability, at_least=0, below=1)
        check_range("max_span", self.max_span, at_least=0)

    def to_json(self) -> dict[str, Any]:
        return {KEY: dataclasses.asdict(self)}


class Span(NamedTuple):
    """Pieces [first, stop) of a passage.

    probability: the geometric mean of its tags' probabilities, which does not sink with the length.
    """

    first: int
    stop: int
    probability: float


def options_of(extra: Mapping[str, Any], config: ModelConfig) -> BioMrcOptions:
    """The settings in a model directory."""
    return task_options.read(BioMrcOptions, extra, KEY, config.max_length)


def columns_of(labels: Sequence[str], source: str) -> list[int]:
    """Where B, I and O stand among the model's labels."""
    if sorted(labels) != sorted(TAGS):
        raise InputError(f"{source}: its labels are {', '.join(labels)}; spans need B, I and O")
    return [labels.index(tag) for tag in TAGS]


def tags(p_KC: np.ndarray, starts: np.ndarray, options: BioMrcOptions) -> np.ndarray:
    """int64 [K]: index in TAGS of each token's tag, by the rule of `options.decoding`.

    Args:
      p_KC: float [K, 3], probabilities of B, I and O.
      starts: int [N + 1], where each passage begins in K.
    """
    if options.decoding == "greedy":
        tags_K: np.ndarray = p_KC.argmax(1)
        before_K = np.concatenate([[2], tags_K[:-1]])
        before_K[starts[:-1][np.diff(starts) > 0]] = 2
        return np.where((tags_K == 1) & (before_K == 2), 0, tags_K)
    # A state for each length that a span may have; without a limit one I is enough.
    inner = max(0, options.max_span - 1) if options.max_span else 1
    states = [0] + [1] * inner + [2]
    first_C = np.array([tag != 1 for tag in states])
    move_CC = np.tile(first_C, (len(states), 1))
    for i in range(inner):
        move_CC[i, i + 1] = True
    if not options.max_span:
        move_CC[1, 1] = True
    # Not -inf for 0: a passage without any allowed tags would lose what the other tokens say.
    log_KC = np.log(np.maximum(p_KC, np.finfo(np.float64).tiny))[:, states]
    tags_K = np.array(states)[tag_decoding.viterbi(log_KC, starts, first_C, move_CC)]
    return tags_K


def spans(p_KC: np.ndarray, starts: np.ndarray, options: BioMrcOptions) -> list[list[Span]]:
    """The answers in each passage, in their order; arguments as for `tags`."""
    tags_K = tags(p_KC, starts, options)
    with np.errstate(divide="ignore"):
        log_K = np.log(p_KC[np.arange(len(p_KC)), tags_K])
    spans_N = []
    for a, b in itertools.pairwise(starts):
        begins = np.flatnonzero(tags_K[a:b] == 0)
        ends = np.append(np.flatnonzero(tags_K[a:b] != 1), b - a)  # where a span that began before can end
        stops = ends[np.searchsorted(ends, begins, side="right")]
        here = [
            Span(first, stop, float(np.exp(log_K[a + first : a + stop].mean())))
            for first, stop in zip(begins.tolist(), stops.tolist(), strict=True)
        ]
        spans_N.append([
            span for span in here
            if span.probability >= options.min_probability and span.stop - span.first <= (options.max_span or b - a)
        ])  # fmt: skip
    return spans_N


def answers(
    p_KC: np.ndarray, starts: np.ndarray, contexts: Sequence[str], pieces_N: Sequence[Pieces], options: BioMrcOptions
) -> list[dict[str, Any]]:
    """For each passage ``{"spans": [{"start", "end", "text", "probability"}, ...]}``: characters of the context, ends
    exclusive."""
    predictions = []
    for context, pieces, here in zip(contexts, pieces_N, spans(p_KC, starts, options), strict=True):
        bounds = [pieces.span_of(span.first, span.stop) for span in here]
        rows = [
            {"start": start, "end": end, "text": context[start:end], "probability": span.probability}
            for (start, end), span in zip(bounds, here, strict=True)
        ]
        predictions.append({"spans": rows})
    return predictions


def tokens(p_KC: np.ndarray, pieces: Pieces) -> list[dict[str, Any]]:
    """p_i of each token of one passage: ``[{"start", "end", "B", "I", "O"}, ...]``."""
    return [
        {"start": int(start), "end": int(end)} | dict(zip(TAGS, map(float, p_C), strict=True))
        for start, end, p_C in zip(pieces.starts_K, pieces.ends_K, p_KC, strict=True)
    ]


def predict(scorer: Scorer, rows: Sequence[Any], *, details: bool = False, measure: str = "") -> list[dict[str, Any]]:
    """See `answers`; with ``details`` also "tokens", see `tokens`; with ``measure`` also the uncertainty under its name
    (uncertainty.py). ``rows``: see `questions.queries_of`."""
    options = options_of(scorer.extra, scorer.config)
    return read(scorer, questions.queries_of(rows), options, details=details, measure=measure)


def read(
    scorer: Scorer,
    queries: Sequence[PassageQuestion],
    options: BioMrcOptions,
    *,
    details: bool = False,
    measure: str = "",
) -> list[dict[str, Any]]:
    """The spans in the passages of questions; see `predict`."""
    fitted = questions.fitted(options, scorer.tokenizer)
    cut, pieces_N = questions.windows_of(queries, scorer.tokenizer, fitted)
    p_KC = probabilities(scorer, cut, options)
    predictions = answers(p_KC, cut.starts, [query.context for query in queries], pieces_N, options)
    if details:
        for row, pieces, p_TC in zip(predictions, pieces_N, passages.parts(p_KC, cut.starts), strict=True):
            row["tokens"] = tokens(p_TC, pieces)
    return uncertainty.added(predictions, measure, p_KC, cut.starts)


def probabilities(scorer: Scorer, cut: Passages, options: BioMrcOptions) -> np.ndarray:
    """float64 [K, 3]: B, I and O of each piece of the passages that `questions.windows_of` cut into windows."""
    columns = columns_of(scorer.labels, scorer.source)
    logits_KC = scorer.of_tokens(cut.encoded, options.max_length)
    return scores.softmax(logits_KC[cut.place_K][:, columns])
