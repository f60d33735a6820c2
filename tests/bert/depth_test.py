"""The longest chain of dependent operations: small functions that can be counted by hand."""

import functools

import jax
import jax.numpy as jnp
import pytest

from bert.depth import longest_chain

X = jax.ShapeDtypeStruct((7, 3), "float32")


@jax.custom_vjp
def doubled(x):
    return x + x


doubled.defvjp(lambda x: (doubled(x), None), lambda _, dy: (2 * dy,))


@pytest.mark.parametrize(
    ("function", "operations"),
    [
        (lambda x: x, 0),
        (lambda x: jnp.ones(()), 0),
        (lambda x: (x * 2) + 1, 2),
        (lambda x: jnp.exp(jnp.sin(x)) * jnp.cos(x), 3),  # the longer of two branches, and what joins them
        (lambda x: [jnp.sin(x), jnp.exp(jnp.sin(x))], 2),  # the deeper of two results
        (lambda x: jax.jit(lambda y: (y * 2) + 1)(jnp.sin(x)), 3),
        (lambda x: jnp.sin(doubled(x)), 2),
        (lambda x: jax.checkpoint(lambda y: jnp.sin(y * 2))(x), 2),
        (lambda x: jax.lax.cond(True, jnp.sin, lambda y: jnp.sin(jnp.cos(y)), x), 2),
        (lambda x: x @ x.T, 2),  # a transposition and one product, whatever its size
    ],
)
def test_small_functions(function, operations):
    assert longest_chain(function, X) == operations


@pytest.mark.parametrize("length", [1, 5, 300])
def test_a_loop_counts_each_step(length):
    """A carry depends on the one before; what depends on its own slice alone is computed for all at once."""

    def carried(xs):
        return jax.lax.scan(lambda carry, x: ((carry + x) * 2, None), jnp.float32(0), xs)[0]

    def independent(xs):
        return jax.lax.scan(lambda carry, x: (carry, (x + 1) * 2), 0.0, xs)[1]

    xs = jax.ShapeDtypeStruct((length,), "float32")
    assert longest_chain(carried, xs) == 2 * length
    assert longest_chain(independent, xs) == 2
    assert longest_chain(functools.partial(jax.lax.fori_loop, 0, length, lambda _, y: y + 1), 0.0) == length


def test_a_loop_without_a_known_end_is_refused():
    with pytest.raises(ValueError, match="while"):
        longest_chain(lambda x: jax.lax.while_loop(lambda y: y < 9, lambda y: y * 2, x), 1.0)
