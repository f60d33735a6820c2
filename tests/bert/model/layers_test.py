"""Attention, layer norm, activations and dropout against numbers that can be checked by hand."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.config import ACTIVATIONS, BertConfig
from bert.model.layers import (
    ACTIVATION_FUNCTIONS,
    Dense,
    LayerNorm,
    allowed_pairs,
    attention,
    attention_weights,
    dropout,
)

CONFIG = BertConfig(vocab_size=8, hidden_size=4, num_layers=1, num_heads=1, intermediate_size=8)


@pytest.fixture(scope="module")
def hand(golden) -> dict:
    return json.loads((golden / "hand_examples.json").read_text())


@pytest.mark.parametrize(
    ("case", "sees_itself", "weights", "output"),
    [
        ("all_four_keys", True, [0.2452, 0.2984, 0.2236, 0.2328], [0.6401, 0.4681, 0.7050]),
        ("without_the_MASK_key", False, [0.3196, 0.3890, 0.2914, 0.0], [0.5915, 0.4584, 0.6458]),
    ],
)
def test_attention_of_one_word_by_hand(hand, case, sees_itself, weights, output):
    """ "Deep Learning is [MASK]": what the mask looks at and what it gets, as worked out on paper."""
    example = hand["attention_example"]
    q_BTNH = jnp.array(example["query_of_MASK"])[None, None, None, :]  # one row, one query, one head
    k_BSNH, v_BSNH = (jnp.array(example[name])[None, :, None, :] for name in ("K", "V"))
    allowed_B1TS = jnp.array([True, True, True, sees_itself])[None, None, None, :]

    got_S = attention_weights(q_BTNH, k_BSNH, allowed_B1TS)[0, 0, 0]
    got_H = attention(q_BTNH, k_BSNH, v_BSNH, allowed_B1TS, rate=0.0, key=None)[0, 0, 0]

    np.testing.assert_allclose(got_S, weights, atol=5e-5)
    np.testing.assert_allclose(got_H, output, atol=5e-5)
    exact = example[case]
    np.testing.assert_allclose(got_S[: len(exact["weights"])], exact["weights"], atol=1e-7)
    np.testing.assert_allclose(got_H, exact["output"], atol=2e-7)


def test_heads_do_not_mix():
    """Each head's weights and output come from its own slice of queries, keys and values."""
    q, k, v = (jax.random.normal(jax.random.key(i), (2, 5, 3, 4)) for i in range(3))
    allowed = jnp.ones((2, 1, 5, 5), bool)
    both = attention(q, k, v, allowed, rate=0.0, key=None)
    for n in range(3):
        one = (slice(None), slice(None), slice(n, n + 1))
        np.testing.assert_allclose(both[one], attention(q[one], k[one], v[one], allowed, rate=0.0, key=None), atol=1e-6)


def test_who_may_look_at_whom():
    """Inside one example only; padding is never a key; a padding query sees every real key of its row."""
    allowed_TS = allowed_pairs(jnp.array([[1, 1, 2, 0]]))[0, 0].astype(int)
    np.testing.assert_array_equal(allowed_TS, [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 0]])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_row_without_keys_is_finite(dtype):
    """Where nothing may be looked at the weights are equal, and neither they nor their gradients are NaN."""
    q, k, v = (jax.random.normal(jax.random.key(i), (1, 3, 1, 4)).astype(dtype) * 100 for i in range(3))
    nothing = jnp.zeros((1, 1, 3, 3), bool)
    np.testing.assert_allclose(attention_weights(q, k, nothing), 1 / 3, atol=1e-6)
    total = lambda *qkv: attention(*qkv, nothing, rate=0.0, key=None).astype(jnp.float32).sum()  # noqa: E731
    for gradient in jax.grad(total, argnums=(0, 1, 2))(q, k, v):
        assert jnp.isfinite(gradient.astype(jnp.float32)).all()


def test_scores_far_apart_do_not_overflow():
    """Scores of 1e6 give weight 1 to the largest; without the shift by the maximum exp() would be infinite."""
    q, k = jnp.full((1, 1, 1, 1), 1e3), jnp.array([-1e3, 0.0, 1e3])[None, :, None, None]
    np.testing.assert_array_equal(attention_weights(q, k, jnp.ones((1, 1, 1, 3), bool))[0, 0, 0], [0, 0, 1])


def test_gelu_closed_forms(hand):
    """ "gelu" is x times the normal distribution function; the tanh form differs in the fourth digit."""
    assert float(ACTIVATION_FUNCTIONS["gelu"](jnp.float32(1.0))) == pytest.approx(0.8413447, abs=1e-7)
    for table, names in (("gelu_erf", ["gelu"]), ("gelu_tanh", ["gelu_new", "gelu_pytorch_tanh", "gelu_fast"])):
        x, y = (np.array(list(column), np.float64) for column in zip(*hand["closed_forms"][table].items(), strict=True))
        for name in names:
            np.testing.assert_allclose(ACTIVATION_FUNCTIONS[name](jnp.array(x, jnp.float32)), y, atol=3e-7)


def test_other_activations():
    """ReLU, SiLU under both of its names, and tanh, at -1, 0 and 2."""
    x = jnp.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(ACTIVATION_FUNCTIONS["relu"](x), [0, 0, 2])
    for name in ("silu", "swish"):
        np.testing.assert_allclose(ACTIVATION_FUNCTIONS[name](x), [-0.26894142, 0, 1.7615942], atol=1e-6)
    np.testing.assert_allclose(ACTIVATION_FUNCTIONS["tanh"](x), [-0.7615942, 0, 0.9640276], atol=1e-6)
    assert set(ACTIVATIONS) == set(ACTIVATION_FUNCTIONS)


def norm(x, config: BertConfig = CONFIG, scale: float = 1.0, bias: float = 0.0):
    params = {"scale": jnp.full(x.shape[-1], scale), "bias": jnp.full(x.shape[-1], bias)}
    return LayerNorm(config).apply({"params": params}, x)


def test_layer_norm_closed_form(hand):
    """1, 2, 3, 6 has mean 3 and (biased) variance 3.5; scale and bias come after."""
    want = hand["closed_forms"]["layer_norm"]
    np.testing.assert_allclose(norm(jnp.array(want["x"])), want["y"], atol=2e-7)
    np.testing.assert_allclose(norm(jnp.array(want["x"]), scale=2.0, bias=-1.0), 2 * np.array(want["y"]) - 1, atol=4e-7)


@pytest.mark.parametrize(("epsilon", "want"), [(1e-12, 0.99995), (1e-6, 0.0995037)])
def test_layer_norm_takes_epsilon_from_the_config(epsilon, want):
    """A row of variance 1e-8 tells the two common values apart by a factor of ten."""
    config = BertConfig(vocab_size=8, hidden_size=4, num_heads=1, layer_norm_eps=epsilon)
    np.testing.assert_allclose(norm(jnp.array([1e-4, -1e-4]), config), [want, -want], atol=1e-5)


def test_layer_norm_of_a_large_mean():
    """Values around 10,000 that differ by 1 keep all digits; E[x^2] - E[x]^2 would lose them."""
    x = np.array([10_000.0, 10_001.0, 10_002.0, 10_003.0])
    np.testing.assert_allclose(norm(jnp.array(x, jnp.float32)), (x - x.mean()) / x.std(), atol=1e-6)


def test_layer_norm_of_a_constant_row():
    """No variance at all: the result is the bias, with finite gradients."""
    np.testing.assert_allclose(norm(jnp.full(4, 7.0), bias=0.5), 0.5)
    assert jnp.isfinite(jax.grad(lambda x: norm(x).sum())(jnp.full(4, 7.0))).all()


def test_dense_is_kernel_then_bias():
    """[1, 2] through the kernel [[1, 2, 3], [4, 5, 6]] and the bias [0.5, 0, -0.5]."""
    params = {"kernel": jnp.array([[1.0, 2, 3], [4, 5, 6]]), "bias": jnp.array([0.5, 0, -0.5])}
    np.testing.assert_array_equal(Dense(CONFIG, 3).apply({"params": params}, jnp.array([1.0, 2])), [9.5, 12, 14.5])


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_dropout_rate_and_scale(rate, dtype):
    """The share of zeros is the rate (to four standard errors), all others have one value, and the mean stays 1."""
    n = 1_000_000
    y = dropout(jnp.ones(n, dtype), rate, jax.random.key(3))
    assert y.dtype == dtype
    y = np.asarray(y, np.float64)
    assert np.mean(y == 0) == pytest.approx(rate, abs=4 * (rate * (1 - rate) / n) ** 0.5 + 1e-5)
    np.testing.assert_allclose(np.unique(y)[1:], [1 / (1 - rate)], rtol=1e-4 if dtype == "float32" else 2**-8)


def test_dropout_in_bfloat16_keeps_the_mean():
    """1/0.9 is 0.16 % off in bfloat16: multiplied into each value in that precision it would shrink every sum."""
    x = jax.random.uniform(jax.random.key(0), (2_000_000,), minval=1.0, maxval=2.0).astype("bfloat16")
    kept = np.asarray(dropout(x, 0.1, jax.random.key(1)), np.float64)
    share = (kept != 0).mean()
    assert kept.mean() / share * 0.9 == pytest.approx(np.asarray(x, np.float64).mean(), rel=5e-4)


def test_dropout_is_off_without_a_key_or_a_rate():
    x = jnp.arange(6.0)
    assert dropout(x, 0.5, None) is x
    assert dropout(x, 0.0, jax.random.key(0)) is x


def test_dropout_close_to_one_is_finite():
    """The largest rate that the 16 bits can tell from 1 is used instead of dividing by zero."""
    assert jnp.isfinite(dropout(jnp.ones(100_000), 0.999999, jax.random.key(0))).all()


def test_dropout_depends_on_the_key_alone():
    """The same key gives the same mask; another key gives an unrelated one (overlap of zeros: rate squared)."""
    first, again, other = (dropout(jnp.ones(100_000), 0.5, jax.random.key(k)) for k in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert float(((first == 0) & (other == 0)).mean()) == pytest.approx(0.25, abs=0.006)
