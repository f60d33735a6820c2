"""Attention by hand, and the written-out gradient against autodiff of the formula, for every kind of pattern."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.model import attention as module
from bert.model.attention import attention, attention_scores, attention_weights, fused_attention
from bert.model.dropout import kept
from bert.model.pattern import Pattern

# Example ids of queries and of keys: rows that are packed, padded, full, and of padding only.
MIXED = [[1, 1, 1, 2, 2, 3, 3, 0], [1, 1, 1, 1, 1, 0, 0, 0], [1] * 8, [0] * 8]
SHORT = [[1, 1, 2, 2, 0], [1] * 5]
PLACES = [[0, 1, 0, 1, 0], [0, 1, 2, 3, 4]]
ROWS = {
    "rows of every kind": (MIXED, MIXED),
    "short rows": (SHORT, SHORT),
    "causal": (SHORT, SHORT, PLACES, PLACES, None, True),
    "window": (SHORT, SHORT, PLACES, PLACES, 1),
    "two streams": ([[1, 2, 2], [2, 1, 0]], [[1, 1, 2, 2, 2, 1, 0], [1, 1, 1, 2, 2, 2, 2]]),
}
RATE = 0.3


@pytest.fixture(scope="module")
def hand(golden) -> dict:
    return json.loads((golden / "hand_examples.json").read_text())


@pytest.mark.parametrize(
    ("case", "key_ids", "weights", "output"),
    [
        ("all_four_keys", [1, 1, 1, 1], [0.2452, 0.2984, 0.2236, 0.2328], [0.6401, 0.4681, 0.7050]),
        ("without_the_MASK_key", [1, 1, 1, 0], [0.3196, 0.3890, 0.2914, 0.0], [0.5915, 0.4584, 0.6458]),
    ],
)
def test_attention_of_one_word_by_hand(hand, case, key_ids, weights, output):
    """ "Deep Learning is [MASK]": what the mask looks at and what it gets, as worked out on paper."""
    example = hand["attention_example"]
    q_BTNH = jnp.array(example["query_of_MASK"])[None, None, None, :]  # one row, one query, one head
    k_BSNH, v_BSNH = (jnp.array(example[name])[None, :, None, :] for name in ("K", "V"))
    pattern = Pattern(jnp.array([[1]]), jnp.array([key_ids]))

    got_S = attention_weights(attention_scores(q_BTNH, k_BSNH), pattern)[0, 0, 0]
    got_H = attention(q_BTNH, k_BSNH, v_BSNH, pattern)[0, 0, 0]

    np.testing.assert_allclose(got_S, weights, atol=5e-5)
    np.testing.assert_allclose(got_H, output, atol=5e-5)
    exact = example[case]
    np.testing.assert_allclose(got_S[: len(exact["weights"])], exact["weights"], atol=1e-7)
    np.testing.assert_allclose(got_H, exact["output"], atol=2e-7)


@pytest.mark.parametrize("width", [4, 16, 64, 256])
def test_scaling_takes_the_width_out_of_the_variance_of_scores(width):
    """Of vectors whose parts have variance 1: the products have variance H, the scores 1, within 3 %."""
    q_B11H, k_B11H = np.random.default_rng(width).standard_normal((2, 50_000, 1, 1, width), np.float32)
    scores_B = np.asarray(attention_scores(q_B11H, k_B11H)).ravel()
    assert (q_B11H * k_B11H).sum(-1).var() == pytest.approx(width, rel=0.03)
    assert scores_B.var() == pytest.approx(1, rel=0.03)


def test_heads_do_not_mix():
    """Each head's output comes from its own slice of queries, keys and values."""
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 5, 3, 4), np.float32)
    pattern, compiled = Pattern(jnp.ones((2, 5), int), jnp.ones((2, 5), int)), jax.jit(attention)
    both = compiled(q, k, v, pattern)
    for n in range(3):
        one = (slice(None), slice(None), slice(n, n + 1))
        np.testing.assert_allclose(both[one], compiled(q[one], k[one], v[one], pattern), atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_row_without_keys_is_finite(dtype):
    """Where nothing may be looked at the weights are equal, and neither they nor their gradients are NaN."""
    q, k, v = (jax.random.normal(jax.random.key(i), (1, 3, 1, 4)).astype(dtype) * 100 for i in range(3))
    pattern = Pattern(jnp.zeros((1, 3), int), jnp.zeros((1, 3), int))
    np.testing.assert_allclose(attention_weights(attention_scores(q, k), pattern), 1 / 3, atol=1e-6)
    total = lambda *qkv: attention(*qkv, pattern, jax.random.key(3), RATE).astype(jnp.float32).sum()  # type: ignore[call-arg]  # noqa: E731
    for gradient in jax.jit(jax.grad(total, argnums=(0, 1, 2)))(q, k, v):
        assert jnp.isfinite(gradient.astype(jnp.float32)).all()


def test_scores_far_apart_do_not_overflow():
    """Scores of 1e6 give weight 1 to the largest; without the shift by the maximum exp() would be infinite."""
    q, k = jnp.full((1, 1, 1, 1), 1e3), jnp.array([-1e3, 0.0, 1e3])[None, :, None, None]
    pattern = Pattern(jnp.ones((1, 1), int), jnp.ones((1, 3), int))
    np.testing.assert_array_equal(attention_weights(attention_scores(q, k), pattern)[0, 0, 0], [0, 0, 1])


def plain(q_BTNH, k_BSNH, v_BSNH, pattern, key, rate):
    """The formula: weights, the kept ones of them larger, the average of the values."""
    weights_BNTS = attention_weights(attention_scores(q_BTNH, k_BSNH), pattern)
    if key is not None:
        weights_BNTS = jnp.where(kept(key, weights_BNTS.shape, rate), weights_BNTS / (1 - rate), 0.0)
    return jnp.einsum("BNTS,BSNH->BTNH", weights_BNTS, v_BSNH)


def arrays(rows: str) -> tuple:
    """((q, k, v), cotangent, pattern): two heads of width 4, numbers that bfloat16 has, too.

    The cotangent is 0 where a query sees no key, as in training, for no loss reads what such a query gets.
    """
    pattern = Pattern(*(jnp.array(part) if isinstance(part, list) else part for part in ROWS[rows]))
    (B, T), S = pattern.query_ids.shape, pattern.key_ids.shape[1]
    q, k, v, dmixed = (
        jax.random.normal(jax.random.key(i), (B, n, 2, 4)).astype("bfloat16").astype("float32")
        for i, n in enumerate((T, S, S, T))
    )
    return (q, k, v), dmixed * pattern.allowed().any(-1)[:, 0, :, None, None], pattern


def value_and_gradients(function, rows: str, key, rate: float, dtype: str = "float32") -> list[np.ndarray]:
    """Output and gradients of q, k and v."""
    qkv, dmixed, pattern = arrays(rows)

    def run(qkv, dmixed):
        value, pull = jax.vjp(lambda *qkv: function(*qkv, pattern, key, rate), *qkv)
        return value, *pull(dmixed)

    found = jax.jit(run)(*jax.tree.map(lambda x: x.astype(dtype), (qkv, dmixed)))
    assert {x.dtype.name for x in found} == {dtype}
    return [np.asarray(x, np.float32) for x in found]


@functools.cache
def wanted(rows: str, dropout: bool) -> list[np.ndarray]:
    return value_and_gradients(plain, rows, *draws(dropout))


def draws(dropout: bool) -> tuple:
    return (jax.random.key(7), RATE) if dropout else (None, 0.0)


@pytest.mark.parametrize("dropout", [False, True], ids=["no dropout", "dropout"])
@pytest.mark.parametrize("rows", ROWS)
def test_attention_equals_autodiff_of_the_formula(rows, dropout):
    """Output and gradients in float32."""
    got = value_and_gradients(attention, rows, *draws(dropout))
    for g, want in zip(got, wanted(rows, dropout), strict=True):
        np.testing.assert_allclose(g, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_attention_equals_the_formula_in_every_form(form, dtype):
    """In float32 to 1e-5, in bfloat16 (8 bits) to 1/64 of the largest entry, whatever form its products take."""
    got = value_and_gradients(attention, "rows of every kind", *draws(True), dtype)  # type: ignore[call-arg]
    for g, want in zip(got, wanted("rows of every kind", True), strict=True):
        bound = 1e-5 if dtype == "float32" else np.abs(want).max() / 64
        np.testing.assert_allclose(g, want, rtol=0, atol=bound)


@pytest.mark.parametrize("dropout", [False, True], ids=["no dropout", "dropout"])
def test_one_array_of_weights_is_kept_for_the_gradient(dropout):
    """Of the arrays [B, N, T, S], which grow with the square of the length, autodiff keeps more."""
    x, pattern = jnp.ones((2, 8, 2, 4)), Pattern(jnp.ones((2, 8), int), jnp.ones((2, 8), int))

    def arrays_kept(function) -> int:
        pull = jax.eval_shape(
            lambda *qkv: jax.vjp(lambda *qkv: function(*qkv, pattern, *draws(dropout)), *qkv)[1], x, x, x
        )
        return sum(leaf.size >= 2 * 2 * 8 * 8 for leaf in jax.tree.leaves(pull))

    assert arrays_kept(attention) == 1
    assert arrays_kept(plain) > 1


def test_without_a_key_the_rate_means_nothing():
    """As for `dropout`: no key, no dropout, and nothing is made larger for it."""
    (q, k, v), _, pattern = arrays("short rows")
    got, want = (attention(q, k, v, pattern, None, rate) for rate in (RATE, 0.0))
    np.testing.assert_array_equal(got, want)


def test_fused_attention_without_its_kernel_is_attention():
    """On a machine without cuDNN's kernel, or at shapes that it does not take: not one bit differs."""
    function = lambda *arguments: fused_attention(*arguments[:4])  # noqa: E731
    for got, want in zip(
        *(value_and_gradients(f, "short rows", None, 0.0) for f in (function, attention)), strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_fused_attention_tells_its_kernel_who_sees_whom(monkeypatch):
    """The kernel replaced by JAX's plain one: outputs where there is a key, and all gradients, are the formula's."""
    kernel = jax.nn.dot_product_attention
    monkeypatch.setattr(module, "_cudnn_takes", lambda q, k: True)
    monkeypatch.setattr(jax.nn, "dot_product_attention", lambda *qkv, implementation, **how: kernel(*qkv, **how))
    rows = "rows of every kind"
    got = value_and_gradients(lambda *arguments: fused_attention(*arguments[:4]), rows, None, 0.0)
    read = np.asarray(arrays(rows)[1] != 0)
    for g, want in zip(
        (got[0] * read, *got[1:]), (wanted(rows, False)[0] * read, *wanted(rows, False)[1:]), strict=True
    ):
        np.testing.assert_allclose(g, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "dtype", "taken"),
    [
        ((1, 128, 2, 64), "bfloat16", True),
        ((1, 40, 2, 8), "bfloat16", True),
        ((1, 128, 2, 64), "float32", False),
        ((1, 127, 2, 64), "bfloat16", False),
        ((1, 192, 2, 64), "bfloat16", False),
        ((1, 128, 2, 12), "bfloat16", False),
        ((1, 128, 2, 136), "bfloat16", False),
    ],
)
def test_which_arrays_the_fused_kernel_takes(monkeypatch, shape, dtype, taken):
    """bfloat16, even lengths but for 64 beyond a multiple of 128, heads of up to 128 in eights; no CPU."""
    x = jax.ShapeDtypeStruct(shape, dtype)
    assert not module._cudnn_takes(x, x)
    monkeypatch.setattr(module, "_has_fused_attention", lambda: True)
    assert module._cudnn_takes(x, x) == taken
