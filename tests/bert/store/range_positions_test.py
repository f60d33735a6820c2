"""Positions in ranges of an array."""

import numpy as np

from bert.store.range_positions import range_positions


def test_every_position_of_every_range_in_the_order_given():
    """Ranges may overlap, be empty, and go back; nothing gives nothing."""
    position_N = range_positions(np.array([3, 9, 0, 4]), np.array([2, 0, 3, 1]))
    assert position_N.dtype == np.int64
    assert position_N.tolist() == [3, 4, 0, 1, 2, 4]
    assert range_positions(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []
