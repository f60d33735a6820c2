"""Attention whose queries and keys are one matrix a head, not of low rank: scores ``x W~ y + u y``.

Axes: as in blocks.py.

Source: bert/query_key.py has the formulas, and converts ordinary heads.
"""

import math

import jax.numpy as jnp
from jax import Array

from bert.model import matmul
from bert.model.blocks import Block, Dense, MultiHeadAttention
from bert.model.pattern import Pattern
from bert.model.weights import Weights


class MergedAttention(MultiHeadAttention):
    """`MultiHeadAttention` with ``N D^2`` parameters for the scores, instead of ``2 D^2``.

    The kernel of ``merged`` [D, N D] holds the matrices of all heads side by side, its bias [N D] their ``u``; keys are
    what attention reads, and the scale is in the matrices.
    """

    scale: float | None = 1.0

    def setup(self) -> None:
        D, deviation = self.config.hidden_size, self.config.initializer_range**2  # as of a product of two kernels
        self.merged = Weights((D, self.config.num_heads * D), gain=deviation * math.sqrt(D))
        self.value = Dense(self.config, D)
        self._setup_output()

    def _queries_and_keys(self, x_BTD: Array, x_BSD: Array, pattern: Pattern) -> tuple[Array, Array]:
        """[B, T, N, D] and [B, S, N, D]."""
        N, dtype = self.config.num_heads, self.config.dtype
        q_BTND = matmul.dense(x_BTD, *self.merged(), dtype, dtype).reshape(*x_BTD.shape[:2], N, -1)
        return q_BTND, jnp.repeat(x_BSD[:, :, None].astype(dtype), N, axis=2)


class MergedBlock(Block):
    """A block with `MergedAttention`."""

    attention_class = MergedAttention
