"""The encoder: embeddings and a stack of blocks.

Parameters of the blocks are one tree whose arrays have a leading layer axis L, so that sharding, checkpoints and
import see one name a weight whatever the number of layers; the same tree runs as a scan or unrolled. Inference may cut
it into layers once (`by_layer`).
Axes: as in blocks.py; L layer, P picked position.
"""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from bert.architectures.bert import BertConfig
from bert.model import matmul
from bert.model.blocks import Block, LayerNorm
from bert.model.dropout import dropout
from bert.model.initializers import truncated_normal


class Table(nn.Module):
    """A float32 table of embeddings [rows, D]."""

    config: BertConfig
    rows: int

    def setup(self):
        init = truncated_normal(self.config.initializer_range)
        self.embedding = self.param("embedding", init, (self.rows, self.config.hidden_size))

    def __call__(self, ids: Array) -> Array:
        # Ids are checked where data is read. Out of range, `take` gives NaN: loud, where plain indexing would clamp. It
        # counts negative ids from the end, so they are moved out of range.
        ids = jnp.where(ids < 0, self.rows, ids)
        return jnp.take(self.embedding, ids, axis=0, mode="fill", fill_value=jnp.nan)


class Embeddings(nn.Module):
    """Sum of token, position and type embeddings, normalised; [B, T] ids -> [B, T, D]."""

    config: BertConfig

    def setup(self):
        self.token = Table(self.config, self.config.vocab_size)
        self.position = Table(self.config, self.config.max_position_embeddings)
        self.type = Table(self.config, self.config.type_vocab_size)
        self.norm = LayerNorm(self.config)

    def __call__(self, batch: dict[str, Array], key: Array | None) -> Array:
        x_BTD = self.token(batch["token_ids"]) + self.position(batch["position_ids"]) + self.type(batch["type_ids"])
        x_BTD = rows_over_data(x_BTD)
        return dropout(self.norm(x_BTD), self.config.hidden_dropout, key).astype(self.config.dtype)


class Encoder(nn.Module):
    """BERT's encoder: a batch (see bert/data/batches.py) -> hidden states [B, T, D] in ``config.dtype``.

    Reads ``token_ids``, ``type_ids``, ``position_ids`` and ``example_ids``, each int32 [B, T].
    """

    config: BertConfig

    def setup(self):
        self.embeddings = Embeddings(self.config)
        # Where there are parameters they are taken as they are: a stack, or a tuple of layers (see `by_layer`).
        given = self.has_variable("params", "blocks")
        self.blocks = self.get_variable("params", "blocks") if given else self.param("blocks", self._init_blocks)

    def _init_blocks(self, key: Array) -> dict:
        """Parameters of all blocks, stacked on a leading axis L."""
        x_BTD = jnp.zeros((1, 1, self.config.hidden_size), self.config.dtype)
        example_ids_BT = jnp.ones((1, 1), jnp.int32)

        def init_one(key: Array) -> dict:
            return Block(self.config, parent=None).init(key, x_BTD, example_ids_BT, None)["params"]

        return jax.vmap(init_one)(jax.random.split(key, self.config.num_layers))

    def __call__(self, batch: dict[str, Array], *, train: bool = False, positions_BP: Array | None = None) -> Array:
        """Hidden states [B, P, D] at the positions ``positions_BP`` of each row, int32; None for all positions.

        Where only some are read, the last block makes queries, output and feed-forward of these alone.
        """
        return self._run(batch, train, positions_BP=positions_BP)[0]

    def states(self, batch: dict[str, Array]) -> tuple[Array, Array]:
        """What is inside, without dropout.

        Returns:
          hidden states [L + 1, B, T, D] (the embeddings' output, then each block's) and attention weights
          float32 [L, B, N, T, S].
        """
        last_BTD, (inputs_LBTD, weights_LBNTS) = self._run(batch, train=False, look_inside=True)
        return jnp.concatenate([inputs_LBTD, last_BTD[None]]), weights_LBNTS

    def _run(self, batch: dict[str, Array], train: bool, look_inside: bool = False, positions_BP: Array | None = None):
        config = self.config
        root = self.make_rng("dropout") if train else None
        example_ids_BT = batch["example_ids"]

        def key_at(depth) -> Array | None:
            """Dropout key: depth 0 for the embeddings, i + 1 for block i."""
            return None if root is None else jax.random.fold_in(root, depth)

        def step(x_BTD, layer, positions_BP=None):
            params, depth = layer
            block = Block(config, parent=None)
            y_BTD: Any = block.apply({"params": params}, x_BTD, example_ids_BT, key_at(depth), positions_BP)
            y_BTD = rows_over_data(y_BTD)
            if not look_inside:
                return y_BTD, None
            weights = block.apply({"params": params}, x_BTD, example_ids_BT, method="attention_weights")
            return y_BTD, (x_BTD, weights)

        if config.remat:
            step = jax.checkpoint(step, prevent_cse=not _scanned(config))
        x_BTD, depths_L = self.embeddings(batch, key_at(0)), jnp.arange(1, config.num_layers + 1)
        if not _scanned(config):
            return _one_after_the_other(step, x_BTD, _layers(self.blocks, config.num_layers), positions_BP)
        if positions_BP is None:
            return jax.lax.scan(step, x_BTD, (self.blocks, depths_L))
        first, last = _cut(self.blocks, (config.num_layers - 1, 1))
        x_BTD, _ = jax.lax.scan(step, x_BTD, (first, depths_L[:-1]))
        return step(x_BTD, (jax.tree.map(lambda one: one[0], last), depths_L[-1]), positions_BP)


def _scanned(config: BertConfig) -> bool:
    return config.layer_loop == "scan" or (config.layer_loop == "auto" and not matmul.on_cpu())


def _one_after_the_other(step: Callable, x_BTD: Array, layers: tuple[dict, ...], positions_BP: Array | None):
    """As `jax.lax.scan` over the stacked layers, the last of them at some positions only."""
    step = jax.jit(step)  # traced once
    outputs = []
    for depth, params in enumerate(layers, 1):
        x_BTD, output = step(x_BTD, (params, depth), positions_BP if depth == len(layers) else None)
        outputs.append(output)
    return x_BTD, jax.tree.map(lambda *of_layers: jnp.stack(of_layers), *outputs)


def _layers(blocks: dict | tuple[dict, ...], count: int) -> tuple[dict, ...]:
    if isinstance(blocks, tuple):
        return blocks
    return tuple(jax.tree.map(lambda one: one[0], piece) for piece in _cut(blocks, (1,) * count))


def _cut(stacked: dict, sizes: tuple[int, ...]) -> list[dict]:
    """Pieces of so many layers. `jax.lax.split`, for its gradient is one concatenation; slices would be added up."""
    leaves, structure = jax.tree.flatten(stacked)
    pieces = [jax.lax.split(leaf, sizes) for leaf in leaves]
    return [jax.tree.unflatten(structure, piece) for piece in zip(*pieces, strict=True)]


def by_layer(params: dict, config: BertConfig) -> dict:
    """The encoder's parameters with a tuple of layers for the stack, where the encoder runs them one by one.

    For many forward passes with the same parameters: each would copy every layer out of the stack, which takes longer
    than the layer itself where a batch is small. Training keeps the stack (see the module's docstring).
    """
    blocks = params["blocks"]
    if isinstance(blocks, tuple) or _scanned(config):
        return params
    layers = (jax.tree.map(lambda stacked, i=i: stacked[i], blocks) for i in range(config.num_layers))
    return {**params, "blocks": tuple(layers)}


def rows_over_data(x_BTD: Array) -> Array:
    """The same array, its rows kept on the mesh's ``data`` axis; unchanged without such a mesh.

    Without this the partitioner splits activations by features when parameters are split, and pays in collectives.
    """
    if "data" not in jax.sharding.get_abstract_mesh().axis_names:
        return x_BTD
    return jax.lax.with_sharding_constraint(x_BTD, jax.P("data"))
