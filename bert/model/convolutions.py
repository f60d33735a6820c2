"""Convolutions over time and grids, as matrix products of the taps side by side, and the gated block of ConvS2S.

Axes: B row, X row of a grid, Y column, T position, S position of the next level, K tap, I width in, O width out,
D width of a block.

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
    S, K = (x_BTI.shape[1] + 1) // 2, len(kernel_KIO)
    x_BTI = jnp.pad(x_BTI, ((0, 0), (0, K), (0, 0)))
    taps = [jax.lax.slice_in_dim(x_BTI, k, k + 2 * S - 1, stride=2, axis=1) for k in range(K)]
    return _product(taps, kernel_KIO, -bias_O, dtype)


def in_two(x_BXYI: Array, kernel_KKIO: Array, bias_O: Array, dtype: str, stride: int = 1) -> Array:
    """``sum_kl x[p x + k - 1, p y + l - 1] @ kernel[k, l] + bias`` of a grid, [B, X, Y, O], p the ``stride``, 1 or 2.

    With a stride of 2 the grid has even sides, and the result is [B, X/2, Y/2, O]. The kernel has 3 x 3 taps, of which
    the middle one lies on a cell that stays; beyond the grid, cells are 0.
    """
    X, Y = x_BXYI.shape[1:3]
    x_BXYI = jnp.pad(x_BXYI, ((0, 0), (1, 1), (1, 1), (0, 0)))
    taps = [x_BXYI[:, k : k + X : stride, l : l + Y : stride] for k in range(3) for l in range(3)]  # noqa: E741
    return _product(taps, kernel_KKIO, bias_O, dtype)


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
    far = min(abs(offset), T) if isinstance(T, int) else abs(offset)  # T is a symbol in a program that is exported
    before, after = (far, 0) if offset < 0 else (0, far)
    there_BTI = jnp.pad(x_BTI, ((0, 0), (before, after), (0, 0)))[:, after : after + T]
    there_BT = jnp.pad(ids_BT, ((0, 0), (before, after)))[:, after : after + T]
    return jnp.where(((there_BT == ids_BT) & (there_BT != 0))[..., None], there_BTI, 0.0)


def _product(taps: Sequence[Array], kernel_KIO: Array, bias_O: Array, dtype: str) -> Array:
    x = jnp.concatenate(taps, axis=-1)
    return matmul.dense(x, kernel_KIO.reshape(-1, kernel_KIO.shape[-1]), bias_O, dtype, dtype)


class GatedBlock(nn.Module):
    """``(a * sigmoid(gate) + x) * sqrt(1/2)``, [B, T, I] -> [B, T, D]; a convolution of x gives ``a`` and ``gate``.

    ``offsets``: of the taps, such as (-2, -1, 0) for one that sees nothing to its right. Where ``inputs``, I, is not D,
    a linear map of x is added instead of x.
    """

    config: ModelConfig
    width: int  # D
    offsets: tuple[int, ...]
    inputs: int = 0  # I; 0: D
    gain: float = 1.0
    weight_norm: bool = False

    def setup(self) -> None:
        inputs = self.inputs or self.width
        shape = (len(self.offsets), inputs, 2 * self.width)
        self.convolution = Weights(shape, gain=self.gain, weight_norm=self.weight_norm)
        if inputs != self.width:
            self.skip = Weights((inputs, self.width), weight_norm=self.weight_norm)

    def __call__(self, x_BTI: Array, batch: Batch) -> Array:
        return self.added(self.gated(x_BTI, batch), x_BTI)

    def gated(self, x_BTI: Array, batch: Batch) -> Array:
        """[B, T, D]: ``a * sigmoid(gate)``."""
        return _gated(dilated(x_BTI, *self.convolution(), self.offsets, batch, self.config.dtype))

    def gated_last(self, x_RKI: Array) -> Array:
        """[R, D]: `gated` at one place, whose K taps read these, one after the other."""
        taps = [x_RKI[:, k] for k in range(x_RKI.shape[1])]
        return _gated(_product(taps, *self.convolution(), self.config.dtype))

    def added(self, y: Array, x: Array) -> Array:
        """[..., D]: an output with the block's input [..., I], their sum scaled so that it varies as one of them."""
        if x.shape[-1] != self.width:
            x = matmul.dense(x, *self.skip(), self.config.dtype, self.config.dtype)
        return (y + x) * math.sqrt(0.5)


def _gated(y: Array) -> Array:
    a, gate = jnp.split(y, 2, axis=-1)
    return a * jax.nn.sigmoid(gate)
