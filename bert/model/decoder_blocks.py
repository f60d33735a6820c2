"""A stack of decoder blocks: each attends to the words before, then to a memory, then feeds forward.

Axes: as in blocks.py; U target position, R hypothesis, L layer. Parameters are stacked as in stack.py.

Source: Vaswani et al. 2017, section 3.1; Xiong et al. 2020, "On layer normalization" (pre-norm).
"""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from bert.model import stack
from bert.model.blocks import BlockConfig, Cache, FeedForward, LayerNorm, MultiHeadAttention
from bert.model.decoders import DecoderState, Memory
from bert.model.dropout import dropout
from bert.model.pattern import Pattern
from bert.types import Batch, Params


class DecoderBlock(nn.Module):
    """Attention, attention to the memory, and feed-forward, each added to its input; see `blocks.Block`."""

    config: BlockConfig
    pre_norm: bool = False

    def setup(self) -> None:
        config = self.config
        self.attention, self.attention_norm = MultiHeadAttention(config), LayerNorm(config)
        self.memory_attention, self.memory_norm = MultiHeadAttention(config), LayerNorm(config)
        self.feed_forward, self.feed_forward_norm = FeedForward(config), LayerNorm(config)

    def __call__(
        self, x_BUD: Array, pattern: Pattern, memory_BSD: Array, reading: Pattern, key: Array | None = None
    ) -> Array:
        """[B, U, D]; ``pattern``: of the target's words, ``reading``: which of the memory they read."""
        keys = (None,) * 5 if key is None else jax.random.split(key, 5)
        x_BUD = self._added(x_BUD, self.attention_norm, lambda x: self.attention(x, x, pattern, keys[0]), keys[1])
        read = lambda x: self.memory_attention(x, memory_BSD, reading, keys[2])  # noqa: E731
        x_BUD = self._added(x_BUD, self.memory_norm, read, keys[3])
        return self._added(x_BUD, self.feed_forward_norm, self.feed_forward, keys[4])

    def memory_weights(self, x_BUD: Array, pattern: Pattern, memory_BSD: Array, reading: Pattern) -> Array:
        """float32 [B, N, U, S]: the weights with which `__call__` reads the memory; those of padding are 0."""
        x_BUD = self._added(x_BUD, self.attention_norm, lambda x: self.attention(x, x, pattern), None)
        read_BUD = self._read(x_BUD, self.memory_norm)
        _, weights_BNUS = self.memory_attention.scores_and_weights(read_BUD, memory_BSD, reading)
        return jnp.where((reading.query_ids > 0)[:, None, :, None], weights_BNUS, 0.0)

    def memory_keys(self, memory_BSD: Array) -> Cache:
        """Keys and values of the memory, [B, S, N, H] each, which do not change from word to word."""
        return self.memory_attention.keys_and_values(memory_BSD)

    def extend(
        self, x_R1D: Array, cache: Cache, pattern: Pattern, memory_keys: Cache, reading: Pattern
    ) -> tuple[Array, Cache]:
        """`__call__` of one new word of each hypothesis, which reads those in the cache, and the cache with it."""
        mixed_R1D, cache = self.attention.extend(self._read(x_R1D, self.attention_norm), cache, pattern)
        x_R1D = self._added(x_R1D, self.attention_norm, lambda _: mixed_R1D, None)

        def read(x_R1D: Array) -> Array:
            # The hypotheses of a row are queries of the same keys.
            x_BKD = x_R1D.reshape(len(reading.key_ids), -1, x_R1D.shape[-1])
            return self.memory_attention.of_keys(x_BKD, memory_keys, reading).reshape(x_R1D.shape)

        x_R1D = self._added(x_R1D, self.memory_norm, read, None)
        return self._added(x_R1D, self.feed_forward_norm, self.feed_forward, None), cache

    def _read(self, x: Array, norm: LayerNorm) -> Array:
        """What a sublayer reads."""
        return norm(x).astype(self.config.dtype) if self.pre_norm else x

    def _added(self, x: Array, norm: LayerNorm, sublayer: Callable[[Array], Array], key: Array | None) -> Array:
        """The input with a sublayer's output; ``key``: of its dropout."""
        total = x + dropout(sublayer(self._read(x, norm)), self.config.hidden_dropout, key)
        return total if self.pre_norm else norm(total).astype(self.config.dtype)


class DecoderStack(nn.Module):
    """Equal decoder blocks, and a norm behind them where they are ``pre_norm``."""

    config: BlockConfig
    pre_norm: bool = False

    def setup(self) -> None:
        if self.pre_norm:
            self.output_norm = LayerNorm(self.config)
        present = self.has_variable("params", "blocks")
        self.blocks = self.get_variable("params", "blocks") if present else self.param("blocks", self._init_blocks)

    def _init_blocks(self, key: Array) -> Params:
        x_BUD, ids_BU = jnp.zeros((1, 1, self.config.hidden_size), self.config.dtype), jnp.ones((1, 1), jnp.int32)
        pattern = Pattern(ids_BU, ids_BU)
        init = jax.vmap(lambda key: self._block().init(key, x_BUD, pattern, x_BUD, pattern)["params"])
        params: Params = init(jax.random.split(key, self.config.num_layers))
        return params

    def _stacked(self) -> Any:
        """The parameters of all blocks, stacked or a tuple of layers (see `stack.by_layer`)."""
        return self.blocks

    def _block(self) -> DecoderBlock:
        return DecoderBlock(self.config, self.pre_norm, parent=None)

    def __call__(self, x_BUD: Array, memory: Memory, batch: Batch, root: Array | None) -> Array:
        """[B, U, D] of the embedded words before each of the target's; ``root``: key of dropout, None for none."""
        return self._normed(self._run(x_BUD, memory, batch, root)[0])

    def attention(self, x_BUD: Array, memory: Memory, batch: Batch) -> Array:
        """As `decoders.Decoder.attention`, A = L N, of the words embedded as ``x_BUD``."""
        _, weights_LBNUS = self._run(x_BUD, memory, batch, None, look_inside=True)
        return jnp.concatenate(weights_LBNUS, axis=1)

    def _run(
        self, x_BUD: Array, memory: Memory, batch: Batch, root: Array | None, look_inside: bool = False
    ) -> tuple[Array, Any]:
        """What the last block gives, and (``look_inside``) the weights of all, [L, B, N, U, S]."""
        ids_BU, positions_BU = batch["target_example_ids"], batch["target_position_ids"]
        pattern = Pattern(ids_BU, ids_BU, positions_BU, positions_BU, causal=True)
        reading, block = Pattern(ids_BU, memory.example_ids_BS), self._block()

        def step(x_BUD: Array, layer: tuple[Params, Any], positions_BP: Array | None = None) -> tuple[Array, Any]:
            params, depth = layer
            key = None if root is None else jax.random.fold_in(root, depth)
            inputs = (x_BUD, pattern, memory.hidden_BSD, reading)
            y_BUD: Any = block.apply({"params": params}, *inputs, key)
            weights_BNUS = block.apply({"params": params}, *inputs, method="memory_weights") if look_inside else None
            return stack.rows_over_data(y_BUD), weights_BNUS

        return stack.run_blocks(step, x_BUD, self._stacked(), self.config)

    def _normed(self, x: Array) -> Array:
        return self.output_norm(x).astype(self.config.dtype) if self.pre_norm else x

    def begin(self, memory: Memory, rows: int, places: int) -> DecoderState:
        """As `decoders.Decoder.begin`: the memory's keys and values, and room for those of the words, of each layer."""
        config, block = self.config, self._block()
        shape = (rows, places, config.num_heads, config.hidden_size // config.num_heads)
        empty = jnp.zeros(shape, config.dtype)
        of_memory = tuple(
            block.apply({"params": params}, memory.hidden_BSD, method="memory_keys")
            for params in stack.layers_of(self._stacked(), config.num_layers)
        )
        return DecoderState((of_memory, memory.example_ids_BS), ((empty, empty),) * config.num_layers)

    def step(self, x_RD: Array, state: DecoderState, position: Array) -> tuple[Array, DecoderState]:
        """[R, D] of the words embedded as ``x_RD``, and the state with them."""
        (of_memory, example_ids_BS), caches = state
        R, B, places = len(x_RD), len(example_ids_BS), caches[0][0].shape[1]
        ones_R1, place_RS = jnp.ones((R, 1), jnp.int32), jnp.tile(jnp.arange(places), (R, 1))
        pattern = Pattern(ones_R1, jnp.ones_like(place_RS), ones_R1 * position, place_RS, causal=True)
        reading = Pattern(jnp.ones((B, R // B), jnp.int32), example_ids_BS)
        x_R1D, block, extended = x_RD[:, None], self._block(), list[Cache]()
        for params, cache, keys in zip(
            stack.layers_of(self._stacked(), self.config.num_layers), caches, of_memory, strict=True
        ):
            outputs: Any = block.apply({"params": params}, x_R1D, cache, pattern, keys, reading, method="extend")
            x_R1D, cache = outputs
            extended.append(cache)
        return self._normed(x_R1D)[:, 0], DecoderState(state.fixed, tuple(extended))
