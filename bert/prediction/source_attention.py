"""How an encoder-decoder reads a source while it writes a target: the weights of its attention, and the pieces.

Axes: N text, B row, A map (a head of a layer), U target position, S source position.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from bert import architectures
from bert.architectures import ModelConfig
from bert.data.encoded_examples import ExampleSettings, prediction_batches
from bert.data.sequence_pairs import EncodedPairs
from bert.model import matmul, stack
from bert.prediction import translation
from bert.prediction.scores import Scorer
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import Batch, Params

_ROWS = 8  # computed at a time: the weights are large


class SourceAttention(NamedTuple):
    """The attention of a target's U pieces to a source's S pieces.

    source, target: the pieces as they stand in the text, with their blanks; where several bytes make a character, its
    first piece has it. The last of the target is the token that ends it.
    weights: float32 [A, U, S], with which the model reads the source to predict each piece of the target; rows sum to
    1. Layers come first: of N heads, head n of layer l is map l N + n.
    source_words, target_words: the number of the word that each piece is part of.
    """

    source: list[str]
    target: list[str]
    weights: np.ndarray
    source_words: list[int]
    target_words: list[int]


def heads_of(config: ModelConfig) -> int:
    """The maps of a layer; 1 where an architecture has no heads, as a recurrent or a convolutional one."""
    return int(getattr(config, "num_heads", 1))


def of_texts(
    scorer: Scorer, sources: Sequence[str], targets: Sequence[str], places: Sequence[str] = ()
) -> list[SourceAttention]:
    """The attention of each target to its source.

    Raises InputError for a model without a decoder, and for a text that is longer than the model's positions;
    ``places``: what messages call the pairs.
    """
    translation.check_translates(scorer.config, scorer.source)
    tokenizer, limit = scorer.tokenizer, scorer.config.max_length
    pairs = translation.encode_pairs(tokenizer, sources, targets)
    for length_N in (pairs.source.length_N, pairs.target.length_N):
        translation.check_lengths(length_N, limit, places or [f"text {i}" for i in range(len(sources))])
    template = tokenizer.template
    source_N = _pieces(tokenizer, sources, template.before, template.after)
    results = []
    for (source, source_words), (target, target_words), weights_AUS in zip(
        source_N, pieces_of_targets(tokenizer, targets), weights_of(scorer, pairs), strict=True
    ):
        own_AUS = weights_AUS[:, : len(target), : len(source)]
        results.append(SourceAttention(source, target, own_AUS, source_words, target_words))
    return results


def weights_of(scorer: Scorer, pairs: EncodedPairs) -> list[np.ndarray]:
    """The attention of each target to its source, float32 [A, U, S], with the padding behind them."""
    limit = scorer.config.max_length
    settings = ExampleSettings(min(scorer.batch_size, _ROWS, len(pairs)), limit, packed=False, row_unit=scorer.row_unit)
    run, params = _compiled(scorer.config), stack.by_layer(scorer.params, scorer.config)
    by_pair: dict[int, np.ndarray] = {}
    for batch, index_BE in prediction_batches(pairs, settings):
        weights_BAUS = scorer.devices.fetch(run(params, scorer.devices.place(batch)))
        for row, i in enumerate(index_BE[:, 0]):
            if i >= 0:
                by_pair[i] = np.array(weights_BAUS[row])
    return [by_pair[i] for i in range(len(pairs))]


def pieces_of_targets(tokenizer: Tokenizer, targets: Sequence[str]) -> list[tuple[list[str], list[int]]]:
    """(pieces, numbers of their words) of each target, as of `SourceAttention`."""
    return _pieces(tokenizer, targets, (), (tokenizer.sep_id,))


def _pieces(
    tokenizer: Tokenizer, texts: Sequence[str], before: Sequence[int], after: Sequence[int]
) -> list[tuple[list[str], list[int]]]:
    """(pieces, numbers of their words) of each text between special tokens, each of which is a word."""
    results = []
    for text, (_, offsets, words) in zip(texts, tokenizer.encode_batch(texts), strict=True):
        ends = [0, *itertools.accumulate((end for _, end in offsets), max)]  # a character may have several pieces
        pieces = [text[max(a, end) : b] for (a, b), end in zip(offsets, ends, strict=False)]
        begins = [word < 0 or word != last for word, last in zip(words, [-1, *words], strict=False)]
        first, last = ([tokenizer.vocab[i] for i in special] for special in (before, after))
        all_begin = [*[True] * len(first), *begins, *[True] * len(last)]
        results.append(([*first, *pieces, *last], (np.cumsum(all_begin) - 1).tolist()))
    return results


@functools.lru_cache(maxsize=4)
def _compiled(config: ModelConfig) -> Any:
    decoder = architectures.build(config)

    def run(params: Params, batch: Batch) -> Any:
        with jax.default_matmul_precision("highest"):
            variables = {"params": params["encoder"]}
            memory = decoder.apply(variables, batch, method="memory")
            return decoder.apply(variables, memory, batch, method="attention")

    return jax.jit(run, compiler_options=matmul.inference_options(config.dtype))
