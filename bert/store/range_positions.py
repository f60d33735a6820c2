"""Positions in ranges of an array. NumPy only."""

import numpy as np


def range_positions(start_N: np.ndarray, length_N: np.ndarray) -> np.ndarray:
    """int64 [sum of lengths]: start, start + 1, ... of each range, one range after the other."""
    place_N = np.cumsum(length_N) - length_N  # where each range begins in the result
    return np.repeat(start_N - place_N, length_N) + np.arange(int(length_N.sum()))
