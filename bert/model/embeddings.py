"""Embedding lookup: rows of a table by id."""

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from bert.architectures import ModelConfig
from bert.model.initializers import truncated_normal


class Embedding(nn.Module):
    """A float32 table of embeddings [rows, D]: ids, each raised by ``offset``, -> their rows [..., D].

    ``width``: D; None: that of the hidden states.
    """

    config: ModelConfig
    rows: int
    width: int | None = None
    offset: int = 0

    def setup(self) -> None:
        init = truncated_normal(self.config.initializer_range)
        self.embedding = self.param("embedding", init, (self.rows, self.width or self.config.hidden_size))

    def __call__(self, ids: Array) -> Array:
        # Ids are checked where data is read. Out of range, `take` gives NaN: loud, where plain indexing would clamp. It
        # counts negative ids from the end, so they are moved out of range.
        ids = jnp.where(ids < 0, self.rows, ids) + self.offset if self.offset else jnp.where(ids < 0, self.rows, ids)
        return jnp.take(self.embedding, ids, axis=0, mode="fill", fill_value=jnp.nan)
