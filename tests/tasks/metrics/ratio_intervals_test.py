"""Intervals of ratios against scoring each resample by hand."""

import numpy as np

from tasks.metrics import ratio_intervals


def test_intervals_are_those_of_scored_resamples():
    rng = np.random.default_rng(1)
    hits, wanted = rng.integers(0, 3, 12).astype(float), rng.integers(0, 4, 12).astype(float)
    marked = rng.integers(0, 4, 12).astype(float)
    found = ratio_intervals.intervals(
        {"recall": [(hits, wanted)], "f1": [(hits, marked), (hits, wanted)]}, seed=3, resamples=200
    )
    by_hand = {"recall": [], "f1": []}
    rows_RN = np.random.default_rng(3).integers(0, 12, (200, 12))
    for rows in rows_RN:
        recall, precision = hits[rows].sum() / wanted[rows].sum(), hits[rows].sum() / marked[rows].sum()
        by_hand["recall"].append(recall)
        by_hand["f1"].append(2 * precision * recall / (precision + recall))
    for name, values in by_hand.items():
        np.testing.assert_allclose(found[name][:2], np.percentile(values, [2.5, 97.5]))
        assert found[name][2:] == (200, 0)


def test_undefined_resamples_are_left_out_and_nothing_of_one_row():
    rare = np.array([1.0, 0, 0, 0, 0, 0])
    found = ratio_intervals.intervals({"rare": [(rare, rare)], "zero": [(0 * rare, rare + 1), (0 * rare, rare + 1)]})
    assert 200 < found["rare"].left_out < 500
    assert found["rare"][:2] == (1.0, 1.0)
    assert found["zero"][:2] == (0.0, 0.0)
    one = ratio_intervals.intervals({"a": [(np.ones(1), np.ones(1))]})["a"]
    assert (one.low, one.high, one.left_out) == (None, None, 1000)
