"""Cells of a grid as positions of a row: patches of pictures, or the features of a grid, with places in two directions.

Attention over such positions is two-dimensional: each cell attends to all others. Cell (x, y) is number ``x Y + y``.
Axes: B picture, X row of the grid, Y column, T position, K numbers of a cell, D hidden width.

Source: Dosovitskiy et al. 2021 (patches).
"""

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from bert.architectures import ModelConfig
from bert.model.blocks import Dense
from bert.model.embeddings import Embedding
from bert.model.positions import sinusoidal


class GridPositions(nn.Module):
    """Numbers of cells, int [B, T], -> what is added to their vectors, [B, T, D], or a zero.

    ``kind``: of `architectures.patches.GRID_POSITIONS`.
    """

    config: ModelConfig
    grid: tuple[int, int]  # rows, columns
    kind: str = "learned"

    def setup(self) -> None:
        if self.kind == "learned":
            self.row, self.column = (Embedding(self.config, size) for size in self.grid)

    def __call__(self, cells_BT: Array) -> Array:
        row_BT, column_BT = jnp.divmod(cells_BT, self.grid[1])
        if self.kind == "learned":
            return self.row(row_BT) + self.column(column_BT)
        if self.kind == "sinusoidal":
            halves = [sinusoidal(place_BT, self.config.hidden_size // 2) for place_BT in (row_BT, column_BT)]
            return jnp.concatenate(halves, axis=-1)
        return jnp.zeros(())


class PatchEmbedding(nn.Module):
    """Cells [B, T, K] and their numbers, int [B, T], -> vectors [B, T, D], their places among them.

    ``grid``, ``kind``: as of `GridPositions`.
    """

    config: ModelConfig
    grid: tuple[int, int]
    kind: str = "learned"

    def setup(self) -> None:
        self.projection = Dense(self.config, self.config.hidden_size)
        self.position = GridPositions(self.config, self.grid, self.kind)

    def __call__(self, values_BTK: Array, cells_BT: Array) -> Array:
        return self.projection(values_BTK) + self.position(cells_BT)


def flattened(features_BXYK: Array) -> tuple[Array, Array]:
    """The cells of a grid as positions, [B, X Y, K], and their numbers, int32 [B, X Y]."""
    B, X, Y, K = features_BXYK.shape
    return features_BXYK.reshape(B, X * Y, K), jnp.tile(jnp.arange(X * Y, dtype=jnp.int32), (B, 1))
