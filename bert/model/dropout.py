"""Dropout with cheap random bits that are the same on any mesh (see initializers.py)."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from bert.model.initializers import entry_numbers, threefry


def dropout(x: Array, rate: float, key: Array | None) -> Array:
    """``x`` with a share ``rate`` of its entries set to 0 and the others divided by the share kept.

    Args:
      x: any shape; the result has its dtype.
      rate: static, 0 to 1.
      key: None switches dropout off.
    """
    if key is None or rate == 0.0:
        return x
    # Scaled in float32: rounded to bfloat16 first, 1/0.9 would make every sum 0.16 % too small.
    return jnp.where(kept(key, x.shape, rate), x.astype(jnp.float32) * (1 / (1 - rate)), 0.0).astype(x.dtype)


def by_number(rate: float, root: Array | None) -> Callable[[Array, int], Array]:
    """(x, number) -> ``x`` with dropout, each number with bits of its own; ``root``: as the key of `dropout`."""
    return lambda x, number: dropout(x, rate, None if root is None else jax.random.fold_in(root, number))


def kept(key: Array, shape: tuple[int, ...], rate: float) -> Array:
    """bool of that shape: which entries stay, each with probability ``1 - rate``; a function of the key alone."""
    key_words = jax.random.key_data(key).ravel()
    low, high = entry_numbers(shape)
    bits, _ = threefry(key_words[0], key_words[1], low, high)
    return bits >= np.uint32(min(round(rate * 2**32), 2**32 - 1))
