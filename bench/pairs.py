"""Pairs of sentences for Transformers that translate: random words, and lengths like those of Multi30k.

Every implementation imports this in its own environment, so it needs only NumPy.
Axes: N pair, B row, S source position, U target position.
"""

import dataclasses
import functools
from typing import Any

import numpy as np

from bert.architectures.encoder_decoder import EncoderDecoderConfig
from bert.data import sequence_pairs
from bert.data.encoded_examples import ExampleSettings, TrainingBatches
from bert.data.sequence_pairs import EncodedPairs
from bert.types import HostBatch

ENTRIES, START, END, FIRST_WORD, LONGEST = 10_000, 1, 2, 5, 64


@dataclasses.dataclass(frozen=True)
class Pairs:
    """Training steps of configs/translation.py:transformer-tiny.

    Attributes:
      count: pairs, as many as Multi30k has. batch: pairs in a step. steps: how many batches of the epoch are used.
      dropout: of embeddings and sublayers. smoothing: of the labels.
    """

    count: int = 29_000
    batch: int = 128
    steps: int = 8
    dropout: float = 0.2
    smoothing: float = 0.1

    @property
    def config(self) -> EncoderDecoderConfig:
        sizes: dict[str, Any] = {"hidden_size": 128, "num_layers": 4, "num_heads": 4, "intermediate_size": 256}
        return EncoderDecoderConfig(ENTRIES, **sizes, hidden_dropout=self.dropout, initializer_range=128**-0.5)

    @functools.cached_property
    def tokens(self) -> list[list[list[int]]]:
        """Of the sources and of the targets, each with END: 15 on average with a deviation of 5, as in Multi30k."""
        rng = np.random.default_rng(0)
        source_N = np.exp(2.657 + 0.291 * rng.standard_normal(self.count))
        target_N = source_N * np.exp(0.166 * rng.standard_normal(self.count))
        lengths = (np.clip(length_N.round(), 4, 51).astype(int) for length_N in (source_N, target_N))
        words = lambda length: rng.integers(FIRST_WORD, ENTRIES, length - 1).tolist()  # noqa: E731
        return [[[*words(length), END] for length in length_N] for length_N in lengths]

    @functools.cached_property
    def pairs(self) -> EncodedPairs:
        return sequence_pairs.join(*self.tokens)

    def packed(self) -> list[HostBatch]:
        """Batches in random order, several pairs in a row."""
        batches = TrainingBatches(self.pairs, ExampleSettings(self.batch, LONGEST))
        return [batches(i) for i in range(self.steps)]

    def by_length(self) -> list[HostBatch]:
        """Batches of as many words, a pair in a row: shares of the epoch, which is sorted by length."""
        source_N, target_N = self.pairs.source.length_N, self.pairs.target.length_N
        order_N = np.lexsort((source_N, target_N))
        shares_N = np.cumsum(target_N[order_N]) / target_N.sum() * (self.count // self.batch)
        middle = (np.arange(self.steps) + 0.5) * (self.count // self.batch) / self.steps
        return [padded(self.pairs.take(order_N[shares_N.astype(int) == int(share)])) for share in middle]


def padded(pairs: EncodedPairs) -> HostBatch:
    """All pairs, one in a row, each side as long as its longest."""
    longest = {side: int(getattr(pairs, side).length_N.max()) for side in ("source", "target")}
    batch = pairs.assembled(list(np.arange(len(pairs))[:, None]), max(longest.values()), len(pairs), 1)
    return {name: x[:, : longest["target" if name.startswith("target") else "source"]] for name, x in batch.items()}
