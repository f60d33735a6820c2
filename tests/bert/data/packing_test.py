"""Rows of several examples: each example once, no row too full, little padding."""

import numpy as np
import pytest

from bert.data.packing import pack, plan_packs


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


def first_fit_decreasing(lengths, capacity):
    rooms = []
    for length in sorted(lengths, reverse=True):
        for i, room in enumerate(rooms):
            if room >= length:
                rooms[i] -= length
                break
        else:
            rooms.append(capacity - length)
    return len(rooms)


def test_as_few_rows_as_first_fit():
    """The plan by counts needs hardly more rows than placing every example by itself, longest first."""
    for seed in range(10):
        lengths = np.random.default_rng(seed).gamma(2, 15, 2000).astype(int).clip(1, 128)
        rows = pack(lengths, capacity=128, max_examples=128, seed=0)
        assert len(rows) <= 1.01 * first_fit_decreasing(lengths.tolist(), 128) + 1


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


def test_an_example_goes_into_the_fullest_row_with_room():
    """6 + 4 and 5 + 3 + 2 fill two rows of 10; into the emptiest row first, there would be three."""
    assert len(pack(np.array([2, 3, 4, 5, 6]), capacity=10, max_examples=5, seed=0)) == 2


def test_lengths_outside_the_row_are_refused():
    with pytest.raises(ValueError, match="lengths 1 to 9 must lie in 1 to the capacity 8"):
        pack(np.array([1, 9]), capacity=8, max_examples=1, seed=0)


def test_no_examples_no_rows():
    for most in (1, 4):
        assert len(pack(np.zeros(0, int), capacity=8, max_examples=most, seed=0)) == 0
