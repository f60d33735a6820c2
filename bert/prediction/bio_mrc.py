"""Reading comprehension by tags: each token of the passage is B (begins an answer), I (goes on with it) or O (outside).

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
from bert.errors import InputError
from bert.prediction import questions, scores, tag_decoding, task_settings
from bert.prediction.questions import PassageQuestion, WindowSettings
from bert.prediction.scores import Reader
from bert.tokenizer.alignment import Pieces

KEY = "bio_mrc"  # of config.json
TAGS = ("B", "I", "O")


@dataclasses.dataclass(frozen=True)
class BioMrcOptions(WindowSettings):
    """How passages become windows, and probabilities of tags spans."""

    # viterbi: the likeliest tags with no I after O; greedy: the likeliest tag of each token, an I after O read as B.
    decoding: str = "viterbi"
    min_probability: float = 0.0  # spans below it are left out; see `Span`
    # Tokens of a span at most; 0: any number. Viterbi finds the best tags without longer spans, greedy drops them.
    max_span: int = 0

    def __post_init__(self):
        super().__post_init__()
        tag_decoding.check(self.decoding)
        if not 0 <= self.min_probability < 1:
            raise InputError(f"min_probability is {self.min_probability}; it must be from 0 to below 1")
        if self.max_span < 0:
            raise InputError(f"max_span is {self.max_span}; it must be at least 0")

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
    return questions.fitted(task_settings.read(BioMrcOptions, extra, KEY, config.max_length))


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
        tags_K = p_KC.argmax(1)
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
    return np.array(states)[tag_decoding.viterbi(log_KC, starts, first_C, move_CC)]


def spans(p_KC: np.ndarray, starts: np.ndarray, options: BioMrcOptions) -> list[list[Span]]:
    """The answers in each passage, in their order; arguments as for `tags`."""
    tags_K = tags(p_KC, starts, options)
    with np.errstate(divide="ignore"):
        log_K = np.log(p_KC[np.arange(len(p_KC)), tags_K])
    found = []
    for a, b in itertools.pairwise(starts):
        begins = np.flatnonzero(tags_K[a:b] == 0)
        outside = np.flatnonzero(tags_K[a:b] != 1)  # where a span that began before can end
        here = []
        for first in begins.tolist():
            later = outside[np.searchsorted(outside, first, side="right") :]
            stop = int(later[0]) if len(later) else int(b - a)
            probability = float(np.exp(log_K[a + first : a + stop].mean()))
            if probability >= options.min_probability and (not options.max_span or stop - first <= options.max_span):
                here.append(Span(first, stop, probability))
        found.append(here)
    return found


def answers(
    p_KC: np.ndarray, starts: np.ndarray, contexts: Sequence[str], pieces_N: Sequence[Pieces], options: BioMrcOptions
) -> list[dict[str, Any]]:
    """For each passage ``{"spans": [{"start", "end", "text", "probability"}, ...]}``: characters of the context, ends
    exclusive."""
    found = []
    for context, pieces, here in zip(contexts, pieces_N, spans(p_KC, starts, options), strict=True):
        told = []
        for span in here:
            start, end = pieces.span_of(span.first, span.stop)
            told.append({"start": start, "end": end, "text": context[start:end], "probability": span.probability})
        found.append({"spans": told})
    return found


def tokens(p_KC: np.ndarray, pieces: Pieces) -> list[dict[str, Any]]:
    """p_i of each token of one passage: ``[{"start", "end", "B", "I", "O"}, ...]``."""
    return [
        {"start": int(start), "end": int(end)} | dict(zip(TAGS, map(float, p_C), strict=True))
        for start, end, p_C in zip(pieces.starts_K, pieces.ends_K, p_KC, strict=True)
    ]


def predict(model: Reader, rows: Sequence[Any], *, details: bool = False, **how: Any) -> list[dict[str, Any]]:
    """See `answers`; with ``details`` also "tokens", see `tokens`. ``rows``: see `questions.queries_of`.

    ``how``: batch_size and packed, see `LoadedModel.predict`.
    """
    return read(model, questions.queries_of(rows), options_of(model.extra, model.config), details=details, **how)


def read(
    model: Reader, asked: Sequence[PassageQuestion], options: BioMrcOptions, *, details: bool = False, **how: Any
) -> list[dict[str, Any]]:
    """The spans in the passages of questions; see `predict`."""
    p_KC, starts, pieces_N = probabilities(model, asked, options, **how)
    found = answers(p_KC, starts, [one.context for one in asked], pieces_N, options)
    if details:
        for answer, pieces, own_KC in zip(found, pieces_N, passages.parts(p_KC, starts), strict=True):
            answer["tokens"] = tokens(own_KC, pieces)
    return found


def probabilities(
    model: Reader, asked: Sequence[PassageQuestion], options: BioMrcOptions, **how: Any
) -> tuple[np.ndarray, np.ndarray, list[Pieces]]:
    """float64 [K, 3]: B, I and O of each piece of each passage; where each passage begins in K; and its pieces."""
    columns = columns_of(model.labels, model.source)
    cut, pieces_N = questions.windows_of(asked, model.vocabulary, options)
    logits_KC = model.token_scores(cut.encoded, max_length=options.max_length, **how)
    return scores.softmax(logits_KC[cut.place_K][:, columns]), cut.starts, pieces_N
