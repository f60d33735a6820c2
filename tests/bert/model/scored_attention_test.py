"""Attention of states to a memory by dot, bilinear and additive scores: worked numbers, and what changes nothing."""

import jax
import numpy as np
import pytest

from bert.model import scored_attention
from bert.model.scored_attention import Additive, ScoredAttention

MEMORY_BSC = np.array([[[0.2, -0.1], [0.5, 0.4], [-0.3, 0.6]]], np.float32)
STATE_BKJ = np.array([[[0.1, 0.7]]], np.float32)
ALL = np.ones((1, 1, 3), bool)


def attended(score, params, memory_BSC, state_BKJ, allowed_BKS, keys=2):
    """Weights and contexts."""
    module = ScoredAttention(score, state_BKJ.shape[-1], memory_BSC.shape[-1], keys, "float32")
    call = lambda method, *inputs: module.apply({"params": params}, *inputs, method=method)  # noqa: E731
    keys_BSA, additive = call("of_memory", memory_BSC), call("additive")
    weights_BKS = scored_attention.weights(state_BKJ, keys_BSA, allowed_BKS, additive, "float32")
    return weights_BKS, scored_attention.mixed(weights_BKS, memory_BSC, "float32")


def test_additive_scores_of_the_worked_example():
    query = {"kernel": np.array([[0.5, 0.1], [-0.2, 0.3]], np.float32).T, "bias": np.zeros(2, np.float32)}
    key = {"kernel": np.array([[0.4, -0.6], [0.2, 0.5]], np.float32).T}
    params = {"query": query, "key": key, "vector": {"kernel": np.array([[1.0], [-0.5]], np.float32)}}
    weights_BKS, context_BKC = attended("additive", params, MEMORY_BSC, STATE_BKJ, ALL)
    np.testing.assert_allclose(weights_BKS[0, 0], [0.4501, 0.3293, 0.2206], atol=5e-5)
    np.testing.assert_allclose(context_BKC[0, 0], [0.1885, 0.2191], atol=5e-5)


def test_bilinear_scores_of_the_worked_example_and_of_a_grid():
    params = {"key": {"kernel": np.array([[1.0, 0.5], [-0.5, 2.0]], np.float32).T}}
    weights_BKS, context_BKC = attended("bilinear", params, MEMORY_BSC, STATE_BKJ, ALL)
    np.testing.assert_allclose(weights_BKS[0, 0], [0.1655, 0.3170, 0.5175], atol=5e-5)
    np.testing.assert_allclose(context_BKC[0, 0], [0.0364, 0.4207], atol=5e-5)
    grid_BSC = (np.arange(12, dtype=np.float32) / 10).reshape(1, 4, 3)  # 2 x 2 cells
    params = {"key": {"kernel": np.array([[1.0, 0.0, 2.0], [0.0, 1.0, -1.0]], np.float32).T}}
    state_BKJ = np.array([[[0.5, -1.0]]], np.float32)
    weights_BKS, context_BKC = attended("bilinear", params, grid_BSC, state_BKJ, np.ones((1, 1, 4), bool))
    np.testing.assert_allclose(weights_BKS[0, 0], [0.1125, 0.1765, 0.2768, 0.4341], atol=1e-4)
    np.testing.assert_allclose(context_BKC[0, 0], [0.6098, 0.7098, 0.8098], atol=1e-4)


@pytest.mark.parametrize("score", ["additive", "bilinear", "dot"])
def test_places_that_may_not_be_read_and_their_order_change_nothing(score):
    """Two states of a row, which read other places; where none may be read, all weights and gradients are 0."""
    rng = np.random.default_rng(0)
    memory_BSC, state_BKJ = rng.standard_normal((2, 5, 4), np.float32), rng.standard_normal((2, 2, 4), np.float32)
    allowed_BKS = np.array([[[1, 1, 0, 1, 0], [0, 0, 1, 0, 1]], [[1, 1, 1, 1, 1], [0, 0, 0, 0, 0]]], bool)
    module = ScoredAttention(score, 4, 4, 3, "float32")
    params = module.init(jax.random.key(0), memory_BSC, method=lambda m, x: (m.of_memory(x), m.additive()))
    params = params.get("params", {})
    weights_BKS, context_BKC = attended(score, params, memory_BSC, state_BKJ, allowed_BKS, 3)
    assert (np.asarray(weights_BKS)[~allowed_BKS] == 0).all()
    np.testing.assert_allclose(weights_BKS.sum(-1), [[1, 1], [1, 0]], rtol=1e-6)
    np.testing.assert_allclose(context_BKC, np.einsum("BKS,BSC->BKC", weights_BKS, memory_BSC), atol=1e-6)
    order = [3, 0, 4, 1, 2]
    moved, others = memory_BSC[:, order], np.where(allowed_BKS[:, :1].swapaxes(1, 2), memory_BSC, 1e4)
    inputs = (state_BKJ, allowed_BKS[..., order], 3)
    np.testing.assert_allclose(attended(score, params, moved, *inputs)[1], context_BKC, atol=1e-6)
    masked = attended(score, params, others, state_BKJ, allowed_BKS, 3)[1]
    np.testing.assert_allclose(masked[:, 0], context_BKC[:, 0], atol=1e-6)

    def total(memory_BSC, state_BKJ):
        return attended(score, params, memory_BSC, state_BKJ, allowed_BKS, 3)[1].sum()

    for gradient in jax.grad(total, (0, 1))(memory_BSC, state_BKJ * 100):
        assert np.isfinite(gradient).all()


def test_a_score_for_all_alike_changes_no_weight():
    keys_BSA, state_BKJ = np.ones((1, 3, 2), np.float32), np.full((1, 1, 2), 1e4, np.float32)
    weights_BKS = scored_attention.weights(state_BKJ, keys_BSA, ALL, None, "float32")
    np.testing.assert_allclose(weights_BKS, np.full((1, 1, 3), 1 / 3), rtol=1e-6)
    additive = Additive(*(np.zeros(shape, np.float32) for shape in ((2, 2), (2,), (2, 1))))
    weights_BKS = scored_attention.weights(state_BKJ, keys_BSA, ALL, additive, "float32")
    np.testing.assert_allclose(weights_BKS, np.full((1, 1, 3), 1 / 3), rtol=1e-6)


def test_bilinear_scores_of_the_reference_s_grid(shared):
    """golden2: a state and a grid of 3 x 4 cells of 8 numbers; added to all scores, a constant changes nothing."""
    file = np.load(shared / "golden2" / "attention" / "two_dimensional_3x4.npz")
    grid_BSC = file["h"].reshape(1, 12, 8).astype(np.float32)
    params = {"key": {"kernel": file["caption_Wkey"].T.astype(np.float32)}}
    state_BKJ = file["caption_state"].reshape(1, 1, 6).astype(np.float32)
    weights_BKS, context_BKC = attended("bilinear", params, grid_BSC, state_BKJ, np.ones((1, 1, 12), bool))
    np.testing.assert_allclose(weights_BKS[0, 0], file["caption_weights"].ravel(), atol=1e-6)
    np.testing.assert_allclose(context_BKC[0, 0], file["caption_context"], atol=1e-6)
    moved = np.exp(file["caption_scores"] + 5)
    np.testing.assert_allclose(weights_BKS[0, 0], (moved / moved.sum()).ravel(), atol=1e-6)
