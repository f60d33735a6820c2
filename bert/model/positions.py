"""Positions of tokens: learned or sinusoidal embeddings, rotary positions, or none.

Position ids restart at each example of a row (bert/data/batches.py).
Axes: B row, T position, D hidden width, N head, H head width.

Source: Devlin et al. 2018 (learned); Vaswani et al. 2017, section 3.5 (sinusoidal); Su et al. 2021, "RoFormer", in the
order of GPT-NeoX and Llama, which pair the two halves of a head (rotary).
"""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from bert.architectures import ModelConfig
from bert.errors import check_choice
from bert.model.embeddings import Embedding

KINDS = ("learned", "sinusoidal", "rotary", "none")


def embedding(config: ModelConfig, kind: str = "learned", offset: int = 0) -> Callable[[Array], Array]:
    """Position ids [B, T] -> what is added to the token embeddings [B, T, D]; a Linen module where it has parameters.

    Nothing is added for "rotary" (attention calls `rotate`) and for "none". ``offset``: position of the first token,
    such as 2 in RoBERTa.
    """
    check_choice("positions", kind, KINDS)
    if kind == "learned":
        return Embedding(config, config.max_length + offset, offset=offset)
    if kind == "sinusoidal":
        return lambda position_ids: sinusoidal(position_ids + offset, config.hidden_size)
    return lambda position_ids: jnp.zeros(())


def sinusoidal(positions_BT: Array, width: int) -> Array:
    """float32 [B, T, width]: sine and cosine, in turn, of the position times frequencies from 1 to 1/10,000."""
    angles = positions_BT[..., None] * _frequencies(width, 10_000.0)
    return jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1).reshape(*positions_BT.shape, width)


def rotate(x_BTNH: Array, positions_BT: Array, base: float = 10_000.0) -> Array:
    """The queries or keys, each pair (h, h + H/2) turned by the position times a frequency; scores then depend on
    distances alone. Computed in float32."""
    H = x_BTNH.shape[-1]
    angles_BT1H = (positions_BT[..., None] * _frequencies(H, base))[:, :, None]
    first, second = jnp.split(x_BTNH.astype(jnp.float32), 2, axis=-1)
    sine, cosine = jnp.sin(angles_BT1H), jnp.cos(angles_BT1H)
    turned = jnp.concatenate([first * cosine - second * sine, second * cosine + first * sine], axis=-1)
    return turned.astype(x_BTNH.dtype)


def _frequencies(width: int, base: float) -> Array:
    """float32 [width / 2]: from 1 down to nearly 1 / base."""
    return base ** (-jnp.arange(0, width, 2, dtype=jnp.float32) / width)
