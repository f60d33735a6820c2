"""What heads read of an encoder: a dict of names to positions, and a dict of the hidden states there.

``tokens``: the states of tokens. ``words``: those that a word is predicted from; an encoder for the objective "blank"
has others for these, which have not read the word itself. ``examples``: one state for each example in a row.
Positions are int32 [B, P]; None: all of them. Of examples, the encoder knows where they are read.
Axes: B row, T position, P of these, E example in a row, D hidden width.
"""

from collections.abc import Mapping

import jax.numpy as jnp
from jax import Array

from bert.model.blocks import pick
from bert.model.pattern import first_and_last
from bert.types import Batch

Reads = Mapping[str, Array | None]  # "tokens", "words", "examples" -> positions
States = dict[str, Array]  # the same names -> hidden states [B, P, D] in ``config.dtype``; of examples [B, E, D]
TOKENS: Reads = {"tokens": None}


def at(hidden_BTD: Array, positions_BP: Array | None) -> Array:
    """The states at these positions; None: at all."""
    return hidden_BTD if positions_BP is None else pick(hidden_BTD, positions_BP)


def places(batch: Batch, reads: Reads, read_at: str) -> dict[str, Array | None]:
    """The same with the positions of examples, by `architectures.Encoder.read_at`, their first or their last tokens."""
    return {name: _of_examples(batch, read_at) if name == "examples" else reads[name] for name in reads}


def _of_examples(batch: Batch, read_at: str) -> Array:
    """int32 [B, E]; one example a row where the batch has no ``cls_positions``."""
    if read_at == "last":
        return first_and_last(batch)[1]
    return batch["cls_positions"] if "cls_positions" in batch else jnp.zeros_like(batch["example_ids"][:, :1])


def of_tokens(hidden_BTD: Array, batch: Batch, reads: Reads, read_at: str = "first") -> States:
    """What is read of an encoder that has one state for each token."""
    return {name: at(hidden_BTD, positions) for name, positions in places(batch, reads, read_at).items()}
