"""Translates texts with an encoder-decoder, and computes what given translations cost.

`written` and `costs` are of any source. Training is tasks/translation/job.py; the search is bert/model/beam_search.py.
Axes: N text, B row, U target position, K hypothesis.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from bert import architectures
from bert.architectures import ModelConfig
from bert.data import encoded_examples, padding
from bert.data.encoded_examples import EncodedExamples, Examples, ExampleSettings, prediction_batches
from bert.data.sequence_pairs import EncodedPairs
from bert.errors import InputError, check_range
from bert.model import decoding, matmul, stack
from bert.model.teacher_forcing import TeacherForced
from bert.prediction import scores, task_options
from bert.prediction.scores import Scorer
from bert.progress import progress as show_progress
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import Batch, Params

KEY = "translation"  # of config.json
_LONGER = 50  # tokens that a translation may have more than its source; Vaswani et al. 2017, section 6.1


@dataclasses.dataclass(frozen=True)
class TranslationOptions:
    """How sources are translated."""

    key: ClassVar[str] = KEY  # of config.json
    max_length: int = 64  # tokens of a side, with the one that ends it; training leaves out longer pairs
    beams: int = 5  # hypotheses of the search; 1: the most probable token each time
    length_penalty: float = 0.6  # alpha of ((5 + tokens) / 6) ^ alpha; 0: the most probable text, which is a short one
    best: int = 1  # candidates of each text, at most so many as there are beams

    def __post_init__(self) -> None:
        check_range("beams", self.beams, at_least=1, at_most=100, whole=True)
        check_range("length_penalty", self.length_penalty, at_least=0, below=10)
        check_range("best", self.best, at_least=1, at_most=self.beams, whole=True, hint=", the beams")

    def to_json(self) -> dict[str, Any]:
        """Keys of config.json that say the same."""
        return {self.key: dataclasses.asdict(self)}


class Translation(NamedTuple):
    """A candidate: its text, and its log-probability in nats over the length penalty."""

    text: str
    score: float


def options_of(extra: Mapping[str, Any], config: ModelConfig) -> TranslationOptions:
    """The settings in a model directory; ``extra`` is config.json without what describes the model."""
    return task_options.read(TranslationOptions, extra, KEY, config.max_length)


def translates(config: ModelConfig) -> bool:
    """Whether the model has a decoder that reads a text."""
    return architectures.is_encoder_decoder(config) and not architectures.inputs_of(config)


def check_translates(config: ModelConfig, source: str) -> None:
    """Raises InputError for a model without a decoder."""
    if not translates(config):
        what = f"a {config.model_type!r} model has no decoder that reads a source"
        way_out = "train one by bert finetune --config=translation, of a BERT by --config=translation:bert2bert"
        raise InputError(f"{source}: {what}; {way_out}")


def predict(scorer: Scorer, rows: Sequence[Any], *, details: bool = False, measure: str = "") -> list[dict[str, Any]]:
    """For each text ``{"translation": text, "score": float}``, and where ``best`` asks for several the list
    ``candidates``, which holds one of an empty text.

    ``rows``: texts. ``details`` adds nothing: the settings say how many candidates there are.
    """
    del details
    if measure:
        raise InputError(f"{scorer.source}: translates, and has no {measure} of an answer; leave it out")
    scores.check_rows(rows)
    options = options_of(scorer.extra, scorer.config)
    return [answer(candidates, options) for candidates in translations(scorer, rows, options)]


def answer(candidates: Sequence[Translation], options: TranslationOptions, name: str = KEY) -> dict[str, Any]:
    """A prediction, as of `predict`; ``name``: of the text."""
    first = {name: candidates[0].text, "score": candidates[0].score}
    return first | ({"candidates": [c._asdict() for c in candidates]} if options.best > 1 else {})


def translations(
    scorer: Scorer, texts: Sequence[str], options: TranslationOptions, places: Sequence[str] = ()
) -> list[list[Translation]]:
    """The candidates of each text, the best first, which depend on no other text; of an empty text an empty one.

    Raises InputError for a text that is longer than the model's positions; ``places``: what messages call the texts.
    """
    check_translates(scorer.config, scorer.source)
    sources, limit = encode(scorer.tokenizer, texts), scorer.config.max_length
    check_lengths(map(len, sources), limit, places or [f"text {i}" for i in range(len(texts))])
    with_words = [i for i, text in enumerate(texts) if text.strip()]
    chosen = joined([sources[i] for i in with_words])
    candidates_N = written(scorer, chosen, lambda length: length + _LONGER, options, "text")
    by_text = dict(zip(with_words, candidates_N, strict=True))
    return [by_text.get(i, [Translation("", 0.0)]) for i in range(len(texts))]


def written(
    scorer: Scorer, sources: Examples, room: Callable[[int], int], options: TranslationOptions, unit: str
) -> list[list[Translation]]:
    """The candidates of each source, the best first. They depend on no other source.

    ``room``: a source's length -> tokens of its target at most; ``unit``: what the progress calls a source.
    """
    config, words = scorer.config, min(scorer.tokenizer.vocab_size, scorer.config.vocab_size)
    params, limit, length_N = stack.by_layer(scorer.params, config), config.max_length, sources.length_N.tolist()
    alpha, stop = np.float32(options.length_penalty), np.int32(scorer.tokenizer.sep_id)
    by_source: dict[int, list[Translation]] = {}
    plan = padding.plan(length_N, limit, scorer.batch_size)

    def searched(batch_plan: tuple[list[int], int, int]) -> list[np.ndarray]:
        members, length, size = batch_plan
        rows = -(-size // scorer.row_unit) * scorer.row_unit
        batch = sources.assembled([np.array([i]) for i in members], length, rows, 1)
        places_U = min(room(length), limit)
        limit_B = np.ones(rows, np.int32)  # rows without a source end at once
        limit_B[: len(members)] = [min(room(length_N[i]), places_U) for i in members]
        arguments = scorer.devices.place(batch | {"limit": limit_B})
        limits = arguments.pop("limit")
        sizes = {"beams": options.beams, "places": places_U, "words": words}
        finished = decoding.translate(params, arguments, limits, alpha, stop, config=config, **sizes)
        return [scorer.devices.fetch(value) for value in finished]

    # The steps of a search are too small for several cores of a CPU.
    run: Any = _two_at_once if matmul.on_cpu() and scorer.devices is scores.HERE else map
    with show_progress(len(sources), unit, shown=scorer.progress) as done:
        for (members, _, _), (ids_BKU, length_BK, score_BK) in zip(plan, run(searched, plan), strict=True):
            for row, i in enumerate(members):
                hypotheses = zip(ids_BKU[row], length_BK[row], score_BK[row], strict=True)
                real = [(ids[:count], score) for ids, count, score in hypotheses if count][: options.best]
                by_source[i] = [Translation(decode(scorer.tokenizer, ids), float(score)) for ids, score in real]
            done(len(members))
    return [by_source[i] for i in range(len(sources))]


def _two_at_once(function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
    """As `map`, in two threads, whose programs JAX runs at once."""
    with ThreadPoolExecutor(2) as pool:
        try:
            yield from pool.map(function, items)
        finally:
            pool.shutdown(cancel_futures=True)  # those that have not begun, where an error or Ctrl-C ends this


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The tokens of each source, with its special ones."""
    return [tokenizer.template.join(ids)[0] for ids in tokenizer.encode_ids(list(texts))]


def encode_pairs(tokenizer: Tokenizer, sources: Sequence[str], targets: Sequence[str]) -> EncodedPairs:
    """Sources as `encode` has them, and targets as `encode_targets`."""
    return EncodedPairs(joined(encode(tokenizer, sources)), encode_targets(tokenizer, targets))


def encode_targets(tokenizer: Tokenizer, targets: Sequence[str]) -> EncodedExamples:
    """The tokens of each target, with the one that ends a text."""
    return joined([[*ids, tokenizer.sep_id] for ids in tokenizer.encode_ids(list(targets))])


def joined(tokens: Sequence[Sequence[int]]) -> EncodedExamples:
    """Examples of these tokens."""
    return encoded_examples.join([(ids, len(ids)) for ids in tokens])


def decode(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    return tokenizer.decode(ids, skip_special=True).strip()


def check_lengths(lengths: Iterable[int], limit: int, places: Sequence[str]) -> None:
    """Raises InputError for the first text that has more tokens than the model has positions."""
    for length, place in zip(lengths, places, strict=True):
        if length > limit:
            raise InputError(f"{place}: {length} tokens, but the model has {limit} positions; split the text")


def costs(scorer: Scorer, pairs: EncodedPairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of each pair the nats of its target, float64 [N], its words and those that no other outscores, int [N] each."""
    nats_N, correct_N = np.zeros(len(pairs)), np.zeros(len(pairs), np.int64)
    packed = scorer.packed and architectures.packs(scorer.config)
    settings = ExampleSettings(scorer.batch_size, scorer.config.max_length, packed, row_unit=scorer.row_unit)
    run, params = _compiled_costs(scorer.config), stack.by_layer(scorer.params, scorer.config)
    for batch, index_BE in prediction_batches(pairs, settings):
        outputs = run(params, scorer.devices.place(batch))
        nats_BU, correct_BU = (scorer.devices.fetch(outputs[name]) for name in ("nats", "correct"))
        row_B1 = np.arange(len(index_BE))[:, None]
        number_BU = index_BE[row_B1, batch["target_example_ids"] - 1]
        real_BU = batch["target_weights"] > 0
        np.add.at(nats_N, number_BU[real_BU], nats_BU[real_BU])
        np.add.at(correct_N, number_BU[real_BU], correct_BU[real_BU].astype(np.int64))
    return nats_N, np.asarray(pairs.target.length_N, np.int64), correct_N


@functools.lru_cache(maxsize=4)
def _compiled_costs(config: ModelConfig) -> Any:
    model = TeacherForced(config)

    def run(params: Params, batch: Batch) -> Any:
        with jax.default_matmul_precision("highest"):
            return model.apply({"params": {"encoder": params["encoder"]}}, batch)

    return jax.jit(run, compiler_options=matmul.inference_options(config.dtype))
