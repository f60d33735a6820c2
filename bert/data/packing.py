"""Several examples in one row: longest-pack-first over the histogram of lengths (Krell et al. 2021, arXiv:2107.02027).

The plan is made from counts of lengths, not from examples, so ten million examples take as many decisions as ten
thousand. It depends on the lengths alone; which example of a length goes where, and the order of the rows, come from
the seed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np


@dataclasses.dataclass(frozen=True)
class Rows:
    """Row r holds the examples `order[row_starts[r]:row_starts[r + 1]]`, in this order.

    row_starts: int64 [R + 1]; order: int32 [N], each example once.
    """

    row_starts: np.ndarray
    order: np.ndarray

    def __len__(self) -> int:
        return len(self.row_starts) - 1


def pack(length_N: np.ndarray, *, capacity: int, max_examples: int, seed: int | Sequence[int]) -> Rows:
    """Rows of at most `max_examples` examples whose lengths sum to at most `capacity`, in random order.

    Args:
      length_N: int [N], 1 to capacity (tokens with [CLS] and [SEP]).
      max_examples: 1 puts each example into a row of its own.
      seed: what `numpy.random.default_rng` takes; no other source of randomness.
    Raises ValueError where a length is outside 1 to capacity.
    """
    length_N = np.asarray(length_N)
    if len(length_N) and not 1 <= length_N.min() <= length_N.max() <= capacity:
        raise ValueError(f"lengths {length_N.min()} to {length_N.max()} must lie in 1 to the capacity {capacity}")
    rng = np.random.default_rng(seed)
    shuffled_N = rng.permutation(len(length_N)).astype(np.int32)
    if max_examples == 1:
        return Rows(np.arange(len(length_N) + 1), shuffled_N)
    # uint16 sorts by radix, 8 times faster than int64
    small_N = length_N.astype(np.uint16 if capacity < 1 << 16 else np.int64)
    by_length_N = shuffled_N[np.argsort(small_N[shuffled_N], kind="stable")]
    count_by_length = np.bincount(length_N, minlength=capacity + 1)
    next_by_length = np.cumsum(count_by_length) - count_by_length

    blocks, sizes = [], []
    for lengths, count in plan_packs(count_by_length, max_examples):
        block = np.empty((count, len(lengths)), np.int32)
        for column, length in enumerate(lengths):
            start = next_by_length[length]
            block[:, column] = by_length_N[start : start + count]
            next_by_length[length] += count
        blocks.append(block.reshape(-1))
        sizes.append(np.full(count, len(lengths)))
    if not blocks:
        return Rows(np.zeros(1, np.int64), shuffled_N)
    return _shuffle(np.concatenate(blocks), np.concatenate(sizes), rng)


def _shuffle(order_N: np.ndarray, size_R: np.ndarray, rng: np.random.Generator) -> Rows:
    """The same rows in random order."""
    permutation_R = rng.permutation(len(size_R))
    old_start_R = (np.cumsum(size_R) - size_R)[permutation_R]
    size_R = size_R[permutation_R]
    row_starts = np.concatenate([[0], np.cumsum(size_R)])
    return Rows(row_starts, order_N[np.arange(len(order_N)) + np.repeat(old_start_R - row_starts[:-1], size_R)])


def plan_packs(count_by_length: np.ndarray, max_examples: int) -> list[tuple[tuple[int, ...], int]]:
    """[(lengths in a row, number of such rows)], longest lengths placed first, each into the fullest row that has room.

    Args:
      count_by_length: int [capacity + 1], number of examples of each length; the capacity is its last index.
    """
    capacity = len(count_by_length) - 1
    done: list[tuple[tuple[int, ...], int]] = []
    open_by_room: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in range(capacity + 1)]
    rooms_in_use: set[int] = set()

    def put(lengths: tuple[int, ...], room: int, count: int) -> None:
        if not count:
            return
        if room == 0 or len(lengths) == max_examples:
            done.append((lengths, count))
        else:
            open_by_room[room].append((lengths, count))
            rooms_in_use.add(room)

    for length in range(capacity, 0, -1):
        left = int(count_by_length[length])
        while left:
            room = min((room for room in rooms_in_use if room >= length), default=capacity)
            if room in rooms_in_use:
                lengths, rows = open_by_room[room].pop()
                if not open_by_room[room]:
                    rooms_in_use.remove(room)
            else:
                lengths, rows = (), left
            repeat = min(room // length, max_examples - len(lengths), left)
            count = min(rows, left // repeat)
            put(lengths + (length,) * repeat, room - length * repeat, count)
            if lengths:  # rows of this kind that stay as they are
                put(lengths, room, rows - count)
            left -= count * repeat
    return done + [pack for packs in open_by_room for pack in packs]
