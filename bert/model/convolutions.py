"""Convolutions over time, as matrix products of the taps side by side, and the gated block of ConvS2S.

Axes: B row, T position, S position of the next level, K tap, I width in, O width out, D width of a block.

Source: van den Oord et al. 2016 (WaveNet: dilated, one-sided); Gehring et al. 2017 (ConvS2S), section 3.1 (the block).
"""

import math
from collections.abc import Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from bert.architectures import ModelConfig
from bert.model import matmul
from bert.model.weights import Weights
from bert.types import Batch


def strided(x_BTI: Array, kernel_KIO: Array, bias_O: Array, dtype: str) -> Array:
    """[B, S, O]: ``sum_k x[2 s + k] @ kernel[k] - bias`` for half as many positions, rounded up; 0 beyond the row."""
    T, K = x_BTI.shape[1], len(kernel_KIO)
    S = -(-T // 2)
    x_BTI = jnp.pad(x_BTI, ((0, 0), (0, max(0, 2 * (S - 1) + K - T)), (0, 0)))
    taps = [jax.lax.slice_in_dim(x_BTI, k, k + 2 * S - 1, stride=2, axis=1) for k in range(K)]
    return _product(taps, kernel_KIO, -bias_O, dtype)


def transposed(y_BSO: Array, kernel_KOI: Array, bias_I: Array, length: int, dtype: str) -> Array:
    """[B, T, I], the way back from every second position: ``x[2 s + k]`` gets ``y[s] @ kernel[k]``, minus the bias.

    ``length``: T, what lies beyond is cut off. Source: Long et al. 2015, section 3.3.
    """
    B, S, K = *y_BSO.shape[:2], len(kernel_KOI)
    zero = jnp.zeros((kernel_KOI.shape[2],))
    total = jnp.zeros((B, 2 * S + K, kernel_KOI.shape[2]), y_BSO.dtype)
    for k in range(K):
        given_BSI = matmul.dense(y_BSO, kernel_KOI[k], zero, dtype, dtype)
        total += jax.lax.pad(given_BSI, jnp.zeros((), given_BSI.dtype), ((0, 0, 0), (k, K - k + 1, 1), (0, 0, 0)))
    return total[:, :length] - bias_I.astype(total.dtype)


def dilated(
    x_BTI: Array, kernel_KIO: Array, bias_O: Array, offsets_K: Sequence[int], batch: Batch, dtype: str
) -> Array:
    """[B, T, O]: ``sum_k x[t + offset_k] @ kernel[k] + bias``; a tap beyond the example, or on padding, reads 0."""
    taps = [shifted(x_BTI, offset, batch) for offset in offsets_K]
    return _product(taps, kernel_KIO, bias_O, dtype)


def shifted(x_BTI: Array, offset: int, batch: Batch) -> Array:
    """``x[t + offset]``; 0 where that is outside of the example of t, or padding."""
    T, ids_BT = x_BTI.shape[1], batch["example_ids"]
    if abs(offset) >= T:
        return jnp.zeros_like(x_BTI)
    pads = (max(0, -offset), max(0, offset))
    source = slice(max(0, offset), T + min(0, offset))
    there_BTI, there_BT = jnp.pad(x_BTI[:, source], ((0, 0), pads, (0, 0))), jnp.pad(ids_BT[:, source], ((0, 0), pads))
    return jnp.where(((there_BT == ids_BT) & (there_BT != 0))[..., None], there_BTI, 0.0)


def _product(taps: Sequence[Array], kernel_KIO: Array, bias_O: Array, dtype: str) -> Array:
    x = jnp.concatenate(taps, axis=-1)
    return matmul.dense(x, kernel_KIO.reshape(-1, kernel_KIO.shape[-1]), bias_O, dtype, dtype)


class GatedBlock(nn.Module):
    """``(a * sigmoid(gate) + x) * sqrt(1/2)``, [B, T, D]; a convolution of x gives ``a`` and ``gate``.

    ``offsets``: of the taps, such as (-2, -1, 0) for one that sees nothing to its right.
    """

    config: ModelConfig
    width: int  # D
    offsets: tuple[int, ...]

    def setup(self) -> None:
        self.convolution = Weights((len(self.offsets), self.width, 2 * self.width))

    def __call__(self, x_BTD: Array, batch: Batch) -> Array:
        y_BT2D = dilated(x_BTD, *self.convolution(), self.offsets, batch, self.config.dtype)
        a_BTD, gate_BTD = jnp.split(y_BT2D, 2, axis=-1)
        return (a_BTD * jax.nn.sigmoid(gate_BTD) + x_BTD) * math.sqrt(0.5)
