"""Attention with merged queries and keys: its scores and gradients by the formula, and that it trains as well."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.merged import MergedBertConfig
from bert.model.merged_attention import MergedAttention
from bert.model.pattern import Pattern

CONFIG = MergedBertConfig(9, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=4, max_position_embeddings=8)
IDS = jnp.array([[1, 1, 1, 2, 2], [1, 1, 1, 0, 0]])


@pytest.fixture(scope="module")
def layer():
    """(parameters with weights large enough that attention is far from uniform, inputs [B, T, D])"""
    x_BTD = jax.random.normal(jax.random.key(1), (2, 5, 8))
    params = MergedAttention(CONFIG).init(jax.random.key(0), x_BTD, x_BTD, Pattern(IDS, IDS))["params"]
    leaves, structure = jax.tree.flatten(params)
    drawn = [jax.random.normal(jax.random.key(i), leaf.shape) * 0.5 for i, leaf in enumerate(leaves)]
    return jax.tree.unflatten(structure, drawn), x_BTD


def by_formula(params, x_BTD):
    """``softmax(x W~ y + u y)`` of each head, times its values, projected."""
    B, T, D = x_BTD.shape
    W_DND, u_ND = params["merged"]["kernel"].reshape(D, 2, D), params["merged"]["bias"].reshape(2, D)
    scores = jnp.einsum("BTD,DNE,BSE->BNTS", x_BTD, W_DND, x_BTD) + jnp.einsum("NE,BSE->BNS", u_ND, x_BTD)[:, :, None]
    allowed = ((IDS[:, :, None] == IDS[:, None]) | (IDS[:, :, None] == 0)) & (IDS[:, None] != 0)
    weights_BNTS = jax.nn.softmax(jnp.where(allowed[:, None], scores, -1e30), axis=-1)
    v_BSNH = (x_BTD @ params["value"]["kernel"] + params["value"]["bias"]).reshape(B, T, 2, -1)
    mixed_BTD = jnp.einsum("BNTS,BSNH->BTNH", weights_BNTS, v_BSNH).reshape(B, T, D)
    return mixed_BTD @ params["output"]["kernel"] + params["output"]["bias"]


def test_outputs_and_gradients_are_those_of_the_formula(layer):
    """Of all parameters and of the input, which is both what queries and what keys are made of."""
    params, x_BTD = layer
    weight_BTD = jax.random.normal(jax.random.key(2), x_BTD.shape) * (IDS != 0)[..., None]

    def ours(params, x_BTD):
        return MergedAttention(CONFIG).apply({"params": params}, x_BTD, x_BTD, Pattern(IDS, IDS))

    np.testing.assert_allclose(ours(params, x_BTD), by_formula(params, x_BTD), atol=1e-5)
    found, wanted = (
        jax.jit(jax.grad(lambda p, x, f=f: (f(p, x) * weight_BTD).sum(), argnums=(0, 1)))(params, x_BTD)
        for f in (ours, by_formula)
    )
    for (path, value), (_, right) in zip(
        jax.tree_util.tree_leaves_with_path(found), jax.tree_util.tree_leaves_with_path(wanted), strict=True
    ):
        assert np.abs(right).max() > 1e-3, path
        np.testing.assert_allclose(value, right, atol=2e-5, err_msg=str(path))


def test_first_weights_are_as_large_as_a_product_of_two_kernels():
    config = dataclasses.replace(CONFIG, hidden_size=128)
    x_BTD = jnp.zeros((1, 1, 128))
    ids = jnp.ones((1, 1), jnp.int32)
    params = MergedAttention(config).init(jax.random.key(0), x_BTD, x_BTD, Pattern(ids, ids))["params"]
    kernel, width = params["merged"]["kernel"], 64
    of_two = jax.random.normal(jax.random.key(1), (2, 128, width)) * config.initializer_range
    product = of_two[0] @ of_two[1].T / np.sqrt(width)
    # Truncated at two deviations, which leaves 0.88 of the deviation.
    assert float(kernel.std()) == pytest.approx(0.88 * float(product.std()), rel=0.05)
