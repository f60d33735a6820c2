"""Random numbers that are those of jax.random: Threefry's bits, each entry's own number, first weights."""

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

from bert.model import initializers
from bert.model.initializers import threefry, truncated_normal


def test_threefry_equals_that_of_jax():
    """Keys and counters of all sizes, all bits of both words, and the first vector of the paper's own test file."""
    key_0, key_1, *counter = np.random.default_rng(0).integers(0, 2**32, (4, 50), np.uint32)
    for i in range(3):
        got = jax.jit(threefry)(key_0[i], key_1[i], *counter)
        want = jax.extend.random.threefry_2x32(jnp.array([key_0[i], key_1[i]]), jnp.concatenate(counter))
        np.testing.assert_array_equal(np.concatenate(got), want)
    assert [f"{int(word):08x}" for word in jax.jit(threefry)(*[np.uint32(0)] * 4)] == ["6b200159", "99ba4efe"]


@pytest.mark.parametrize("shape", [(3, 5, 4, 4), (1, 4, 4), (20,), (2, 3)], ids=str)
def test_every_entry_has_a_number_of_its_own(monkeypatch, shape):
    """Also where there are more entries than one word can count, here 16."""
    monkeypatch.setattr(initializers, "_WORD", 16)
    low, high = (np.asarray(word).ravel() for word in initializers.entry_numbers(shape))
    assert len(set(zip(low.tolist(), high.tolist(), strict=True))) == low.size


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4), (1000, 300)], ids=str)
@pytest.mark.parametrize("seed", [0, 12345])
def test_first_weights_equal_those_of_jax(shape, seed):
    """To the rounding of the compiler, alone and over a stack of layers."""
    wanted, key = jax.nn.initializers.truncated_normal(0.02), jax.random.key(seed)
    np.testing.assert_allclose(truncated_normal(0.02)(key, shape), wanted(key, shape), rtol=2e-6)
    keys = jax.random.split(key, 3)
    got = jax.jit(jax.vmap(lambda k: truncated_normal(0.02)(k, shape)))(keys)
    np.testing.assert_allclose(got, jnp.stack([wanted(k, shape) for k in keys]), rtol=2e-6)


def test_first_weights_are_a_normal_distribution_cut_at_two_deviations():
    """Deviation 0.8796 of the untruncated one, mean 0 to four standard errors, nothing beyond two, and both tails."""
    values = np.asarray(truncated_normal(0.5)(jax.random.key(1), (1000, 1000)), np.float64)
    assert values.std() == pytest.approx(0.5 * 0.87962566, rel=2e-3)
    assert abs(values.mean()) < 4 * 0.44 / 1000
    assert 0.999 < values.max() < 1.0
    assert -1.0 < values.min() < -0.999
