"""The parts of a block: dense, layer norm, dropout, attention, feed-forward.

Axes: B row, T query position, S key position, D hidden width, N head, H head width, F feed-forward width.
Parameters are float32; matrix products run in ``config.dtype``; softmax and layer-norm statistics in float32.

Source: Devlin et al. 2018; google-research/bert ``modeling.py`` (post-norm blocks, truncated normal 0.02).
"""

import functools
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp

from bert.config import BertConfig

Array = jax.Array

ACTIVATION_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "gelu_new": functools.partial(jax.nn.gelu, approximate=True),
    "gelu_pytorch_tanh": functools.partial(jax.nn.gelu, approximate=True),
    "gelu_fast": functools.partial(jax.nn.gelu, approximate=True),
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "swish": jax.nn.silu,
    "tanh": jnp.tanh,
}


class Dense(nn.Module):
    """``x @ kernel + bias`` in ``config.dtype``; kernel float32 [in, out], bias float32 [out].

    ``float32_result``: the product still runs in ``config.dtype``, but its sums are never rounded to it.
    """

    config: BertConfig
    features: int
    float32_result: bool = False

    @nn.compact
    def __call__(self, x: Array) -> Array:
        dtype = self.config.dtype
        init = nn.initializers.truncated_normal(self.config.initializer_range)
        kernel = self.param("kernel", init, (x.shape[-1], self.features), jnp.float32)
        bias = self.param("bias", nn.initializers.zeros, (self.features,), jnp.float32)
        result = jnp.float32 if self.float32_result else dtype
        product = jnp.matmul(x.astype(dtype), kernel.astype(dtype), preferred_element_type=result)
        return product + bias.astype(result)


class LayerNorm(nn.Module):
    """Layer norm over the last axis, in float32 whatever comes in; scale and bias float32 [D]."""

    config: BertConfig

    @nn.compact
    def __call__(self, x: Array) -> Array:
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],), jnp.float32)
        bias = self.param("bias", nn.initializers.zeros, (x.shape[-1],), jnp.float32)
        x = x.astype(jnp.float32)
        centred = x - x.mean(-1, keepdims=True)
        # The variance of the centred values: E[x^2] - E[x]^2 cancels where the mean is large.
        variance = jnp.square(centred).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + self.config.layer_norm_eps) * scale + bias


def dropout(x: Array, rate: float, key: Array | None) -> Array:
    """``x`` with a share ``rate`` of its entries set to 0 and the others divided by the share kept.

    Args:
      x: any shape; the result has its dtype.
      rate: static; rounded to 1/65536, for the bits are drawn 16 at a time (half the cost of 32 on a CPU).
      key: None switches dropout off.
    """
    if key is None or rate == 0.0:
        return x
    threshold = min(max(1, round(rate * 65536)), 65535)
    kept = jax.random.bits(key, x.shape, jnp.uint16) >= threshold
    # Scaled in float32: rounded to bfloat16 first, 1/0.9 would make every sum 0.16 % too small.
    return (x.astype(jnp.float32) * (kept * (65536 / (65536 - threshold)))).astype(x.dtype)


def allowed_pairs(example_ids_BT: Array) -> Array:
    """bool [B, 1, T, S]: may query position T look at key position S?

    A key is seen inside its own example only; padding (example 0) is never a key. A padding query sees all keys of
    its row, as in the references; no loss reads what it gets.
    """
    query_BT1, key_B1S = example_ids_BT[:, :, None], example_ids_BT[:, None, :]
    return (((query_BT1 == key_B1S) | (query_BT1 == 0)) & (key_B1S != 0))[:, None]


def attention_scores(q_BTNH: Array, k_BSNH: Array) -> Array:
    """float32 [B, N, T, S]: ``q . k / sqrt(H)``."""
    scores_BNTS = jnp.einsum("BTNH,BSNH->BNTS", q_BTNH, k_BSNH, preferred_element_type=jnp.float32)
    return scores_BNTS * (q_BTNH.shape[-1] ** -0.5)


def attention_weights(q_BTNH: Array, k_BSNH: Array, allowed_B1TS: Array) -> Array:
    """float32 [B, N, T, S]: softmax over S of the scores, 0 where a pair is not allowed.

    A row without any allowed key (all padding) gets equal weights: finite, and read by no loss.
    """
    scores_BNTS = attention_scores(q_BTNH, k_BSNH)
    # One finite constant instead of an added mask: adding two masks overflows to -inf in low precision.
    return jax.nn.softmax(jnp.where(allowed_B1TS, scores_BNTS, -1e30), axis=-1)


def attention(
    q_BTNH: Array, k_BSNH: Array, v_BSNH: Array, allowed_B1TS: Array, *, rate: float, key: Array | None
) -> Array:
    """[B, T, N, H] in v's dtype: values averaged by attention weights, with dropout on the weights."""
    weights_BNTS = attention_weights(q_BTNH, k_BSNH, allowed_B1TS)
    weights_BNTS = dropout(weights_BNTS.astype(v_BSNH.dtype), rate, key)
    return jnp.einsum("BNTS,BSNH->BTNH", weights_BNTS, v_BSNH)


class SelfAttention(nn.Module):
    """Multi-head self-attention with its output projection, [B, T, D] -> [B, T, D]."""

    config: BertConfig

    def setup(self):
        self.query, self.key, self.value, self.output = (Dense(self.config, self.config.hidden_size) for _ in range(4))

    def heads(self, x_BTD: Array) -> tuple[Array, Array, Array]:
        """Queries, keys and values, each [B, T, N, H]."""
        B, T, _ = x_BTD.shape

        def split(projected_BTD: Array) -> Array:
            return projected_BTD.reshape(B, T, self.config.num_heads, -1)

        return split(self.query(x_BTD)), split(self.key(x_BTD)), split(self.value(x_BTD))

    def __call__(self, x_BTD: Array, allowed_B1TS: Array, key: Array | None) -> Array:
        q, k, v = self.heads(x_BTD)
        mixed_BTNH = attention(q, k, v, allowed_B1TS, rate=self.config.attention_dropout, key=key)
        return self.output(mixed_BTNH.reshape(x_BTD.shape))

    def scores(self, x_BTD: Array) -> Array:
        """Scores before the softmax, float32 [B, N, T, S]."""
        q, k, _ = self.heads(x_BTD)
        return attention_scores(q, k)

    def weights(self, x_BTD: Array, allowed_B1TS: Array) -> Array:
        """Attention weights float32 [B, N, T, S], without dropout."""
        q, k, _ = self.heads(x_BTD)
        return attention_weights(q, k, allowed_B1TS)


class FeedForward(nn.Module):
    """``down(activation(up(x)))``, [B, T, D] -> [B, T, D]."""

    config: BertConfig

    def setup(self):
        self.up = Dense(self.config, self.config.intermediate_size)
        self.down = Dense(self.config, self.config.hidden_size)

    def __call__(self, x_BTD: Array) -> Array:
        return self.down(ACTIVATION_FUNCTIONS[self.config.hidden_act](self.up(x_BTD)))


class Block(nn.Module):
    """One post-norm block: attention and feed-forward, each added to its input and normalised."""

    config: BertConfig

    def setup(self):
        self.attention, self.attention_norm = SelfAttention(self.config), LayerNorm(self.config)
        self.feed_forward, self.feed_forward_norm = FeedForward(self.config), LayerNorm(self.config)

    def __call__(self, x_BTD: Array, allowed_B1TS: Array, key: Array | None) -> Array:
        """``key``: dropout key of this block, None for none."""
        keys = (None,) * 3 if key is None else jax.random.split(key, 3)
        rate, dtype = self.config.hidden_dropout, self.config.dtype
        mixed_BTD = dropout(self.attention(x_BTD, allowed_B1TS, keys[0]), rate, keys[1])
        x_BTD = self.attention_norm(x_BTD + mixed_BTD).astype(dtype)
        return self.feed_forward_norm(x_BTD + dropout(self.feed_forward(x_BTD), rate, keys[2])).astype(dtype)

    def attention_weights(self, x_BTD: Array, allowed_B1TS: Array) -> Array:
        """This block's attention weights float32 [B, N, T, S] for the block's input."""
        return self.attention.weights(x_BTD, allowed_B1TS)
