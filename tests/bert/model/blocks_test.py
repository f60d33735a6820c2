"""Activations, layer norm and dense layers against numbers that can be checked by hand."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.bert import BertConfig
from bert.architectures.transformer import ACTIVATIONS
from bert.model.blocks import ACTIVATION_FUNCTIONS, Dense, LayerNorm, gelu

CONFIG = BertConfig(vocab_size=8, hidden_size=4, num_layers=1, num_heads=1, intermediate_size=8)


@pytest.fixture(scope="module")
def hand(golden) -> dict:
    return json.loads((golden / "hand_examples.json").read_text())


def test_gelu_closed_forms(hand):
    """ "gelu" is x times the normal distribution function; the tanh form differs in the fourth digit."""
    assert float(ACTIVATION_FUNCTIONS["gelu"](jnp.float32(1.0))) == pytest.approx(0.8413447, abs=1e-7)
    for table, names in (("gelu_erf", ["gelu"]), ("gelu_tanh", ["gelu_new", "gelu_pytorch_tanh", "gelu_fast"])):
        x, y = (np.array(list(column), np.float64) for column in zip(*hand["closed_forms"][table].items(), strict=True))
        for name in names:
            np.testing.assert_allclose(ACTIVATION_FUNCTIONS[name](jnp.array(x, jnp.float32)), y, atol=3e-7)


@pytest.mark.parametrize(("dtype", "relative"), [("float32", 1e-6), ("bfloat16", 2**-8)])
def test_gelu_and_its_slope_equal_float64(dtype, relative):
    """From -30 to 30: to float32's digits, in bfloat16 rounded once; 0 far below 0, and no NaN."""
    x = jnp.linspace(-30, 30, 1201).astype(dtype)
    wide = np.asarray(x, np.float64)
    below = np.array([0.5 * math.erfc(-number / math.sqrt(2)) for number in wide])
    slope = below + wide * np.exp(-0.5 * wide**2) / math.sqrt(2 * math.pi)
    y, pull = jax.vjp(jax.jit(gelu), x)
    for got, want in ((y, wide * below), (pull(jnp.ones_like(x))[0], slope)):
        assert got.dtype == dtype
        np.testing.assert_allclose(np.asarray(got, np.float64), want, rtol=relative, atol=1e-6)


def test_gelu_keeps_its_input_alone():
    """For the gradient one array is kept, in the input's dtype, where autodiff would keep float32 ones."""
    x = jnp.ones((3, 5), jnp.bfloat16)
    kept = jax.tree.leaves(jax.eval_shape(lambda x: jax.vjp(gelu, x)[1], x))
    assert [(leaf.shape, leaf.dtype) for leaf in kept] == [(x.shape, x.dtype)]


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
