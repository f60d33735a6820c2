"""Plans of batches: every row once, few shapes, never more rows at a time than allowed."""

import numpy as np
import pytest

from bert.data import padding


@pytest.mark.parametrize("batch_size", [1, 2, 7, 8, 20, 32])
@pytest.mark.parametrize("count", [0, 1, 3, 9, 100])
def test_every_row_is_planned_once_in_one_shape_a_bucket(count, batch_size):
    """Each length bucket has one shape, wide enough for its rows and not above the limits that were given."""
    tokens_N = np.random.default_rng(count).integers(2, 101, count).tolist()
    plan = padding.plan(tokens_N, 100, batch_size)
    assert sorted(i for chosen, _, _ in plan for i in chosen) == list(range(count))
    shapes = {}
    for chosen, length, size in plan:
        assert max(tokens_N[i] for i in chosen) <= length <= 100
        assert 1 <= len(chosen) <= size <= batch_size
        shapes.setdefault(length, set()).add(size)
    assert all(len(sizes) == 1 for sizes in shapes.values())


def test_lengths_come_from_a_short_list_that_ends_at_the_positions():
    assert [padding.bucket_length(n, 100) for n in (1, 16, 17, 96, 97, 100)] == [16, 16, 32, 96, 100, 100]
    assert padding.bucket_length(3, 8) == 8
    assert [padding.power_of_two(n) for n in (1, 2, 3, 4, 5)] == [1, 2, 4, 4, 8]
