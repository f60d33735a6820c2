"""Pooling of packed rows: each mode is its formula on each example alone, whatever shares the row."""

import jax.numpy as jnp
import numpy as np
import pytest

from bert.model import pooling
from bert.model.sentence_encoder import MODES

LENGTHS = ([3, 1, 4], [8], [2, 5])  # of the examples in each row of 10 positions


@pytest.fixture(scope="module")
def packed():
    """Hidden states with NaN where there is no token, the batch, and the states of each example."""
    hidden_BTD = np.full((3, 10, 4), np.nan, np.float32)
    batch = {name: np.zeros((3, 10), np.int32) for name in ("example_ids", "position_ids")}
    batch["cls_positions"] = np.zeros((3, 3), np.int32)
    rng, examples = np.random.default_rng(0), {}
    for row, lengths in enumerate(LENGTHS):
        start = 0
        for slot, length in enumerate(lengths):
            examples[row, slot] = states = rng.normal(size=(length, 4)).astype(np.float32)
            hidden_BTD[row, start : start + length] = states
            batch["example_ids"][row, start : start + length] = slot + 1
            batch["position_ids"][row, start : start + length] = np.arange(length)
            batch["cls_positions"][row, slot] = start
            start += length
    return hidden_BTD, batch, examples


def formula(mode, states, skipped):
    """Of one example; source: sentence_transformers ``Pooling``."""
    kept, ranks = states[skipped:], np.arange(skipped, len(states)) + 1.0
    return {
        "cls": lambda: kept[0],
        "max": lambda: kept.max(0),
        "mean": lambda: kept.mean(0),
        "mean_sqrt_len_tokens": lambda: kept.sum(0) / np.sqrt(len(kept)),
        "weightedmean": lambda: ranks @ kept / ranks.sum(),
        "lasttoken": lambda: kept[-1],
    }[mode]()


@pytest.mark.parametrize("skipped", [0, 1])
def test_every_mode_is_its_formula(packed, skipped):
    hidden_BTD, batch, examples = packed
    found_BEK = np.asarray(pooling.pooled(jnp.asarray(hidden_BTD), batch, MODES, skipped))
    assert found_BEK.shape == (3, 3, 4 * len(MODES))
    for (row, slot), states in examples.items():
        if len(states) > skipped:
            want = np.concatenate([formula(mode, states, skipped) for mode in MODES])
            np.testing.assert_allclose(found_BEK[row, slot], want, rtol=0, atol=1e-6)


def test_a_row_without_slots_is_one_example(packed):
    hidden_BTD, batch, examples = packed
    alone = {name: batch[name][1:2] for name in ("example_ids", "position_ids")}
    found = np.asarray(pooling.pooled(jnp.asarray(hidden_BTD[1:2]), alone, ("weightedmean",)))
    np.testing.assert_allclose(found, formula("weightedmean", examples[1, 0], 0)[None, None], rtol=0, atol=1e-6)


def test_half_precision_states_are_pooled_in_float32(packed):
    hidden_BTD, batch, _ = packed
    rounded = jnp.asarray(hidden_BTD, jnp.bfloat16)
    found = pooling.pooled(rounded, batch, ("mean",))
    assert found.dtype == jnp.float32
    np.testing.assert_array_equal(found, pooling.pooled(rounded.astype(jnp.float32), batch, ("mean",)))


def test_the_vector_of_nothing_stays_zero():
    np.testing.assert_array_equal(pooling.normalized(jnp.array([[0.0, 0.0], [0.0, -4.0]])), [[0, 0], [0, -1]])
