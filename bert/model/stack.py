"""A stack of identical blocks, and the encoder: embeddings and a stack.

Parameters of the blocks are one tree whose arrays have a leading layer axis L, so sharding, checkpoints and files have
one name per weight for any number of layers. The same tree runs as a scan or unrolled. Inference may split it into
layers once (`by_layer`).
Axes: as in blocks.py; L layer, P picked position.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bert.model import matmul
from bert.model.blocks import BlockConfig, Cache, LayerNorm
from bert.model.pattern import Pattern, within_examples
from bert.model.reading import TOKENS, Reads, States, of_tokens, places
from bert.types import Batch, Params


class StackedEncoder(nn.Module):
    """An encoder of embeddings and equal blocks; an architecture names their classes."""

    config: BlockConfig
    packing: ClassVar[str] = "exact"
    final_norm: ClassVar[bool] = False  # a norm after the last block
    embeddings_class: ClassVar[type[nn.Module]]  # (batch, dropout key) -> [B, T, D]; has the token table as ``token``
    block_class: ClassVar[type[nn.Module]]  # such as `blocks.Block`

    def setup(self) -> None:
        self.embeddings = self.embeddings_class(self.config)
        if self.final_norm:
            self.output_norm = LayerNorm(self.config)
        # Where there are parameters they are taken as they are: a stack, or a tuple of layers (see `by_layer`).
        present = self.has_variable("params", "blocks")
        self.blocks = self.get_variable("params", "blocks") if present else self.param("blocks", self._init_blocks)

    def _init_blocks(self, key: Array) -> Params:
        """Parameters of all blocks, stacked on a leading axis L."""
        x_BTD = jnp.zeros((1, 1, self.config.hidden_size), self.config.dtype)
        ids_BT = jnp.ones((1, 1), jnp.int32)
        pattern = self.pattern({"example_ids": ids_BT, "position_ids": ids_BT})

        init = jax.vmap(lambda key: self._block().init(key, x_BTD, pattern)["params"])
        params: Params = init(jax.random.split(key, self.config.num_layers))
        return params

    def _block(self) -> nn.Module:
        return self.block_class(self.config, parent=None)

    def pattern(self, batch: Batch) -> Pattern:
        """Who may attend to whom."""
        return within_examples(batch, causal=self.config.causal)

    @property
    def objectives(self) -> tuple[str, ...]:
        return ("causal",) if self.config.causal else ("mlm",)

    @property
    def read_at(self) -> str:
        return "last" if self.config.causal else "first"

    def __call__(self, batch: Batch, *, train: bool = False, reads: Reads = TOKENS) -> States:
        """What is read (bert/model/reading.py).

        Where only some positions are, the last block makes queries, output and feed-forward of these alone.
        """
        positions = [x for x in places(batch, reads, self.read_at).values() if x is not None]
        if len(positions) < len(reads):
            return of_tokens(self._normed(self._run(batch, train)[0]), batch, reads, self.read_at)
        hidden_BPD = self._normed(self._run(batch, train, positions_BP=jnp.concatenate(positions, axis=1))[0])
        ends = np.cumsum([x.shape[1] for x in positions])[:-1].tolist()
        return dict(zip(reads, jnp.split(hidden_BPD, ends, axis=1), strict=True))

    def _normed(self, x_BTD: Array) -> Array:
        """The last block's output, normalised where the model does so."""
        return self.output_norm(x_BTD).astype(self.config.dtype) if self.final_norm else x_BTD

    def empty_cache(self, rows: int, places: int) -> tuple[Cache, ...]:
        """For `extend`: room for the keys and values of so many positions, of each layer."""
        heads = self.config.num_heads
        zeros = jnp.zeros((rows, places, heads, self.config.hidden_size // heads), self.config.dtype)
        return ((zeros, zeros),) * self.config.num_layers

    def extend(self, batch: Batch, caches: tuple[Cache, ...]) -> tuple[Array, tuple[Cache, ...]]:
        """Hidden states [B, T, D] of more tokens of each row, and the cache with them, for causal encoders.

        ``position_ids`` say where they stand, and so which places of the cache they take; one example a row.
        """
        positions_BT = batch["position_ids"]
        places_BS = jnp.tile(jnp.arange(caches[0][0].shape[1]), (len(positions_BT), 1))
        pattern = Pattern(
            jnp.ones_like(positions_BT), jnp.ones_like(places_BS), positions_BT, places_BS, causal=self.config.causal
        )
        block, extended = self._block(), list[Cache]()
        x_BTD = self.embeddings(batch, None)
        step = jax.jit(lambda x, params, cache: block.apply({"params": params}, x, cache, pattern, method="extend"))
        for params, cache in zip(layers_of(self.blocks, self.config.num_layers), caches, strict=True):
            x_BTD, cache = step(x_BTD, params, cache)
            extended.append(cache)
        return self._normed(x_BTD), tuple(extended)

    def token_table(self) -> Any:
        """Token embeddings float32 [V, D]."""
        return self.embeddings.token.embedding

    def depth_of(self, path: Sequence[str]) -> int | Sequence[int]:
        """Depth of a parameter: 0 for the embeddings; 1 to L, one each, for the stacked parameters of the blocks."""
        if path[0] == "output_norm":
            return self.config.num_layers
        return range(1, self.config.num_layers + 1) if path[0] == "blocks" else 0

    def states(self, batch: Batch) -> tuple[Array, Array]:
        """Hidden states [L + 1, B, T, D] (the embeddings' output, then each block's) and attention weights, float32
        [L, B, N, T, S], without dropout."""
        last_BTD, (inputs_LBTD, weights_LBNTS) = self._run(batch, train=False, look_inside=True)
        return jnp.concatenate([inputs_LBTD, self._normed(last_BTD)[None]]), weights_LBNTS

    def attention(self, batch: Batch, layer: Array) -> tuple[Array, Array]:
        """Scores before the softmax and weights after it, float32 [B, N, T, S], of one layer."""
        inputs_LBTD, _ = self.states(batch)
        inputs = (inputs_LBTD[layer], self.pattern(batch))
        outputs: Any = self._block().apply({"params": self._at(layer)}, *inputs, method="scores_and_weights")
        return outputs[0], outputs[1]

    def steps(self, batch: Batch, layers_K: Array) -> dict[str, Array]:
        """The steps of some layers' blocks (see `blocks.Block.steps`), with these layers as leading axis."""
        inputs_LBTD, _ = self.states(batch)
        pattern, block = self.pattern(batch), self._block()

        def steps(params: Params, x_BTD: Array) -> Any:
            return block.apply({"params": params}, x_BTD, pattern, method="steps")

        of_layers: dict[str, Array] = jax.vmap(steps)(self._at(layers_K), inputs_LBTD[layers_K])
        return of_layers

    def _at(self, layers: Array) -> Params:
        """Parameters of a layer, or of several, stacked."""
        blocks = self.blocks
        if isinstance(blocks, tuple):
            blocks = jax.tree.map(lambda *of_layers: jnp.stack(of_layers), *blocks)
        return jax.tree.map(lambda stacked: stacked[layers], blocks)

    def _run(
        self, batch: Batch, train: bool, look_inside: bool = False, positions_BP: Array | None = None
    ) -> tuple[Array, Any]:
        config = self.config
        root = self.make_rng("dropout") if train else None
        pattern, block = self.pattern(batch), self._block()

        def key_at(depth: Any) -> Array | None:
            """Dropout key: depth 0 for the embeddings, i + 1 for block i."""
            return None if root is None else jax.random.fold_in(root, depth)

        def step(x_BTD: Array, layer: tuple[Params, Any], positions_BP: Array | None = None) -> tuple[Array, Any]:
            params, depth = layer
            y_BTD: Any = block.apply({"params": params}, x_BTD, pattern, key_at(depth), positions_BP)
            y_BTD = rows_over_data(y_BTD)
            if not look_inside:
                return y_BTD, None
            _, weights_BNTS = block.apply({"params": params}, x_BTD, pattern, method="scores_and_weights")
            return y_BTD, (x_BTD, weights_BNTS)

        return run_blocks(step, self.embeddings(batch, key_at(0)), self.blocks, config, positions_BP)


def run_blocks(
    step: Callable[..., tuple[Array, Any]],
    x_BTD: Array,
    blocks: Any,
    config: BlockConfig,
    positions_BP: Array | None = None,
) -> tuple[Array, Any]:
    """What the blocks make of ``x_BTD``, one after another, and the outputs of all, stacked.

    ``step``: (x, (parameters, depth from 1), positions) -> (x, output); only the last block is given positions.
    ``blocks``: their parameters, stacked or a tuple of layers (see `by_layer`).
    """
    if config.remat:
        step = jax.checkpoint(step, prevent_cse=not _scanned(config))
    depths_L = jnp.arange(1, config.num_layers + 1)
    if isinstance(blocks, tuple) or not _scanned(config):
        return _one_after_the_other(step, x_BTD, layers_of(blocks, config.num_layers), positions_BP)
    if positions_BP is None:
        return jax.lax.scan(step, x_BTD, (blocks, depths_L))
    first, last = _cut(blocks, (config.num_layers - 1, 1))
    x_BTD, _ = jax.lax.scan(step, x_BTD, (first, depths_L[:-1]))
    return step(x_BTD, (jax.tree.map(lambda stacked: stacked[0], last), depths_L[-1]), positions_BP)


def _scanned(config: BlockConfig) -> bool:
    if config.layer_loop != "auto":
        return config.layer_loop == "scan"
    # Where devices share parameters (fsdp), an unrolled program gathers those of all layers before it needs them, and
    # keeps them for the backward pass; a loop has one at a time. Several devices of a CPU are for tests, so all modes
    # have the loop.
    return not matmul.on_cpu() or jax.sharding.get_abstract_mesh().size > 1


def _one_after_the_other(
    step: Callable[..., tuple[Array, Any]], x_BTD: Array, layers: tuple[Params, ...], positions_BP: Array | None
) -> tuple[Array, Any]:
    """As `jax.lax.scan` over the stacked layers, the last of them at some positions only."""
    step = jax.jit(step)  # traced once
    outputs = []
    for depth, params in enumerate(layers, 1):
        x_BTD, output = step(x_BTD, (params, depth), positions_BP if depth == len(layers) else None)
        outputs.append(output)
    return x_BTD, jax.tree.map(lambda *of_layers: jnp.stack(of_layers), *outputs)


def layers_of(blocks: Params | tuple[Params, ...], count: int) -> tuple[Params, ...]:
    """The parameters of each block."""
    if isinstance(blocks, tuple):
        return blocks
    return tuple(jax.tree.map(lambda stacked: stacked[0], piece) for piece in _cut(blocks, (1,) * count))


def _cut(stacked: Params, sizes: tuple[int, ...]) -> list[Params]:
    """Pieces of so many layers. `jax.lax.split`, for its gradient is one concatenation; slices would be added up."""
    leaves, structure = jax.tree.flatten(stacked)
    pieces = [jax.lax.split(leaf, sizes) for leaf in leaves]
    return [jax.tree.unflatten(structure, piece) for piece in zip(*pieces, strict=True)]


def by_layer(params: Params, config: Any) -> Params:
    """A model's parameters with a tuple of layers for the stack of blocks, where they run one by one.

    For many forward passes with the same parameters: each would copy every layer out of the stack, which takes longer
    than the layer itself where a batch is small. Training keeps the stack. Other encoders stay as they are.
    """
    if not hasattr(config, "layer_loop") or _scanned(config):
        return params
    return {**params, "encoder": _with_layers(params["encoder"], config.num_layers)}


def _with_layers(params: Params, count: int) -> Params:
    """The same with every stack of blocks, an encoder's or a decoder's, as a tuple."""

    def split(name: str, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if name != "blocks":
            return _with_layers(value, count)
        return tuple(jax.tree.map(lambda stacked, i=i: stacked[i], value) for i in range(count))

    return {name: split(name, value) for name, value in params.items()}


def rows_over_data(x_BTD: Array) -> Array:
    """The same array, its rows kept on the mesh's ``data`` axis; unchanged without such a mesh.

    Without this the partitioner splits activations by features when parameters are split, and pays in collectives.
    """
    if "data" not in jax.sharding.get_abstract_mesh().axis_names:
        return x_BTD
    return jax.lax.with_sharding_constraint(x_BTD, jax.P("data"))
