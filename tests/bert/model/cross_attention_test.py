"""Attention whose queries come from one sequence, and whose keys and values come from another."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.bert import BertConfig
from bert.model.attention import attention
from bert.model.blocks import MultiHeadAttention
from bert.model.pattern import Pattern

B, T, S, D, N = 2, 3, 5, 16, 2
CONFIG = BertConfig(vocab_size=9, hidden_size=D, num_layers=1, num_heads=N, initializer_range=0.5)
MODULE = MultiHeadAttention(CONFIG)
TARGET_BTD, SOURCE_BSD, COTANGENT_BTD = (
    jax.random.normal(jax.random.key(i), (B, length, D)) for i, length in enumerate((T, S, T))
)
SOURCE_IDS = np.array([[1] * S, [1, 1, 1, 0, 0]])  # the second source has two places of padding
PATTERN = Pattern(jnp.ones((B, T), int), jnp.asarray(SOURCE_IDS))


@pytest.fixture(scope="module")
def params():
    return jax.jit(MODULE.init)(jax.random.key(5), TARGET_BTD, SOURCE_BSD, PATTERN)["params"]


def test_a_query_has_a_score_for_each_place_of_the_source(params):
    scores, weights = MODULE.apply({"params": params}, TARGET_BTD, SOURCE_BSD, PATTERN, method="scores_and_weights")
    assert scores.shape == weights.shape == (B, N, T, S)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    np.testing.assert_array_equal(weights[1, :, :, SOURCE_IDS[1] == 0], 0)
    assert MODULE.apply({"params": params}, TARGET_BTD, SOURCE_BSD, PATTERN).shape == TARGET_BTD.shape


def dense(part, x):
    return (x @ part["kernel"] + part["bias"]).reshape(*x.shape[:2], N, -1)


def test_the_source_is_read_through_keys_and_values_alone(params):
    """Its gradient is the sum of what arrives by each of the two, neither of which is 0."""

    def loss(source_BSD):
        return (MODULE.apply({"params": params}, TARGET_BTD, source_BSD, PATTERN) * COTANGENT_BTD).sum()

    def through(keys_BSD, values_BSD):
        q = dense(params["query"], TARGET_BTD)
        mixed = attention(q, dense(params["key"], keys_BSD), dense(params["value"], values_BSD), PATTERN)
        output = params["output"]
        return ((mixed.reshape(B, T, D) @ output["kernel"] + output["bias"]) * COTANGENT_BTD).sum()

    by_keys, by_values = jax.jit(jax.grad(through, (0, 1)))(SOURCE_BSD, SOURCE_BSD)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(SOURCE_BSD), by_keys + by_values, atol=1e-5)
    assert min(np.abs(by_keys).max(), np.abs(by_values).max()) > 0.01
    np.testing.assert_array_equal((by_keys + by_values)[1, 3:], 0)


def test_the_target_is_read_through_queries_alone(params):
    """Without the kernel of the queries, the target has no influence, and the source still has."""

    def loss(target_BTD, source_BSD, params):
        return (MODULE.apply({"params": params}, target_BTD, source_BSD, PATTERN) * COTANGENT_BTD).sum()

    gradients = jax.jit(jax.grad(loss, (0, 1)))
    blind = params | {"query": params["query"] | {"kernel": jnp.zeros((D, D))}}
    for weights, sees in ((params, True), (blind, False)):
        of_target, of_source = gradients(TARGET_BTD, SOURCE_BSD, weights)
        assert bool((of_target != 0).any()) == sees
        assert (of_source != 0).any()
