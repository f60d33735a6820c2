"""Encoded pairs of a source and a target, and batches of them; the keys are in batches.py. NumPy only.

A row holds the sources of some pairs one after the other, and the targets of the same pairs; both have to fit. Pictures
as sources have rows of their own (encoded_pictures.py).
Axes: N pair, B row, S source position, U target position.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from bert.data import encoded_examples
from bert.data.encoded_examples import EncodedExamples
from bert.data.encoded_pictures import EncodedPictures
from bert.types import HostBatch

_TARGET_KEYS = {"token_ids": "target_ids", "position_ids": "target_position_ids", "example_ids": "target_example_ids"}


@dataclasses.dataclass(frozen=True)
class EncodedPairs:
    """N sources with their special tokens, and N targets, each with the token that ends it."""

    source: EncodedExamples | EncodedPictures
    target: EncodedExamples

    def __len__(self) -> int:
        return len(self.source)

    @functools.cached_property
    def length_N(self) -> np.ndarray:
        """The places that a pair needs in a row, of sources and of targets alike."""
        return np.maximum(self.source.length_N, self.target.length_N)

    def take(self, chosen: Sequence[int]) -> EncodedPairs:
        """The chosen pairs, in that order."""
        return EncodedPairs(self.source.take(chosen), self.target.take(chosen))

    def assembled(self, members: Sequence[np.ndarray], length: int, size: int, slots: int) -> HostBatch:
        """As `encoded_examples.assemble`, with the targets."""
        batch = self.source.assembled(members, length, size, slots)
        target = self.target.assembled(members, length, size, slots)
        batch |= {ours: target[name] for name, ours in _TARGET_KEYS.items()}
        return batch | {"target_weights": (target["example_ids"] > 0).astype(np.float32)}


def join(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> EncodedPairs:
    """Pairs given as token ids."""
    return EncodedPairs(*(encoded_examples.join([(ids, len(ids)) for ids in side]) for side in (sources, targets)))
