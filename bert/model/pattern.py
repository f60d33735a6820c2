"""Who may attend to whom: `Pattern`, the attention mask in training, inference and export.

Axes: B row, T query position, S key position, E example in a row.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jax import Array

from bert.types import Batch


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Pattern:
    """Which keys each query may attend to. Self-attention has one stream of positions, cross-attention two.

    A query attends to its own example, never to padding. A padding query attends to all keys that are not padding, as
    in the reference implementations; no loss reads it.
    """

    query_ids: Array  # int32 [B, T], the number of the example (0: padding)
    key_ids: Array  # int32 [B, S]
    query_positions: Array | None = None  # int32 [B, T], inside an example; None if not needed
    key_positions: Array | None = None  # int32 [B, S]
    window: int | Array | None = None  # largest distance; an array may have one for each layer of a scan
    causal: bool = dataclasses.field(default=False, metadata={"static": True})  # keys after the query are hidden

    def at(self, positions_BP: Array) -> "Pattern":
        """The pattern of the queries at these positions of each row, int32 [B, P], with the same keys."""
        ids_BP = jnp.take_along_axis(self.query_ids, positions_BP, axis=1)
        query = self.query_positions
        query = None if query is None else jnp.take_along_axis(query, positions_BP, axis=1)
        return dataclasses.replace(self, query_ids=ids_BP, query_positions=query)

    def positions(self) -> tuple[Array, Array]:
        """Positions of queries and of keys; ValueError where the pattern was made without."""
        if self.query_positions is None or self.key_positions is None:
            raise ValueError("causal, windowed and rotary attention need query_positions and key_positions")
        return self.query_positions, self.key_positions

    def allowed(self) -> Array:
        """bool [B, 1, T, S]: may query T attend to key S?"""
        query_BT1, key_B1S = self.query_ids[:, :, None], self.key_ids[:, None, :]
        allowed_BTS = ((query_BT1 == key_B1S) | (query_BT1 == 0)) & (key_B1S != 0)
        if self.causal or self.window is not None:
            query_BT, key_BS = self.positions()
            distance_BTS = query_BT[:, :, None] - key_BS[:, None, :]
            if self.causal:
                allowed_BTS &= distance_BTS >= 0
            if self.window is not None:
                allowed_BTS &= jnp.abs(distance_BTS) <= self.window
        return allowed_BTS[:, None]


def within_examples(batch: Batch, positions: bool = False, window: int | None = None, causal: bool = False) -> Pattern:
    """Self-attention of a batch: inside each example, and as ``window`` and ``causal`` limit it.

    ``positions``: keep position ids, for rotary positions, where nothing else needs them.
    """
    ids_BT = batch["example_ids"]
    positions_BT = batch["position_ids"] if positions or causal or window is not None else None
    return Pattern(ids_BT, ids_BT, positions_BT, positions_BT, window, causal)


def members(batch: Batch) -> Array:
    """bool [B, E, T]: the positions of each example; one example a row where there are no ``cls_positions``."""
    slots = batch["cls_positions"].shape[1] if "cls_positions" in batch else 1
    return batch["example_ids"][:, None] == jnp.arange(1, slots + 1)[:, None]


def first_and_last(batch: Batch) -> tuple[Array, Array]:
    """int [B, E] each: the position of each example's first and last token."""
    member_BET = members(batch)
    return member_BET.argmax(-1), member_BET.shape[-1] - 1 - member_BET[..., ::-1].argmax(-1)
