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
from bert.model.reading import TOKENS, Reads, States, at
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
    objectives: ClassVar[tuple[str, ...]] = ("blank",)
    read_at: ClassVar[str] = "ends"

    @abc.abstractmethod
    def sides(self, batch: Batch, train: bool) -> tuple[Array, Array]:
        """Outputs of the last layer [B, T, J], from the left and from the right."""

    def __call__(self, batch: Batch, *, train: bool = False, reads: Reads = TOKENS) -> States:
        """What is read (bert/model/reading.py); for the objective "blank", words are read of their neighbours."""
        left_BTJ, right_BTJ = self.sides(batch, train)

        def states(name: str) -> Array:
            if name == "examples":
                return outer(left_BTJ, right_BTJ, batch)
            if name == "words" and "blank" in self.objectives:
                return at(neighbours(left_BTJ, right_BTJ, batch), reads[name])
            return at(jnp.concatenate([left_BTJ, right_BTJ], axis=-1), reads[name])

        return {name: states(name) for name in reads}

    def token_table(self) -> Any:
        """Token embeddings float32 [V, I]."""
        return self.token.embedding
