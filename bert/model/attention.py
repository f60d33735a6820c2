"""Scaled dot-product attention of one or two streams, masked by a `Pattern`.

Axes: B row, T query position, S key position, N head, H head width.
"""

import functools

import jax
import jax.numpy as jnp
from jax import Array

from bert.model import matmul
from bert.model.dropout import kept
from bert.model.pattern import Pattern


def attention_scores(q_BTNH: Array, k_BSNH: Array, scale: float | None = None) -> Array:
    """float32 [B, N, T, S]: ``q . k`` times the scale; None: 1 / sqrt(H)."""
    scores_BNTS = jnp.einsum("BTNH,BSNH->BNTS", q_BTNH, k_BSNH, preferred_element_type=jnp.float32)
    return scores_BNTS * _scale(q_BTNH, scale)


def _scale(q: Array, scale: float | None) -> float:
    return float(q.shape[-1] ** -0.5) if scale is None else scale


def attention_weights(scores_BNTS: Array, pattern: Pattern) -> Array:
    """float32 [B, N, T, S]: softmax over S of the scores, 0 where a pair is not allowed.

    A row without any allowed key (all padding) gets equal weights: finite, and read by no loss.
    """
    # One finite constant instead of an added mask: adding two masks overflows to -inf in low precision.
    return jax.nn.softmax(jnp.where(pattern.allowed(), scores_BNTS, -1e30), axis=-1)


def attention(
    q_BTNH: Array,
    k_BSNH: Array,
    v_BSNH: Array,
    pattern: Pattern,
    key: Array | None = None,
    rate: float = 0.0,
    scale: float | None = None,
) -> Array:
    """[B, T, N, H] in v's dtype: values averaged by attention weights, with dropout on the weights.

    The gradient is written out: of the arrays [B, N, T, S] one is kept for it, where autodiff would keep three. Without
    any key (a row of padding) q and k get a gradient where autodiff gives 0; no loss reads what such a row gets.

    q, k and v are float32 or bfloat16, all the same; so are their gradients. ``key``: of dropout, None for none;
    ``rate``: its share of weights, static. ``scale``: of the scores, static; None: 1 / sqrt(H). Queries and keys may
    have another width than values.
    """
    return _core(q_BTNH, k_BSNH, v_BSNH, pattern, key, 0.0 if key is None else rate, _scale(q_BTNH, scale))


@functools.partial(jax.custom_vjp, nondiff_argnums=(5, 6))
def _core(
    q_BTNH: Array, k_BSNH: Array, v_BSNH: Array, pattern: Pattern, key: Array | None, rate: float, scale: float
) -> Array:
    return _forward(q_BTNH, k_BSNH, v_BSNH, pattern, key, rate, scale)[0]


def _forward(
    q_BTNH: Array, k_BSNH: Array, v_BSNH: Array, pattern: Pattern, key: Array | None, rate: float, scale: float
) -> tuple[Array, tuple[Array, ...]]:
    dtype = v_BSNH.dtype.name
    q_BNTH, k_BNSH, v_BNSH = (matmul.operand(x.swapaxes(1, 2), dtype) for x in (q_BTNH, k_BSNH, v_BSNH))
    scores_BNTS = matmul.batched_dot(q_BNTH, k_BNSH, (3, 3), result="float32") * scale
    weights_BNTS = attention_weights(scores_BNTS, pattern)
    if rate and key is not None:
        # Weights are not negative: the sign says which ones dropout takes away, and saves a second array.
        weights_BNTS = jnp.where(kept(key, weights_BNTS.shape, rate), weights_BNTS, -weights_BNTS)
    signed_BNTS = weights_BNTS.astype(dtype)
    mixed_BNTH = matmul.batched_dot(_dropped(signed_BNTS, rate, dtype), v_BNSH, (3, 2), result=dtype)
    mixed_BTNH = mixed_BNTH.astype(dtype).swapaxes(1, 2)
    return mixed_BTNH, (q_BTNH, k_BSNH, v_BSNH, signed_BNTS, mixed_BTNH)


def _dropped(signed_BNTS: Array, rate: float, dtype: str) -> Array:
    """The weights after dropout, to be multiplied."""
    scaled_BNTS = jnp.maximum(signed_BNTS.astype(jnp.float32), 0.0) * (1 / (1 - rate))
    return matmul.operand(scaled_BNTS, dtype)


def _backward(rate: float, scale: float, saved: tuple[Array, ...], dmixed_BTNH: Array) -> tuple[Array | None, ...]:
    q_BTNH, k_BSNH, v_BSNH, signed_BNTS, mixed_BTNH = saved
    dtype = v_BSNH.dtype.name
    q_BNTH, k_BNSH, v_BNSH, dmixed_BNTH = (
        matmul.operand(x.swapaxes(1, 2), dtype) for x in (q_BTNH, k_BSNH, v_BSNH, dmixed_BTNH)
    )
    dv_BNSH = matmul.batched_dot(_dropped(signed_BNTS, rate, dtype), dmixed_BNTH, (2, 2), result=dtype)
    ddropped_BNTS = matmul.batched_dot(dmixed_BNTH, v_BNSH, (3, 3), result="float32")
    # sum_s weight_s dweight_s, as a sum over H instead of S.
    mean_BTN = (dmixed_BTNH.astype(jnp.float32) * mixed_BTNH.astype(jnp.float32)).sum(-1)
    dweights_BNTS = jnp.where(signed_BNTS >= 0, ddropped_BNTS * (1 / (1 - rate)), 0.0)
    dweights_BNTS -= mean_BTN.swapaxes(1, 2)[..., None]
    dscores_BNTS = jnp.abs(signed_BNTS.astype(jnp.float32)) * dweights_BNTS * scale
    dscores_BNTS = matmul.operand(dscores_BNTS, dtype)
    dq_BNTH = matmul.batched_dot(dscores_BNTS, k_BNSH, (3, 2), result=dtype)
    dk_BNSH = matmul.batched_dot(dscores_BNTS, q_BNTH, (2, 2), result=dtype)
    dq, dk, dv = (d.astype(dtype).swapaxes(1, 2) for d in (dq_BNTH, dk_BNSH, dv_BNSH))
    return dq, dk, dv, None, None


_core.defvjp(_forward, _backward)


def fused_attention(q_BTNH: Array, k_BSNH: Array, v_BSNH: Array, pattern: Pattern, scale: float | None = None) -> Array:
    """`attention` without dropout, with no array [B, N, T, S]: by cuDNN where it takes these arrays, else by the core.

    The pairs become one bias [B, 1, T, S] in bfloat16. JAX's Pallas kernel for GPUs would compare example ids inside,
    but takes few lengths, is not split over devices, and is deprecated since JAX 0.11.
    JAX up to 0.11.0 has cuDNN compute the bias's gradient as well, which takes one block's [B, N, T, S] in bfloat16 as
    workspace. Gradients are the same bits in each run only under XLA_FLAGS=--xla_gpu_deterministic_ops=true.
    """
    if not _cudnn_takes(q_BTNH, k_BSNH) or q_BTNH.shape[-1] != v_BSNH.shape[-1]:
        return attention(q_BTNH, k_BSNH, v_BSNH, pattern, scale=scale)
    allowed_B1TS = pattern.allowed()
    # Without any key (a row of padding alone) the kernel's gradient may be NaN, times a zero too.
    seen_B1TS = allowed_B1TS | ~allowed_B1TS.any(-1, keepdims=True)
    return jax.nn.dot_product_attention(q_BTNH, k_BSNH, v_BSNH, mask=seen_B1TS, scale=scale, implementation="cudnn")


def _cudnn_takes(q_BTNH: Array, k_BSNH: Array) -> bool:
    """Whether cuDNN has a kernel for these shapes, forward and backward, on this backend and mesh."""
    lengths, (N, H) = (q_BTNH.shape[1], k_BSNH.shape[1]), q_BTNH.shape[2:]
    return (
        _has_fused_attention()
        and q_BTNH.dtype == jnp.bfloat16
        and H % 8 == 0
        and H <= 128
        and N % jax.sharding.get_abstract_mesh().shape.get("model", 1) == 0  # whole heads on each device
        # Even ones. At 64 beyond a multiple of 128 some versions give NaN gradients (pytorch/pytorch issue 196678).
        and all(length % 2 == 0 and length % 128 != 64 for length in lengths)
    )


@functools.cache
def _has_fused_attention() -> bool:
    """Whether this is an NVIDIA GPU of the Ampere generation or newer."""
    if jax.default_backend() != "gpu":
        return False
    major = str(jax.local_devices()[0].compute_capability).partition(".")[0]  # of "9.0"; AMD's are like "gfx942"
    return major.isdigit() and int(major) >= 8
