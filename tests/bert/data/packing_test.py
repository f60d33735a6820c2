"""Rows of several examples: each example once, no row too full, little padding."""

import numpy as np
import pytest

from bert.data.packing import _longest_first, pack, plan_packs


def row_lengths(rows, lengths):
    return np.add.reduceat(lengths[rows.order], rows.row_starts[:-1])


def test_each_example_once_and_no_row_too_full():
    """Random lengths, capacities and limits: a row holds 1 to max_examples examples and at most capacity tokens."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        capacity, most = int(rng.integers(1, 200)), int(rng.integers(1, 12))
        lengths = rng.integers(1, capacity + 1, rng.integers(1, 300))
        if seed % 3 == 0:
            lengths = np.minimum(lengths, rng.integers(1, capacity + 1))
        rows = pack(lengths, capacity=capacity, max_examples=most, seed=seed)
        np.testing.assert_array_equal(np.sort(rows.order), np.arange(len(lengths)))
        assert rows.row_starts[0] == 0
        assert rows.row_starts[-1] == len(lengths)
        assert 1 <= np.diff(rows.row_starts).min() <= np.diff(rows.row_starts).max() <= most
        assert row_lengths(rows, lengths).max() <= capacity


def first_fit_decreasing(lengths, capacity, max_examples):
    rows: list[list[int]] = []
    for length in sorted(lengths, reverse=True):
        for row in rows:
            if sum(row) + length <= capacity and len(row) < max_examples:
                row.append(length)
                break
        else:
            rows.append([length])
    return len(rows)


def histogram(seed):
    """(counts of lengths, most examples in a row) of one of several kinds: any, short, in the middle, few lengths."""
    rng = np.random.default_rng(seed)
    capacity = int(rng.integers(1, 130))
    lengths = [
        rng.integers(1, capacity + 1, 200),
        rng.gamma(2, capacity / 12, 300).astype(int),
        rng.normal(capacity * 0.42, capacity / 8, 300).astype(int),
        rng.choice(rng.integers(1, capacity + 1, 4), 200),
    ][seed % 4]
    return np.bincount(lengths.clip(1, capacity), minlength=capacity + 1), int(rng.integers(1, 12))


@pytest.mark.parametrize("seed", range(48))  # first fit is the best plan for 45
def test_a_plan_holds_every_example_in_no_more_rows_than_first_fit(seed):
    """Whatever the lengths: each is placed as often as it occurs, no row is too full, and pairs never cost rows."""
    counts, most = histogram(seed)
    plan = plan_packs(counts, most)
    placed = np.zeros_like(counts)
    for lengths, count in plan:
        assert count > 0
        assert 1 <= len(lengths) <= most
        assert sum(lengths) < len(counts)
        np.add.at(placed, list(lengths), count)
    np.testing.assert_array_equal(placed, counts)
    every_length = np.repeat(np.arange(len(counts)), counts).tolist()
    assert sum(count for _, count in plan) <= first_fit_decreasing(every_length, len(counts) - 1, most)


def test_a_single_example_is_no_pair():
    """Room for 10 and the lengths 9 and 5, once each: behind 90 comes 9, not one 5 in the place of two."""
    counts = np.zeros(101, int)
    counts[[90, 9, 5]] = 1
    assert (90, 9) in [lengths for lengths, _ in _longest_first(counts.tolist(), 8, 0)]


@pytest.mark.parametrize("seed", range(48))
def test_a_plan_with_pairs_holds_every_example(seed):
    """Whatever the lengths, also where such a plan is not the best one."""
    counts, most = histogram(seed)
    placed = np.zeros_like(counts)
    for lengths, count in _longest_first(counts.tolist(), most, 0):
        assert len(lengths) <= most
        assert sum(lengths) < len(counts)
        np.add.at(placed, list(lengths), count)
    np.testing.assert_array_equal(placed, counts)


def test_two_examples_fill_what_one_would_leave():
    """First fit needs a 16th row: 6 + 3 and 3 + 3 + 3 leave a place. 6 + 4, 6 + 2 + 2 and 3 + 3 + 2 + 2 leave none."""
    counts = np.zeros(11, int)
    counts[[6, 4, 3, 2]] = [10, 5, 10, 20]
    plan = plan_packs(counts, 10)
    assert {sum(lengths) for lengths, _ in plan} == {10}
    assert sum(count for _, count in plan) == 15
    assert first_fit_decreasing(np.repeat(np.arange(11), counts).tolist(), 10, 10) > 15


def test_short_examples_are_kept_for_the_rows_that_need_them():
    """Most examples are a little shorter than half a row, as in news: two of them and a short one fill a row."""
    lengths = np.random.default_rng(0).normal(53, 15, 8000).astype(int).clip(8, 128)
    rows = pack(lengths, capacity=128, max_examples=16, seed=0)
    assert lengths.sum() / (len(rows) * 128) > 0.98
    assert first_fit_decreasing(lengths.tolist(), 128, 16) > 1.01 * len(rows)


def test_decisions_do_not_grow_with_the_examples():
    """A thousand times the examples need hardly more kinds of rows, of which there are a few for each length."""
    counts = np.bincount(np.random.default_rng(0).normal(53, 15, 8000).astype(int).clip(8, 128), minlength=129)
    assert len(plan_packs(1000 * counts, 16)) < 1.2 * len(plan_packs(counts, 16)) < 3 * 128


def test_short_examples_leave_little_padding():
    """Rows of short sentences are at least 97 % full."""
    lengths = np.random.default_rng(0).gamma(2, 10, 20_000).astype(int).clip(4, 128)
    rows = pack(lengths, capacity=128, max_examples=16, seed=0)
    assert lengths.sum() / (len(rows) * 128) > 0.97


def test_the_seed_alone_decides():
    """Same seed: same rows. Another seed: another order of rows, other neighbours, the same number of rows."""
    lengths = np.random.default_rng(0).integers(1, 60, 500)
    one, again, other = (pack(lengths, capacity=64, max_examples=4, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.order, again.order)
    assert len(one) == len(other)
    assert (one.order != other.order).mean() > 0.9

    def neighbours(rows):
        return {tuple(sorted(row.tolist())) for row in np.split(rows.order, rows.row_starts[1:-1]) if len(row) > 1}

    assert len(neighbours(one) & neighbours(other)) < 0.2 * len(neighbours(one))


def test_rows_are_not_sorted_by_length():
    """The order of rows tells nothing about their lengths: a sorted stream would train on short text last."""
    lengths = np.random.default_rng(0).integers(1, 129, 4000)
    rows = pack(lengths, capacity=128, max_examples=8, seed=0)
    examples = np.diff(rows.row_starts)
    assert abs(np.corrcoef(np.arange(len(rows)), examples)[0, 1]) < 0.1


def test_one_example_a_row():
    """max_examples = 1 is a shuffled epoch without packing."""
    rows = pack(np.array([3, 1, 2]), capacity=8, max_examples=1, seed=0)
    assert len(rows) == 3
    np.testing.assert_array_equal(np.sort(rows.order), [0, 1, 2])


def test_equal_short_lengths_share_rows():
    """Seven examples of 10 tokens in rows of 32: three a row, and one alone."""
    counts = np.zeros(33, int)
    counts[10] = 7
    assert sorted(plan_packs(counts, 8)) == [((10,), 1), ((10, 10, 10), 2)]


def test_lengths_outside_the_row_are_refused():
    with pytest.raises(ValueError, match=r"lengths 1 to 9 .*capacity 8"):
        pack(np.array([1, 9]), capacity=8, max_examples=1, seed=0)


def test_no_examples_no_rows():
    for most in (1, 4):
        assert len(pack(np.zeros(0, int), capacity=8, max_examples=most, seed=0)) == 0
