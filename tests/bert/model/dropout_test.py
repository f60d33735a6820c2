"""Dropout: the share it takes, the mean it keeps, and masks that are the same on any mesh."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from bert.model.dropout import dropout, kept


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dropout_rate_and_scale(rate, dtype):
    """The share of zeros is the rate (to four standard errors), all others have one value, and the mean stays 1."""
    n = 1_000_000
    y = jax.jit(dropout, static_argnums=1)(jnp.ones(n, dtype), rate, jax.random.key(3))
    assert y.dtype == dtype
    y = np.asarray(y, np.float64)
    assert np.mean(y == 0) == pytest.approx(rate, abs=4 * (rate * (1 - rate) / n) ** 0.5 + 1e-5)
    np.testing.assert_allclose(np.unique(y)[1:], [1 / (1 - rate)], rtol=1e-4 if dtype == "float32" else 2**-8)


def test_dropout_in_bfloat16_keeps_the_mean():
    """1/0.9 is 0.16 % off in bfloat16: multiplied into each value in that precision it would shrink every sum."""
    x = jax.random.uniform(jax.random.key(0), (2_000_000,), minval=1.0, maxval=2.0).astype("bfloat16")
    y = np.asarray(jax.jit(dropout, static_argnums=1)(x, 0.1, jax.random.key(1)), np.float64)
    assert y.mean() / (y != 0).mean() * 0.9 == pytest.approx(np.asarray(x, np.float64).mean(), rel=5e-4)


def test_dropout_is_off_without_a_key_or_a_rate():
    x = jnp.arange(6.0)
    assert dropout(x, 0.5, None) is x
    assert dropout(x, 0.0, jax.random.key(0)) is x


def test_dropout_close_to_one_is_finite():
    """A rate that 32 bits cannot tell from 1 keeps next to nothing, and divides by no zero."""
    assert jnp.isfinite(jax.jit(dropout, static_argnums=1)(jnp.ones(1000), 1 - 1e-12, jax.random.key(0))).all()


def test_dropout_depends_on_the_key_alone():
    """The same key gives the same mask; another key gives an unrelated one (overlap of zeros: rate squared)."""
    compiled = jax.jit(dropout, static_argnums=1)
    first, again, other = (compiled(jnp.ones(100_000), 0.5, jax.random.key(k)) for k in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert float(((first == 0) & (other == 0)).mean()) == pytest.approx(0.25, abs=0.006)


@pytest.mark.parametrize("split", [("rows",), (None, "rows"), ("rows", "columns")], ids=str)
def test_bits_are_the_same_on_eight_devices(split):
    """An array that is split over devices along its rows, its columns or both, against one device."""
    mesh = jax.make_mesh((4, 2), ("rows", "columns"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    mask = lambda key: kept(key, (16, 24), 0.5)  # noqa: E731
    spread = jax.jit(mask, out_shardings=NamedSharding(mesh, PartitionSpec(*split)))(jax.random.key(5))
    assert len(spread.sharding.device_set) == 8
    np.testing.assert_array_equal(spread, jax.jit(mask)(jax.random.key(5)))


def test_arrays_of_exactly_one_full_word():
    """2 ** 32 entries can be numbered (nothing is computed here: that would take 4 GiB)."""
    shape = (1, 2**16, 2**16)
    assert jax.eval_shape(lambda key: kept(key, shape, 0.5), jax.random.key(0)).shape == shape


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.corrcoef(np.ravel(one), np.ravel(other))[0, 1])


def test_neighbours_are_unrelated():
    """Entries beside and below each other, and masks of keys that differ by one: correlation 0 to four standard errors.

    Each row and each column keeps its share.
    """
    size, rate = 512, 0.25
    mask = jax.jit(lambda key: kept(jax.random.wrap_key_data(key), (size, size), rate))
    one, *others = (np.asarray(mask(np.array(key, np.uint32))) for key in ((0, 7), (0, 8), (1, 7)))
    for other in others:
        assert abs(correlation(one, other)) < 4 / size
    assert abs(correlation(one[1:], one[:-1])) < 4 / size
    assert abs(correlation(one[:, 1:], one[:, :-1])) < 4 / size
    for axis in (0, 1):  # one in 3.5 million rows is further off than five standard errors
        np.testing.assert_allclose(one.mean(axis), 1 - rate, atol=5 * (rate * (1 - rate) / size) ** 0.5)
