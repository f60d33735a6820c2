"""The contract of decoders: what one reads (`Memory`), what it keeps between two words (`DecoderState`), its methods.

Axes: B row, S key position, U target position, R hypothesis (the same number for each row), D hidden width, A map of
attention.
"""

from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
from jax import Array

from bert.types import Batch


class Memory(NamedTuple):
    """What a decoder reads: states of the source."""

    hidden_BSD: Array
    example_ids_BS: Array  # int32, as in a batch: 0 is padding; a target reads the source of its own number


class DecoderState(NamedTuple):
    """What a decoder keeps from word to word; trees of arrays."""

    fixed: Any  # made of the memory, [B, ...]: all hypotheses of a row read the same
    moving: Any  # [R, ...], R a multiple of B: of each hypothesis; a search takes that of the one it extends


class Decoder(Protocol):
    """A module that is an `architectures.Encoder` of the source, too.

    The hidden states of `step`, word after word, are those of `teacher_forced`.
    """

    def memory(self, batch: Batch, *, train: bool = False) -> Memory:
        """The states of the batch's source."""
        ...

    def teacher_forced(self, memory: Memory, batch: Batch, *, train: bool = False) -> Array:
        """[B, U, D]: the states that score the words ``target_ids``; none has read its word or a later one."""
        ...

    def attention(self, memory: Memory, batch: Batch) -> Array:
        """float32 [B, A, U, S]: the weights with which the states of `teacher_forced` read the memory, without dropout.

        Of each layer, from the first, a map for each head. A word's weights sum to 1 over the source of its own number;
        the others, and those of padding, are 0. InputError for a decoder without attention.
        """
        ...

    def begin(self, memory: Memory, rows: int, places: int) -> DecoderState:
        """The state before the first word, for R hypotheses of at most so many words; one example a row."""
        ...

    def step(self, state: DecoderState, ids_R: Array, position: Array) -> tuple[Array, DecoderState]:
        """[R, D], the states that score the next words, and the state with the words ``ids_R`` read.

        ``position``: int32 scalar, how many words were read before; of the start token 0.
        """
        ...

    def output_projection(self) -> tuple[Array, Array]:
        """Table float32 [V, D] and bias float32 [V]: scores of words are ``states @ table^T + bias``."""
        ...


def without_bias(table_VD: Array) -> tuple[Array, Array]:
    """As of `Decoder.output_projection`, with a bias of 0."""
    return table_VD, jnp.zeros(len(table_VD), jnp.float32)


def words_before(batch: Batch, start_id: int) -> Array:
    """int32 [B, U]: the word before each of ``target_ids``, the start token before the first of an example."""
    before_BU = jnp.pad(batch["target_ids"][:, :-1], ((0, 0), (1, 0)))
    return jnp.where(batch["target_position_ids"] == 0, start_id, before_BU)
