"""Dropout, with random bits that cost next to nothing and are the same on any mesh.

The bits are Threefry-2x32 with 20 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), the
generator behind `jax.random`, at the number of each entry. Written out as plain arithmetic it is fused into the
multiplication that uses it; `jax.random.bits` runs as a program of its own, ten times slower on a CPU.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

Array = jax.Array

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_WORD = 2**32  # numbers that one word of the counter holds


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


def kept(key: Array, shape: tuple[int, ...], rate: float) -> Array:
    """bool of that shape: which entries stay, each with probability ``1 - rate``; a function of the key alone."""
    key_words = jax.random.key_data(key).ravel()
    low, high = _numbers(shape)
    bits, _ = threefry(key_words[0], key_words[1], low, high)
    return bits >= np.uint32(min(round(rate * 2**32), 2**32 - 1))


def threefry(key_0: Array, key_1: Array, x_0: Array, x_1: Array) -> tuple[Array, Array]:
    """Two words of random bits for two words of counter, each uint32 of one shape."""
    keys = (key_0, key_1, key_0 ^ key_1 ^ _PARITY)
    x_0, x_1 = x_0 + keys[0], x_1 + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x_0 = x_0 + x_1
            x_1 = (x_1 << np.uint32(rotation)) | (x_1 >> np.uint32(32 - rotation))
            x_1 = x_1 ^ x_0
        x_0 = x_0 + keys[(group + 1) % 3]
        x_1 = x_1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x_0, x_1


def _numbers(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The place of each entry in row-major order, as low and high word.

    Sums of iotas: each device makes its own part. The leading axes count in the high word where the low one is full.
    """
    split = next((axis for axis in range(len(shape)) if math.prod(shape[axis:]) < _WORD), len(shape))
    words = []
    for axes in (range(split, len(shape)), range(split)):
        word = jnp.zeros(shape, jnp.uint32)
        stride = 1
        for axis in reversed(axes):
            word = word + jax.lax.broadcasted_iota(jnp.uint32, shape, axis) * np.uint32(stride)
            stride *= shape[axis]
        words.append(word)
    return words[0], words[1]
