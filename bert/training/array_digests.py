"""64-bit digests of arrays that detect damage to a stored array, the same on any number of devices.

A digest is two sums modulo 2**32 over the words of an array. Each term is a bijective function of the word that depends
on its index. So a change within one word always changes both sums; other damage goes unnoticed once in 2**64. Integer
sums do not depend on the order, and therefore not on how an array is split over devices.

Source: the mixing steps are those of MurmurHash3 (Appleby, fmix32) with one step more; multipliers are odd.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_BLOCK = 1 << 15  # words mixed together on the host; they stay in the cache


def of_devices(tree: Any) -> dict[str, str]:
    """Path in the tree -> digest (16 hexadecimal digits) of every array, computed on its devices.

    Every process must call it, and gets all digests. Elements have at most 32 bits.
    """
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    sums_N2 = np.asarray(_sums([x for _, x in leaves]))
    return {_name(path): _hexadecimal(*sums.tolist()) for (path, _), sums in zip(leaves, sums_N2, strict=True)}


def of_host(tree: Any) -> dict[str, str]:
    """The same digests of NumPy arrays, without compiling anything."""
    return {_name(path): _hexadecimal(*_host_sums(x)) for path, x in jax.tree_util.tree_leaves_with_path(tree)}


def shapes(tree: Any) -> dict[str, list[int]]:
    """Path in the tree -> shape of every array."""
    return {_name(path): list(x.shape) for path, x in jax.tree_util.tree_leaves_with_path(tree)}


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _hexadecimal(first: int, second: int) -> str:
    return f"{first:08x}{second:08x}"


def _mixed(words: Any, places: Any) -> tuple[Any, Any]:
    """Two bijective functions of each word (uint32), of JAX or of NumPy."""
    mixed = words ^ (places * np.uint32(0x9E3779B1))
    mixed = (mixed ^ (mixed >> 16)) * np.uint32(0x85EBCA6B)
    mixed = (mixed ^ (mixed >> 13)) * np.uint32(0xC2B2AE35)
    first = mixed ^ (mixed >> 16)
    second = first * np.uint32(0x27D4EB2F)
    return first, second ^ (second >> 15)


@jax.jit
def _sums(arrays: list[jax.Array]) -> jax.Array:
    """uint32 [arrays, 2]."""
    sums_N2 = jnp.stack([_device_sums(x) for x in arrays])
    if not jax.sharding.get_abstract_mesh().empty:  # every process reads all of it
        untyped: Any = jax
        sums_N2 = untyped.lax.with_sharding_constraint(sums_N2, untyped.P())
    return sums_N2


@jax.jit  # traced once a shape; a state has three arrays and more of each
def _device_sums(x: jax.Array) -> jax.Array:
    bits = jnp.dtype(x.dtype).itemsize * 8
    words = jax.lax.bitcast_convert_type(x, jnp.dtype(f"uint{bits}")).astype(jnp.uint32)
    places, stride = jnp.zeros((), jnp.uint32), 1
    for axis in reversed(range(x.ndim)):  # a flat index would gather an array that is split over devices
        places += jax.lax.broadcasted_iota(jnp.uint32, x.shape, axis) * np.uint32(stride % 2**32)
        stride *= x.shape[axis]
    # One reduction of both: XLA reads the array once, and 10 times as fast on a CPU as for two calls of sum().
    zero = np.uint32(0)
    both = jax.lax.reduce(
        _mixed(words, places), (zero, zero), lambda a, b: (a[0] + b[0], a[1] + b[1]), tuple(range(x.ndim))
    )
    return jnp.stack(both)


def _host_sums(x: np.ndarray) -> tuple[int, int]:
    words = np.ascontiguousarray(x).reshape(-1)
    words = words.view(f"<u{words.itemsize}")
    places, sums = np.arange(_BLOCK, dtype=np.uint32), [0, 0]
    for start in range(0, len(words), _BLOCK):
        block = words[start : start + _BLOCK].astype(np.uint32, copy=False)
        with np.errstate(over="ignore"):
            pair = _mixed(block, places[: len(block)] + np.uint32(start % 2**32))
        sums = [total + int(part.sum(dtype=np.uint64)) for total, part in zip(sums, pair, strict=True)]
    return sums[0] % 2**32, sums[1] % 2**32
