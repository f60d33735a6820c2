"""What is shown of a long text in the report of a run: the stretches around what is marked in it. Axes: K token."""

from collections.abc import Sequence

import numpy as np


def kept(marked_K: np.ndarray, most: int, around: int) -> np.ndarray:
    """bool [K]: all tokens of a text of at most ``most``; else the first ``most`` of those that have a marked one at
    most ``around`` tokens away; where none is marked, the first ``most``."""
    if len(marked_K) <= most:
        return np.ones(len(marked_K), bool)
    reach = np.concatenate([[0], np.cumsum(marked_K)])
    place_K = np.arange(len(marked_K))
    first_K, stop_K = np.maximum(place_K - around, 0), np.minimum(place_K + around + 1, len(marked_K))
    near_K = reach[stop_K] > reach[first_K] if marked_K.any() else np.ones(len(marked_K), bool)
    return near_K & (np.cumsum(near_K) <= most)


def worst(*values: Sequence[float | None], each: int) -> list[int]:
    """The numbers of the rows with the largest value of one of several measures, ``each`` of each, ascending."""
    chosen: set[int] = set()
    for value_N in values:
        known_N = np.array([-np.inf if value is None else value for value in value_N], np.float64)
        order = np.argsort(-np.nan_to_num(known_N, nan=np.inf), kind="stable")[:each]
        chosen |= {int(i) for i in order if known_N[i] != -np.inf}
    return sorted(chosen)
