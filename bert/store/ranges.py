"""Ranges of positions, as documents, sentences and words have them."""

import numpy as np


def positions(start_N: np.ndarray, length_N: np.ndarray) -> np.ndarray:
    """int64 [sum of lengths]: start, start + 1, ... of each range, one range after the other."""
    begins_N = np.cumsum(length_N) - length_N  # where each range begins in the result
    return np.repeat(start_N - begins_N, length_N) + np.arange(int(length_N.sum()))
