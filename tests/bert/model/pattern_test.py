"""Who may attend to whom, against a rule written for one pair at a time."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.model.pattern import Pattern, within_examples

# Two packed rows and one of padding: examples, and positions that restart in each.
IDS = [[1, 1, 1, 1, 2, 2, 0, 0], [1, 2, 2, 2, 2, 2, 3, 3], [0] * 8]
PLACES = [[0, 1, 2, 3, 0, 1, 0, 0], [0, 0, 1, 2, 3, 4, 0, 1], [0] * 8]
BATCH = {"example_ids": jnp.array(IDS), "position_ids": jnp.array(PLACES)}


def by_pairs(query_ids, key_ids, query_places, key_places, window, causal) -> np.ndarray:
    """bool [B, T, S]: real queries; padding queries attend to real keys within the same limits."""

    def allowed(b: int, t: int, s: int) -> bool:
        same = key_ids[b][s] != 0 and query_ids[b][t] in (0, key_ids[b][s])
        distance = query_places[b][t] - key_places[b][s]
        return same and (distance >= 0 or not causal) and (window is None or abs(distance) <= window)

    B, T, S = len(query_ids), len(query_ids[0]), len(key_ids[0])
    pairs = [allowed(*place) for place in itertools.product(range(B), range(T), range(S))]
    return np.array(pairs).reshape(B, T, S)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [None, 0, 1, 2])
def test_self_attention_of_packed_rows(window, causal):
    pattern = within_examples(BATCH, window=window, causal=causal)
    np.testing.assert_array_equal(pattern.allowed()[:, 0], by_pairs(IDS, IDS, PLACES, PLACES, window, causal))


@pytest.mark.parametrize(("window", "causal"), [(None, False), (None, True), (1, False)])
def test_two_streams(window, causal):
    """A decoder's queries, of other lengths and in another packing, attend to their own example of the encoder's."""
    query_ids, query_places = [[2, 2, 2, 1, 1], [3, 1, 2, 2, 0], [1, 1, 1, 1, 0]], [[0, 1, 2, 0, 1]] * 3
    arrays = map(jnp.array, (query_ids, IDS, query_places, PLACES))
    pattern = Pattern(*arrays, window=window, causal=causal)
    np.testing.assert_array_equal(
        pattern.allowed()[:, 0], by_pairs(query_ids, IDS, query_places, PLACES, window, causal)
    )


def test_queries_at_some_positions():
    """As the rows of the whole pattern there, whichever fields it has."""
    positions_BP = jnp.array([[5, 0, 3], [7, 1, 1], [0, 2, 7]])
    for pattern in (within_examples(BATCH), within_examples(BATCH, window=1, causal=True)):
        rows = jnp.take_along_axis(pattern.allowed()[:, 0], positions_BP[..., None], axis=1)
        np.testing.assert_array_equal(pattern.at(positions_BP).allowed()[:, 0], rows)


def test_each_layer_of_a_scan_may_have_its_own_window():
    """Local and global layers in one compiled block."""

    def step(carry, window):
        return carry, within_examples(BATCH, window=window).allowed()

    _, of_layers = jax.lax.scan(step, None, jnp.array([1, 8, 1]))
    for allowed, window in zip(of_layers, (1, None, 1), strict=True):
        np.testing.assert_array_equal(allowed, within_examples(BATCH, window=window).allowed())


def test_positions_are_carried_only_where_something_compares_them():
    """BERT's pattern is two arrays; a pattern that lacks the positions it needs is refused."""
    assert len(jax.tree.leaves(within_examples(BATCH))) == 2
    assert len(jax.tree.leaves(within_examples(BATCH, causal=True))) == 4
    assert within_examples(BATCH, positions=True).positions()[0] is BATCH["position_ids"]
    with pytest.raises(ValueError, match="query_positions"):
        Pattern(BATCH["example_ids"], BATCH["example_ids"], causal=True).allowed()
