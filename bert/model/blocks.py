"""The parts of a block: dense, layer norm, dropout, attention, feed-forward.

Axes: B row, T query position, S key position, D hidden width, N head, H head width, F feed-forward width.
Parameters are float32; matrix products run in ``config.dtype``; softmax and layer-norm statistics in float32.

Source: Devlin et al. 2018; google-research/bert ``modeling.py`` (post-norm blocks, truncated normal 0.02).
"""

import functools
import math
from collections.abc import Callable
from typing import ClassVar, Protocol

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from bert.architectures import ModelConfig
from bert.model import matmul
from bert.model.attention import attention, attention_scores, attention_weights, fused_attention
from bert.model.dropout import dropout
from bert.model.initializers import truncated_normal
from bert.model.pattern import Pattern
from bert.model.positions import rotate


@jax.custom_vjp
def gelu(x: Array) -> Array:
    """``x`` times the normal distribution function, computed in float32; the gradient keeps ``x`` alone."""
    return (x * _normal_below(x.astype(jnp.float32))).astype(x.dtype)


def _normal_below(x: Array) -> Array:
    return 0.5 * (1.0 + jax.lax.erf(x * math.sqrt(0.5)))


def _gelu_backward(x: Array, dy: Array) -> tuple[Array]:
    wide = x.astype(jnp.float32)
    density = jnp.exp(-0.5 * wide * wide) * (1 / math.sqrt(2 * math.pi))
    return ((dy * (_normal_below(wide) + wide * density)).astype(x.dtype),)


gelu.defvjp(lambda x: (gelu(x), x), _gelu_backward)

ACTIVATION_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_new": functools.partial(jax.nn.gelu, approximate=True),
    "gelu_pytorch_tanh": functools.partial(jax.nn.gelu, approximate=True),
    "gelu_fast": functools.partial(jax.nn.gelu, approximate=True),
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "swish": jax.nn.silu,
    "tanh": jnp.tanh,
}


Cache = tuple[Array, Array]  # keys and values of all positions so far, [B, S, N, H] each


class BlockConfig(ModelConfig, Protocol):
    """What the blocks of a Transformer read of a configuration beside what everybody reads."""

    @property
    def num_heads(self) -> int: ...
    @property
    def intermediate_size(self) -> int: ...
    @property
    def attention_dropout(self) -> float: ...
    @property
    def causal(self) -> bool: ...  # whether no position sees a later one
    @property
    def attention(self) -> str: ...  # "core", or "fused": cuDNN's kernel where there is one
    @property
    def layer_loop(self) -> str: ...  # "scan", "unroll" or "auto": unroll on one CPU device
    @property
    def remat(self) -> bool: ...  # compute blocks again in the backward pass


class Dense(nn.Module):
    """``x @ kernel + bias`` in ``config.dtype``; kernel float32 [in, out], bias float32 [out].

    ``float32_result``: the product still runs in ``config.dtype``, but its sums are never rounded to it.
    """

    config: ModelConfig
    features: int
    float32_result: bool = False
    with_bias: bool = True

    @nn.compact
    def __call__(self, x: Array) -> Array:
        dtype = self.config.dtype
        init = truncated_normal(self.config.initializer_range)
        kernel = self.param("kernel", init, (x.shape[-1], self.features))
        zeros = jnp.zeros((self.features,), jnp.float32)
        bias = self.param("bias", lambda key: zeros) if self.with_bias else zeros
        return matmul.dense(x, kernel, bias, dtype, "float32" if self.float32_result else dtype)


class LayerNorm(nn.Module):
    """Layer norm over the last axis, in float32 whatever comes in; scale and bias float32 [D]."""

    config: ModelConfig

    @nn.compact
    def __call__(self, x: Array) -> Array:
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],), jnp.float32)
        bias = self.param("bias", nn.initializers.zeros, (x.shape[-1],), jnp.float32)
        x = x.astype(jnp.float32)
        centred = x - x.mean(-1, keepdims=True)
        # The variance of the centred values: E[x^2] - E[x]^2 cancels where the mean is large.
        variance = jnp.square(centred).mean(-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + self.config.layer_norm_eps) * scale + bias


class MultiHeadAttention(nn.Module):
    """Attention of one or two streams, with its output projection.

    ``rotary_base``: of rotary positions (10,000 in RoFormer), which come with the pattern; None: no such positions.
    ``scale``: of the scores; None: 1 / sqrt(H). ``with_output``: else the heads' mixtures are the result, side by side.
    """

    config: BlockConfig
    rotary_base: float | None = None
    scale: float | None = None
    with_output: bool = True

    def setup(self) -> None:
        self.query, self.key, self.value = (Dense(self.config, self.config.hidden_size) for _ in range(3))
        self._setup_output()

    def _setup_output(self) -> None:
        self.output = Dense(self.config, self.config.hidden_size) if self.with_output else lambda heads_BTD: heads_BTD

    def _heads(self, dense: Dense, x_BTD: Array) -> Array:
        """[B, T, N, H]: queries, keys or values, by the projection that makes them."""
        return dense(x_BTD).reshape(*x_BTD.shape[:2], self.config.num_heads, -1)

    def _queries_and_keys(self, x_BTD: Array, x_BSD: Array, pattern: Pattern) -> tuple[Array, Array]:
        q, k = self._heads(self.query, x_BTD), self._heads(self.key, x_BSD)
        if self.rotary_base is None:
            return q, k
        query_BT, key_BS = pattern.positions()
        return rotate(q, query_BT, self.rotary_base), rotate(k, key_BS, self.rotary_base)

    def __call__(self, x_BTD: Array, x_BSD: Array, pattern: Pattern, key: Array | None = None) -> Array:
        """[B, T, D]: what positions T take from positions S; ``key``: of dropout on the weights, None for none."""
        q, k = self._queries_and_keys(x_BTD, x_BSD, pattern)
        v = self._heads(self.value, x_BSD)
        if self.config.attention == "fused":
            if key is not None:
                self.config.check_training()
            mixed_BTNH = fused_attention(q, k, v, pattern, self.scale)
        else:
            mixed_BTNH = attention(q, k, v, pattern, key, self.config.attention_dropout, self.scale)
        return self.output(mixed_BTNH.reshape(x_BTD.shape))

    def extend(self, x_BTD: Array, cache: Cache, pattern: Pattern) -> tuple[Array, Cache]:
        """[B, T, D], what new positions take from themselves and those in the cache, and the cache with them.

        ``pattern``: of the new positions and all places of the cache, which are positions.
        """
        query_BT, _ = pattern.positions()
        here = Pattern(pattern.query_ids, pattern.query_ids, query_BT, query_BT)
        q, k = self._queries_and_keys(x_BTD, x_BTD, here)
        rows_B1, new = jnp.arange(len(x_BTD))[:, None], (k, self._heads(self.value, x_BTD))
        k, v = (old.at[rows_B1, query_BT].set(more) for old, more in zip(cache, new, strict=True))
        return self.output(attention(q, k, v, pattern, scale=self.scale).reshape(x_BTD.shape)), (k, v)

    def keys_and_values(self, x_BSD: Array) -> Cache:
        """What `of_keys` reads, [B, S, N, H] each; without rotary positions."""
        return self._heads(self.key, x_BSD), self._heads(self.value, x_BSD)

    def of_keys(self, x_BTD: Array, keys_and_values: Cache, pattern: Pattern) -> Array:
        """[B, T, D]: what positions T take from keys and values that were made before."""
        mixed_BTNH = attention(self._heads(self.query, x_BTD), *keys_and_values, pattern, scale=self.scale)
        return self.output(mixed_BTNH.reshape(x_BTD.shape))

    def scores_and_weights(self, x_BTD: Array, x_BSD: Array, pattern: Pattern) -> tuple[Array, Array]:
        """Scores before the softmax and weights after it, float32 [B, N, T, S] each, without dropout."""
        scores_BNTS = attention_scores(*self._queries_and_keys(x_BTD, x_BSD, pattern), self.scale)
        return scores_BNTS, attention_weights(scores_BNTS, pattern)

    def steps(self, x_BTD: Array, x_BSD: Array, pattern: Pattern) -> dict[str, Array]:
        """What `__call__` computes on its way, without dropout.

        ``q``, ``k``, ``v``, ``mixture`` [B, T, N, H]; ``scaled``, ``weights`` float32 [B, N, T, S]; ``allowed`` bool
        [B, 1, T, S]; ``heads`` (the mixtures of all heads, side by side) and ``projected`` [B, T, D].
        """
        q, k = self._queries_and_keys(x_BTD, x_BSD, pattern)
        v = self._heads(self.value, x_BSD)
        scaled_BNTS = attention_scores(q, k, self.scale)
        weights_BNTS = attention_weights(scaled_BNTS, pattern)
        mixed_BTNH = attention(q, k, v, pattern, scale=self.scale)
        steps = {"q": q, "k": k, "v": v, "scaled": scaled_BNTS, "weights": weights_BNTS, "allowed": pattern.allowed()}
        heads_BTD = mixed_BTNH.reshape(x_BTD.shape)
        return steps | {"mixture": mixed_BTNH, "heads": heads_BTD, "projected": self.output(heads_BTD)}


class FeedForward(nn.Module):
    """``down(activation(up(x)))``, [B, T, D] -> [B, T, D]."""

    config: BlockConfig

    def setup(self) -> None:
        self.up = Dense(self.config, self.config.intermediate_size)
        self.down = Dense(self.config, self.config.hidden_size)

    def __call__(self, x_BTD: Array) -> Array:
        return self.down(ACTIVATION_FUNCTIONS[self.config.hidden_act](self.up(x_BTD)))


class Block(nn.Module):
    """One block: attention and feed-forward, each added to its input.

    ``attention_class``: `MultiHeadAttention`, or another with its methods.
    ``pre_norm``: the sublayers read the normalised input (GPT-2); else the sums are normalised (BERT).
    """

    config: BlockConfig
    pre_norm: bool = False
    attention_class: ClassVar[type[MultiHeadAttention]] = MultiHeadAttention

    def setup(self) -> None:
        self.attention, self.attention_norm = self.attention_class(self.config), LayerNorm(self.config)
        self.feed_forward, self.feed_forward_norm = FeedForward(self.config), LayerNorm(self.config)

    def __call__(
        self, x_BSD: Array, pattern: Pattern, key: Array | None = None, positions_BT: Array | None = None
    ) -> Array:
        """Hidden states [B, T, D] at ``positions_BT`` of each row (None: at all), from those at all positions.

        ``key``: dropout key of this block, None for none.
        """
        keys = (None,) * 3 if key is None else jax.random.split(key, 3)
        read_BTD = read_BSD = self._read(x_BSD)
        x_BTD = x_BSD
        if positions_BT is not None:
            x_BTD, read_BTD, pattern = pick(x_BSD, positions_BT), pick(read_BSD, positions_BT), pattern.at(positions_BT)
        return self._added(x_BTD, self.attention(read_BTD, read_BSD, pattern, keys[0]), keys[1], keys[2])

    def extend(self, x_BTD: Array, cache: Cache, pattern: Pattern) -> tuple[Array, Cache]:
        """`__call__` of new positions, which read those in the cache, too; see `MultiHeadAttention.extend`."""
        mixed_BTD, cache = self.attention.extend(self._read(x_BTD), cache, pattern)
        return self._added(x_BTD, mixed_BTD, None, None), cache

    def _added(self, x_BTD: Array, mixed_BTD: Array, key_1: Array | None, key_2: Array | None) -> Array:
        """The block's output, from its input and what the attention gives."""
        rate, dtype = self.config.hidden_dropout, self.config.dtype
        x_BTD = x_BTD + dropout(mixed_BTD, rate, key_1)
        if self.pre_norm:
            fed_BTD = self.feed_forward(self.feed_forward_norm(x_BTD).astype(dtype))
            return x_BTD + dropout(fed_BTD, rate, key_2)
        x_BTD = self.attention_norm(x_BTD).astype(dtype)
        return self.feed_forward_norm(x_BTD + dropout(self.feed_forward(x_BTD), rate, key_2)).astype(dtype)

    def _read(self, x_BSD: Array) -> Array:
        """What the attention reads of the block's input."""
        return self.attention_norm(x_BSD).astype(self.config.dtype) if self.pre_norm else x_BSD

    def scores_and_weights(self, x_BTD: Array, pattern: Pattern) -> tuple[Array, Array]:
        """Those of the attention, for the block's input."""
        read_BTD = self._read(x_BTD)
        scores_BNTS, weights_BNTS = self.attention.scores_and_weights(read_BTD, read_BTD, pattern)
        return scores_BNTS, weights_BNTS

    def steps(self, x_BTD: Array, pattern: Pattern) -> dict[str, Array]:
        """What `__call__` computes on its way, without dropout: the steps of the attention, and the vectors between
        them and the next block, [B, T, D] each, in the order of computing."""
        dtype, steps = self.config.dtype, self.attention.steps(x_BTD, x_BTD, pattern)
        summed_BTD = x_BTD + steps["projected"]
        normed_BTD = self.attention_norm(summed_BTD).astype(dtype)
        fed_BTD = self.feed_forward(normed_BTD)
        output_BTD = self.feed_forward_norm(normed_BTD + fed_BTD).astype(dtype)
        steps |= {"input": x_BTD, "attention_sum": summed_BTD, "attention_norm": normed_BTD}
        return steps | {"feed_forward": fed_BTD, "feed_forward_sum": normed_BTD + fed_BTD, "output": output_BTD}


class PreNormBlock(Block):
    """A block whose sublayers read their normalised input."""

    pre_norm: bool = True


def pick(hidden_BTD: Array, positions_BP: Array) -> Array:
    """[B, P, D]: the hidden states at the given positions of each row."""
    return jnp.take_along_axis(hidden_BTD, positions_BP[..., None], axis=1)
