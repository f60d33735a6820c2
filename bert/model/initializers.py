"""Random bits and initial weights, equal to those of `jax.random`, in plain arithmetic.

The bits are Threefry-2x32 with 20 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), the
generator behind `jax.random`, at the index of each entry, so they are the same on any mesh. As plain arithmetic, they
are fused into their consumer; `jax.random.bits` runs as a separate program, several times slower on a CPU.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_WORD = 2**32  # numbers that one word of the counter holds


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


def entry_numbers(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The place of each entry in row-major order, as low and high word, each uint32 of that shape.

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


def truncated_normal(stddev: float) -> Callable[[Array, tuple[int, ...]], Array]:
    """Makes first weights: float32, normal with that deviation, none beyond two of them.

    ``(key, shape)`` -> the values of `jax.nn.initializers.truncated_normal`, three times as fast on a CPU.
    """
    return lambda key, shape: _normal_within_two(key, shape) * jnp.float32(stddev)


@functools.partial(jax.jit, static_argnums=1)  # one program where it is called outside of any
def _normal_within_two(key: Array, shape: tuple[int, ...]) -> Array:
    key_words = jax.random.key_data(key).ravel()
    low, high = entry_numbers(shape)
    bits = jnp.bitwise_xor(*threefry(key_words[0], key_words[1], high, low))
    # 23 bits are the fraction of a float from 1 to 2, which is spread over the distribution's share within two.
    fraction = jax.lax.bitcast_convert_type((bits >> np.uint32(9)) | np.uint32(0x3F800000), jnp.float32) - 1.0
    share = np.float32(math.erf(math.sqrt(2.0)))
    uniform = jnp.maximum(fraction * (2 * share) - share, -share)
    most = np.nextafter(np.float32(2.0), np.float32(0.0))
    return jnp.clip(np.float32(math.sqrt(2.0)) * jax.lax.erf_inv(uniform), -most, most)
