"""Encoders of two stacks that read the text from the left and from the right: `TwoSidedEncoder`.

Axes: B row, T position, J width of one side, D of both, I width of embeddings, E example in a row, P position.
"""

import abc
from typing import Any, ClassVar

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from bert.model.blocks import pick
from bert.model.pattern import first_and_last
from bert.types import Batch


def ends(batch: Batch) -> tuple[Array, Array]:
    """bool [B, T] each: whether a position is the first, the last of its example; padding in its midst is of it."""
    first_BT = batch["position_ids"] == 0
    return first_BT, jnp.pad(first_BT[:, 1:], ((0, 0), (0, 1)), constant_values=True)


def neighbours(left_BTJ: Array, right_BTJ: Array, batch: Batch) -> Array:
    """[B, T, D]: the left state of the token before and the right state of the token after, 0 where the example has no
    such token. Neither has read the word between them."""
    first_BT, last_BT = ends(batch)
    before_BTJ = jnp.pad(left_BTJ[:, :-1], ((0, 0), (1, 0), (0, 0)))
    after_BTJ = jnp.pad(right_BTJ[:, 1:], ((0, 0), (0, 1), (0, 0)))
    sides = (jnp.where(first_BT[..., None], 0.0, before_BTJ), jnp.where(last_BT[..., None], 0.0, after_BTJ))
    return jnp.concatenate(sides, axis=-1)


def outer(left_BTJ: Array, right_BTJ: Array, batch: Batch) -> Array:
    """[B, E, D]: the left state of each example's last token and the right state of its first: both have read all."""
    first_BE, last_BE = first_and_last(batch)
    return jnp.concatenate([pick(left_BTJ, last_BE), pick(right_BTJ, first_BE)], axis=-1)


class TwoSidedEncoder(nn.Module):
    """A batch (bert/data/batches.py) -> hidden states [B, T, D]; the first half has read from the left.

    A subclass has ``sides``, and the table ``token`` (`embeddings.Embedding`).
    """

    packing: ClassVar[str] = "exact"

    @abc.abstractmethod
    def sides(self, batch: Batch, train: bool) -> tuple[Array, Array]:
        """Outputs of the last layer [B, T, J], from the left and from the right."""

    def __call__(self, batch: Batch, *, train: bool = False, positions_BP: Array | None = None) -> Array:
        """Hidden states [B, P, D] at ``positions_BP``, int32; None: at all positions."""
        return _at(jnp.concatenate(self.sides(batch, train), axis=-1), positions_BP)

    def blank(self, batch: Batch, *, train: bool = False, positions_BP: Array | None = None) -> Array:
        """As `__call__`, the states of the neighbours: what has read words of the example but not the one there."""
        return _at(neighbours(*self.sides(batch, train), batch), positions_BP)

    def summary(self, batch: Batch, *, train: bool = False) -> Array:
        """[B, E, D]: for each example, the left state of its last token and the right state of its first."""
        return outer(*self.sides(batch, train), batch)

    def token_table(self) -> Any:
        """Token embeddings float32 [V, I]."""
        return self.token.embedding


def _at(hidden_BTD: Array, positions_BP: Array | None) -> Array:
    """The states at these positions; None: at all."""
    return hidden_BTD if positions_BP is None else pick(hidden_BTD, positions_BP)
