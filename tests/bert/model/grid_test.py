"""Attention over the cells of a grid: the numbers of the reference, and what positions in two directions change."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.bert import BertConfig
from bert.model.attention import attention, attention_scores, attention_weights
from bert.model.blocks import Block, MultiHeadAttention
from bert.model.grid import GridPositions, PatchEmbedding, flattened
from bert.model.pattern import Pattern

CONFIG = BertConfig(9, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=16, max_position_embeddings=8)


@pytest.fixture(scope="module")
def reference(shared) -> dict:
    return dict(np.load(shared / "golden2" / "attention" / "two_dimensional_3x4.npz"))


def all_cells(count: int) -> Pattern:
    ids = jnp.ones((1, count), jnp.int32)
    return Pattern(ids, ids)


def test_the_sheet_s_bare_layer_on_a_grid_of_two_by_two(shared):
    """systems.md 5b: no scale, no output matrix, no biases; the module, whose two heads are the same."""
    hand = json.loads((shared / "golden2" / "attention" / "hand.json").read_text())["grid_2x2"]
    config = BertConfig(9, hidden_size=2, num_layers=1, num_heads=2, intermediate_size=4, max_position_embeddings=8)
    bare = MultiHeadAttention(config, scale=1.0, with_output=False)
    params = {
        name: {"kernel": jnp.tile(jnp.array(hand[f"W{letter}"], jnp.float32)[:, None], 2), "bias": jnp.zeros(2)}
        for name, letter in (("query", "Q"), ("key", "K"), ("value", "V"))
    }
    x_BTD, _ = flattened(jnp.array(hand["h"], jnp.float32)[None])
    scores, weights = bare.apply({"params": params}, x_BTD, x_BTD, all_cells(4), method="scores_and_weights")
    output_BTD = bare.apply({"params": params}, x_BTD, x_BTD, all_cells(4))
    for head in range(2):
        np.testing.assert_allclose(scores[0, head], hand["scores"], atol=1e-6)
        np.testing.assert_allclose(weights[0, head], hand["weights"], atol=1e-6)
        np.testing.assert_allclose(output_BTD[0, :, head], hand["output"], atol=1e-6)


@pytest.mark.parametrize(("scale", "name"), [(1.0, "unscaled"), (None, "scaled")])
def test_flattened_cells_attend_as_on_the_grid(reference, scale, name):
    """Weights a[k, x, y, x', y'] and outputs of arrays that were computed with four axes."""
    h_BTD, _ = flattened(jnp.array(reference["h"], jnp.float32)[None])
    q, k, v = (jnp.einsum("BTD,NHD->BTNH", h_BTD, jnp.array(reference[f"W{x}"], jnp.float32)) for x in "QKV")
    weights = attention_weights(attention_scores(q, k, scale), all_cells(12))
    np.testing.assert_allclose(weights[0].reshape(2, 3, 4, 3, 4), reference[f"weights_{name}"], atol=1e-6)
    mixed = attention(q, k, v, all_cells(12), scale=scale).reshape(3, 4, -1)
    np.testing.assert_allclose(mixed, reference[f"output_{name}"], atol=1e-5)
    if scale is None:
        projected = mixed @ reference["WO"].T + reference["bO"]
        np.testing.assert_allclose(projected, reference["output_scaled_projected"], atol=1e-5)


def test_positions_in_two_directions(reference):
    """A table of rows and one of columns; or sines of the row in the first half, of the column in the other."""
    _, cells_BT = flattened(jnp.zeros((1, 3, 4, 8)))
    params = {name: {"embedding": jnp.array(reference[f"{name}_table"], jnp.float32)} for name in ("row", "column")}
    added = GridPositions(CONFIG, (3, 4)).apply({"params": params}, cells_BT)
    np.testing.assert_allclose(
        reference["h"] + np.asarray(added).reshape(3, 4, 8), reference["h_plus_tables"], atol=1e-6
    )
    sines = GridPositions(CONFIG, (3, 4), "sinusoidal").apply({}, cells_BT)
    np.testing.assert_allclose(np.asarray(sines).reshape(3, 4, 8), reference["sinusoid_2d_half_x_half_y"], atol=1e-6)


@pytest.fixture(scope="module")
def block():
    """Pictures of features [3, 3] -> the block's states [3, 3, D], for each kind of positions."""
    features = jax.random.normal(jax.random.key(0), (1, 3, 3, 5))

    @functools.partial(jax.jit, static_argnums=0)
    def states_of(kind: str, features_BXYK):
        values, cells = flattened(features_BXYK)
        embedding = PatchEmbedding(CONFIG, (3, 3), kind)
        x_BTD = embedding.apply(embedding.init(jax.random.key(1), values, cells), values * 20, cells)
        layer = Block(CONFIG)
        params = layer.init(jax.random.key(2), x_BTD, all_cells(9))
        params = jax.tree.map(lambda leaf: leaf * 20 if leaf.ndim == 2 else leaf, params)
        return layer.apply(params, x_BTD, all_cells(9)).reshape(3, 3, -1)

    return features, lambda *arguments: np.asarray(states_of(*arguments))


@pytest.mark.parametrize("kind", ["none", "learned", "sinusoidal"])
def test_without_positions_a_turned_picture_gives_the_turned_states(block, kind):
    """And any other order of the cells; with positions it does not."""
    features, run = block
    states = run(kind, features)
    order = np.random.default_rng(0).permutation(9)
    shuffled = run(kind, features.reshape(1, 9, 5)[:, order].reshape(1, 3, 3, 5)).reshape(9, -1)
    turned = run(kind, jnp.rot90(features, axes=(1, 2)))
    differences = np.abs(shuffled - states.reshape(9, -1)[order]).max(), np.abs(turned - np.rot90(states)).max()
    if kind == "none":
        assert max(differences) < 1e-5
    else:
        assert min(differences) > 1e-3
