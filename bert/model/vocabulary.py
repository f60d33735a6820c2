"""Logits of the vocabulary from the tied token table, and the cross-entropy of masked words.

The logits are the largest array of a pretraining step. The cross-entropy keeps one copy of them, in the compute dtype.
Its gradient is explicit: a comparison with the label instead of a scatter, and float32 sums.
Axes: M all leading axes as one (predicted positions), D hidden width, V vocabulary entry.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from bert.model import matmul

Pair = tuple[Array, Array]
Scores = tuple[Array, Array, Array]
_TILE = 128  # half-precision kernels of accelerators want widths that are multiples of a tile
_NEVER = -1e30  # score of the entries that fill the last tile


def logits(x: Array, table_VD: Array, bias_V: Array, dtype: str) -> Array:
    """float32 [..., V]: ``x @ table^T + bias``, of x float [..., D] and a float32 table; ``dtype``: of the operands."""
    operands = matmul.operand(x, dtype), matmul.operand(table_VD, dtype)
    return matmul.dot(*operands, ((x.ndim - 1,), (1,)), result="float32") + bias_V


def cross_entropy_and_correct(x: Array, table_VD: Array, bias_V: Array, labels: Array, dtype: str) -> Pair:
    """Cross-entropy in nats of the labels by `logits`, and whether none scores higher; both float32 [...].

    ``labels``: int [...], 0 to V - 1; any other costs NaN, so that a training step with it is skipped and counted.
    """
    loss, _, correct = _cross_entropies(x, table_VD, bias_V, labels, dtype, 0.0)
    return loss, correct


def smoothed_cross_entropy(
    x: Array, table_VD: Array, bias_V: Array, labels: Array, dtype: str, smoothing: float
) -> Scores:
    """As `cross_entropy_and_correct`: the cross-entropy to smoothed labels, which is trained, that to the labels
    themselves, and whether none scores higher.

    ``smoothing``: a share of the labels that all V entries have alike, see `losses.smoothed`.
    """
    loss, plain, correct = _cross_entropies(x, table_VD, bias_V, labels, dtype, smoothing)
    return loss, jax.lax.stop_gradient(plain), correct


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5))
def _cross_entropies(x: Array, table_VD: Array, bias_V: Array, labels: Array, dtype: str, smoothing: float) -> Scores:
    return _forward(x, table_VD, bias_V, labels, dtype, smoothing)[0]


def _forward(
    x: Array, table_VD: Array, bias_V: Array, labels: Array, dtype: str, smoothing: float
) -> tuple[Scores, tuple[Array, ...]]:
    x_MD, label_M1 = x.reshape(-1, x.shape[-1]), labels.reshape(-1, 1)
    table_WD, bias_W = _tiled(table_VD, bias_V, dtype)
    # Compared in float32: rounded to bfloat16, a close second would count as a hit.
    scores_MW = logits(x_MD, table_WD, bias_W, dtype)
    high_M1 = scores_MW.max(-1, keepdims=True)
    total_M1 = jnp.exp(scores_MW - high_M1).sum(-1, keepdims=True)
    own_M1 = jnp.take_along_axis(scores_MW, jnp.clip(label_M1, 0, table_VD.shape[0] - 1), 1)
    log_total_M1 = high_M1 + jnp.log(total_M1)
    plain_M1 = loss_M1 = log_total_M1 - own_M1
    if smoothing:
        # The mean of all scores, without another pass over them.
        mean_D = matmul.column_sums(matmul.operand(table_VD, dtype)) / table_VD.shape[0]
        mean_M1 = (matmul.operand(x_MD, dtype).astype(jnp.float32) * mean_D).sum(-1, keepdims=True) + bias_V.mean()
        loss_M1 = log_total_M1 - (1 - smoothing) * own_M1 - smoothing * mean_M1
    known_M1 = (label_M1 >= 0) & (label_M1 < table_VD.shape[0])
    loss_M1, plain_M1 = (jnp.where(known_M1, value_M1, jnp.nan) for value_M1 in (loss_M1, plain_M1))
    correct_M1 = (known_M1 & (own_M1 >= high_M1)).astype(jnp.float32)
    saved = (x, table_VD, bias_V, label_M1, scores_MW.astype(dtype), log_total_M1)
    loss, plain, correct = (value_M1.reshape(labels.shape) for value_M1 in (loss_M1, plain_M1, correct_M1))
    return (loss, plain, correct), saved


def _backward(dtype: str, smoothing: float, saved: tuple[Array, ...], gradients: Scores) -> tuple[Any, ...]:
    x, table_VD, bias_V, label_M1, scores_MW, log_total_M1 = saved
    weight_M1 = gradients[0].reshape(-1, 1)
    share_MW = jnp.exp(scores_MW.astype(jnp.float32) - log_total_M1)
    is_label_MW = label_M1 == jax.lax.broadcasted_iota(jnp.int32, scores_MW.shape, 1)
    words = table_VD.shape[0]
    target_MW = is_label_MW.astype(jnp.float32)
    if smoothing:
        is_entry_W = jnp.arange(scores_MW.shape[1]) < words
        target_MW = (1 - smoothing) * target_MW + jnp.where(is_entry_W, smoothing / words, 0.0)
    dscores_MW = matmul.operand((share_MW - target_MW) * weight_M1, dtype)
    x_MD = x.reshape(-1, x.shape[-1])
    table_WD, _ = _tiled(table_VD, bias_V, dtype)
    dx_MD = matmul.dot(dscores_MW, matmul.operand(table_WD, dtype), ((1,), (0,)), result="float32")
    dtable_WD = matmul.dot(dscores_MW, matmul.operand(x_MD, dtype), ((0,), (0,)), result="float32")
    dbias_W = matmul.column_sums(dscores_MW)
    return dx_MD.reshape(x.shape).astype(x.dtype), dtable_WD[:words], dbias_W[:words], None


def _tiled(table_VD: Array, bias_V: Array, dtype: str) -> tuple[Array, Array]:
    """Table and bias for a number of entries W that half precision likes; float32 takes the table as it lies."""
    rest = -table_VD.shape[0] % _TILE if dtype == "bfloat16" else 0
    if not rest:
        return table_VD, bias_V
    # Fused with the cast to the compute dtype, which copies the table anyway.
    return jnp.pad(table_VD, ((0, rest), (0, 0))), jnp.pad(bias_V, (0, rest), constant_values=_NEVER)


_cross_entropies.defvjp(_forward, _backward)
