"""Packs several examples into a row, planned on the histogram of lengths (as in Krell et al. 2021, arXiv:2107.02027).

The plan is made from counts of lengths, not from examples, so its cost hardly depends on the number of examples. It
depends on the lengths only. The seed decides which example of a length is placed where, and the order of the rows.
Unlike in the paper, a row is finished before the next begins, and two examples are placed if the longest one alone
would leave too much room. That threshold is found by trial: if short examples are used up early, later rows lack them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np

from bert.store.range_positions import range_positions


@dataclasses.dataclass(frozen=True)
class PackedRows:
    """Row r holds the examples `order[row_starts[r]:row_starts[r + 1]]`, in this order."""

    row_starts: np.ndarray  # int64 [R + 1]
    order: np.ndarray  # int32 [N], each example once

    def __len__(self) -> int:
        return len(self.row_starts) - 1

    def rows(self) -> list[np.ndarray]:
        """The examples of each row."""
        return [self.order[a:b] for a, b in itertools.pairwise(self.row_starts)]


def pack(length_N: np.ndarray, *, capacity: int, max_examples: int, seed: int | Sequence[int]) -> PackedRows:
    """Rows of at most `max_examples` examples whose lengths, int [N], sum to at most `capacity`, in random order."""
    length_N = np.asarray(length_N)
    if len(length_N) and not 1 <= length_N.min() <= length_N.max() <= capacity:
        raise ValueError(f"lengths {length_N.min()} to {length_N.max()} must lie in 1 to the capacity {capacity}")
    rng = np.random.default_rng(seed)
    shuffled_N = rng.permutation(len(length_N)).astype(np.int32)
    if max_examples == 1:
        return PackedRows(np.arange(len(length_N) + 1), shuffled_N)
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
        return PackedRows(np.zeros(1, np.int64), shuffled_N)
    # The same rows in random order.
    order_N, size_R = np.concatenate(blocks), np.concatenate(sizes)
    permutation_R = rng.permutation(len(size_R))
    old_start_R, size_R = (np.cumsum(size_R) - size_R)[permutation_R], size_R[permutation_R]
    row_starts = np.concatenate([[0], np.cumsum(size_R)])
    return PackedRows(row_starts, order_N[range_positions(old_start_R, size_R)])


def plan_packs(count_by_length: np.ndarray, max_examples: int) -> list[tuple[tuple[int, ...], int]]:
    """[(lengths in a row, number of such rows)]; never more rows than first fit needs, the longest lengths first.

    count_by_length: int [capacity + 1], number of examples of each length.
    """
    counts = [int(count) for count in count_by_length]
    capacity = len(counts) - 1
    tokens = sum(length * count for length, count in enumerate(counts))
    fewest = max(-(-tokens // capacity), -(-sum(counts) // max_examples), sum(counts[capacity // 2 + 1 :]))
    best, best_rows = [], sum(counts) + 1
    # No pair gains `capacity`: that plan is first fit. More than a quarter of a row was best for none of our texts.
    for gain in (capacity, *range(capacity // 4, -1, -max(1, -(-capacity // 64)))):
        if best_rows > fewest:
            plan = _longest_first(counts, max_examples, gain)
            rows = sum(count for _, count in plan)
            if rows < best_rows:
                best, best_rows = plan, rows
    return best


def _longest_first(counts: list[int], max_examples: int, gain: int) -> list[tuple[tuple[int, ...], int]]:
    """The plan in which two examples take the place of the longest that has room if they fill over `gain` more."""
    left, capacity = counts.copy(), len(counts) - 1
    # Bit l of `there` and bit capacity - l of `mirrored` say that examples of length l are left, so that
    # `there & mirrored >> capacity - total` has the lengths that another one completes to the total.
    there = mirrored = 0
    for length in range(1, capacity + 1):
        if left[length]:
            there, mirrored = there | 1 << length, mirrored | 1 << capacity - length

    def remove(length: int, count: int) -> None:
        nonlocal there, mirrored
        left[length] -= count
        if count and not left[length]:
            there, mirrored = there ^ 1 << length, mirrored ^ 1 << capacity - length

    plan = []
    while there:
        row: list[int] = []
        room = capacity
        while len(row) < max_examples and (fitting := there & (2 << room) - 1):
            taken = longest = fitting.bit_length() - 1
            if row and len(row) + 2 <= max_examples:
                for total in range(min(room, 2 * longest), longest + gain, -1):
                    pair = there & mirrored >> capacity - total
                    if total % 2 == 0 and left[total // 2] == 1:  # no two of the same
                        pair &= ~(1 << total // 2)
                    if pair:
                        taken = pair.bit_length() - 1  # the longer one; the other is the longest that then has room
                        break
            row.append(taken)
            room -= taken
            remove(taken, 1)
        used = {length: row.count(length) for length in set(row)}
        more = min(left[length] // times for length, times in used.items())  # rows like this one
        for length, times in used.items():
            remove(length, more * times)
        plan.append((tuple(row), 1 + more))
    return plan
