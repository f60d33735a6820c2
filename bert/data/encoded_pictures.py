"""Pictures as examples: [CLS], then the patches row by row; as sources: the patches alone. NumPy only.

Axes: N picture, X row, Y column, C channel, B row of a batch, S patch, K numbers of a patch.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from bert.data.encoded_examples import EncodedExamples, starts_of
from bert.types import HostBatch


def patches(pictures_NXYC: np.ndarray, size: int) -> np.ndarray:
    """[N, X/p Y/p, K]: the patches of ``size`` p, row by row, each pixel by pixel with its channels; p divides X, Y."""
    N, X, Y, C = pictures_NXYC.shape
    cut = pictures_NXYC.reshape(N, X // size, size, Y // size, size, C).swapaxes(2, 3)
    return cut.reshape(N, -1, size * size * C)


def encode(pictures_NXYC: np.ndarray, size: int, **of_example: np.ndarray) -> EncodedExamples:
    """The pictures as examples of equal lengths, their patches as the array ``patches`` of each token."""
    patches_NTK = patches(pictures_NXYC.astype(np.float32), size)
    with_cls = np.concatenate([np.zeros_like(patches_NTK[:, :1]), patches_NTK], axis=1)
    N, T, K = with_cls.shape
    lengths, ids = np.full(N, T, np.int32), np.zeros(N * T, np.int32)
    return EncodedExamples(
        ids, starts_of(lengths.tolist()), lengths, of_example, {"patches": with_cls.reshape(N * T, K)}
    )


@dataclasses.dataclass(frozen=True)
class EncodedPictures:
    """N pictures of one size as sources of targets, each in a row of its own, which has a place for each patch.

    Pixels become numbers when they are needed, less the ``mean`` and over the ``deviation``.
    """

    pictures: Sequence[np.ndarray]  # [X, Y, C] each, of any dtype
    patch_size: int
    mean: float = 0.0
    deviation: float = 1.0

    def __len__(self) -> int:
        return len(self.pictures)

    @functools.cached_property
    def length_N(self) -> np.ndarray:
        """0 each: pictures take no place of the rows whose length a batch chooses."""
        return np.zeros(len(self), np.int64)

    def take(self, chosen: Sequence[int]) -> EncodedPictures:
        """The chosen pictures, in that order."""
        return dataclasses.replace(self, pictures=[self.pictures[i] for i in chosen])

    def assembled(self, members: Sequence[np.ndarray], length: int, size: int, slots: int) -> HostBatch:
        """As `encoded_examples.assemble`, with ``patches``, float32 [B, S, K]; ``length`` changes nothing."""
        del length
        pixels_NXYC = np.stack([self.pictures[int(i)] for (i,) in members]).astype(np.float32)
        scaled = (pixels_NXYC - np.float32(self.mean)) / np.float32(self.deviation)
        patches_NSK = patches(scaled, self.patch_size)
        N, S, K = patches_NSK.shape
        names = ("token_ids", "type_ids", "position_ids", "example_ids")
        batch = {name: np.zeros((size, S), np.int32) for name in names}
        batch["position_ids"][:N] = np.arange(S)
        batch["example_ids"][:N] = 1
        batch["cls_positions"] = np.zeros((size, slots), np.int32)
        batch["patches"] = np.zeros((size, S, K), np.float32)
        batch["patches"][:N] = patches_NSK
        return batch
