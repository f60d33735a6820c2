"""Products and their written-out gradients equal plain ones, in each form that some backend gets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.model import matmul

ROUNDING = 2.0**-8  # of a number to bfloat16, as a share of it, at most


def normal(seed: int, shape: tuple[int, ...], dtype: str = "float32") -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape).astype(dtype)


def value_and_gradients(function, arguments: tuple, dy: jax.Array) -> list[np.ndarray]:
    """The function's value, and its gradients for the cotangent ``dy``, as float32."""

    def run(arguments, dy):
        value, pull = jax.vjp(function, *arguments)
        return [x.astype(jnp.float32) for x in (value, *pull(dy))]

    return [np.asarray(x) for x in jax.jit(run)(arguments, dy)]


def rounded(*arrays: jax.Array) -> list[jax.Array]:
    """As bfloat16 has them, in float32."""
    return [x.astype(jnp.bfloat16).astype(jnp.float32) for x in arrays]


@pytest.mark.parametrize("leading", [(6,), (2, 3), (2, 3, 4)], ids=str)
def test_dense_equals_autodiff(form, leading):
    """Value and all three gradients in float32, with one, two and three axes before the features."""
    arguments, dy = (normal(0, (*leading, 5)), normal(1, (5, 7)), normal(2, (7,))), normal(3, (*leading, 7))
    got = value_and_gradients(lambda *xkb: matmul.dense(*xkb, "float32", "float32"), arguments, dy)
    for g, want in zip(got, value_and_gradients(lambda x, k, b: x @ k + b, arguments, dy), strict=True):
        np.testing.assert_allclose(g, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("leading", [(6,), (2, 3), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("result", ["bfloat16", "float32"])
def test_dense_in_bfloat16_rounds_operands_and_result_only(form, leading, result):
    """The exact product of rounded operands: gradients of parameters to 1e-5, bfloat16 results within its rounding."""
    x, dy = normal(0, (*leading, 5), "bfloat16"), normal(3, (*leading, 7), result)
    kernel, bias = normal(1, (5, 7)), normal(2, (7,))
    got = value_and_gradients(lambda *xkb: matmul.dense(*xkb, "bfloat16", result), (x, kernel, bias), dy)
    wide_x, wide_kernel, wide_dy = rounded(x, kernel, dy)
    want = value_and_gradients(lambda x, k, b: x @ k + b, (wide_x, wide_kernel, bias), wide_dy)
    want[3] = np.asarray(dy, np.float32).reshape(-1, 7).sum(0)  # a sum, not a product: what comes in is not rounded
    # An accelerator adds the bias in bfloat16, too: rounded up to three times.
    bounds = [3 * ROUNDING if result == "bfloat16" else 1e-5, ROUNDING, 1e-5, 1e-5]
    for name, g, w, bound in zip(("y", "dx", "dkernel", "dbias"), got, want, bounds, strict=True):
        np.testing.assert_allclose(g, w, rtol=0, atol=bound * np.abs(w).max(), err_msg=name)


def test_gradients_of_parameters_are_summed_in_float32(form):
    """4,096 ones are 4,096; added up in bfloat16 they would stall at 256."""
    ones = jnp.ones((64, 64, 2), jnp.bfloat16)
    _, pull = jax.vjp(lambda *kb: matmul.dense(ones, *kb, "bfloat16", "bfloat16"), jnp.ones((2, 2)), jnp.ones(2))
    for gradient in pull(ones):
        assert gradient.dtype == jnp.float32
        np.testing.assert_array_equal(gradient, 4096)


def test_sums_of_columns(form):
    """Over all leading axes, in float32, of bfloat16 as well."""
    x = normal(0, (3, 4, 5), "bfloat16")
    got = matmul.column_sums(x)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, np.asarray(x, np.float32).sum((0, 1)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("contracted", "letters"), [((3, 3), "BNTH,BNSH->BNTS"), ((3, 2), "BNTS,BNSH->BNTH"), ((2, 2), "BNTS,BNTH->BNSH")]
)
def test_products_of_rows_and_heads(form, contracted, letters, dtype):
    """Each pair of axes that attention contracts, with no two axes of one size; sums in float32."""
    sizes = dict(zip("BNTSH", (2, 3, 4, 5, 6), strict=True))
    shapes = [[sizes[letter] for letter in word] for word in letters.split("->")[0].split(",")]
    x, y = (normal(i, shape, dtype) for i, shape in enumerate(shapes))
    operands = (matmul.operand(z, dtype) for z in (x, y))
    got = jax.jit(lambda *xy: matmul.batched_dot(*xy, contracted, result="float32"))(*operands)
    assert got.dtype == jnp.float32
    want = np.einsum(letters, np.asarray(x, np.float32), np.asarray(y, np.float32))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)
