"""Chooses the pairs of examples that swap segment B, so that each gets a B from another document.

Partners have a B of equal length if the corpus is large enough, so the length of an example does not reveal its label.
No swap creates a pair that appears anywhere in the corpus (repeats.py).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from bert.data.repeats import COMPARED, follows_elsewhere
from bert.store.reader import Store

# A foreign B whose first tokens, COMPARED[1] of them, equal those of the true one may be a copy: not used.
_SEARCHES = 4  # for other partners, where some would be true pairs
_BLOCK = 1 << 18  # pairs compared together


class Segments(NamedTuple):
    """Segments A and B of N examples, as ranges of positions in the store."""

    a_start: np.ndarray  # int64 [N]
    a_length: np.ndarray  # int32 [N]
    b_start: np.ndarray  # int64 [N]
    b_length: np.ndarray  # int32 [N]; 0: no B

    def take(self, chosen: np.ndarray) -> Segments:
        return Segments(*(array[chosen] for array in self))


Pairs = tuple[np.ndarray, np.ndarray]  # left int64 [K], right int64 [K]: indices of the two examples of each pair


def find(
    store: Store, segments: Segments, document_M: np.ndarray, wanted: int, room: int, rng: np.random.Generator
) -> Pairs:
    """At most ``wanted`` disjoint pairs of examples, of at most ``room`` tokens of text, whose B can be exchanged.

    document_M: int [M], ascending: the document of each example.
    """
    pairs = []
    is_free = np.ones(len(document_M), bool)
    for _ in range(_SEARCHES):
        left, right = _similar(store, segments, document_M, wanted, room, rng, np.flatnonzero(is_free))
        to, source = np.concatenate([left, right]), np.concatenate([right, left])
        a_length = segments.a_length[to]
        length = np.minimum(segments.b_length[source], room - a_length)
        wrong = follows_elsewhere(store, segments.a_start[to] + a_length, a_length, segments.b_start[source], length)
        good = ~wrong.reshape(2, -1).any(axis=0)
        pairs.append((left[good], right[good]))
        if good.all():
            break
        wanted -= int(np.count_nonzero(good))
        is_free[left[good]] = is_free[right[good]] = False
    return _joined(pairs)


def _similar(
    store: Store, segments: Segments, document_M: np.ndarray, wanted: int, room: int, rng: np.random.Generator,
    free: np.ndarray,
) -> Pairs:  # fmt: skip
    """At most `wanted` pairs of the examples `free` of different documents.

    First among B of equal length, then of nearly equal length, as long as both results fit the room. Only where a small
    corpus offers too few of these may a B be longer than its new place.
    """
    _, a_length, _, b_length = segments
    pairs = []
    key_D = rng.permutation(int(document_M[-1]) + 1) if len(document_M) else document_M
    widths = [1 << power for power in range(room.bit_length() + 1)]
    for may_cut, width in itertools.product((False, True), widths):
        if wanted <= 0 or len(free) < 2:
            break
        left, right = _pair_up(free, b_length[free] // width, key_D[document_M[free]])
        good = document_M[left] != document_M[right]
        if not may_cut:
            good &= (a_length[left] + b_length[right] <= room) & (a_length[right] + b_length[left] <= room)
        order = rng.permutation(np.flatnonzero(good))
        left, right = _without_copies(store, segments, left[order], right[order], wanted)
        pairs.append((left, right))
        wanted -= len(left)
        taken = np.zeros(len(b_length), bool)
        taken[left] = taken[right] = True
        free = free[~taken[free]]
    return _joined(pairs)


def _pair_up(index_M: np.ndarray, bucket_M: np.ndarray, document_M: np.ndarray) -> Pairs:
    """Disjoint pairs inside each bucket.

    Sorted by document, each takes the one half a bucket further on: the same document only where it fills over half.
    """
    key_M = bucket_M.astype(np.int64) * (int(document_M.max()) + 1) + document_M
    order = np.argsort(key_M, kind="stable")
    index_M, bucket_M = index_M[order], bucket_M[order]
    starts = np.flatnonzero(np.diff(bucket_M, prepend=-1))
    sizes = np.diff(np.append(starts, len(bucket_M)))
    nth_M = np.arange(len(bucket_M)) - np.repeat(starts, sizes)
    half_M = np.repeat(sizes // 2, sizes)
    left = np.flatnonzero(nth_M < half_M)
    return index_M[left], index_M[left + half_M[left]]


def _without_copies(store: Store, segments: Segments, left: np.ndarray, right: np.ndarray, wanted: int) -> Pairs:
    """The first `wanted` pairs whose B differ in their first tokens."""
    _, _, b_start, b_length = segments
    pairs = []
    for start in range(0, len(left), _BLOCK):
        if wanted <= 0:
            break
        a, b = left[start : start + _BLOCK], right[start : start + _BLOCK]
        ones = np.ones(len(a), np.int64)
        keep = store.read(b_start[a], ones) != store.read(b_start[b], ones)
        same = np.flatnonzero(~keep)  # few: only these are read further
        if len(same):
            length = np.minimum(np.minimum(b_length[a[same]], b_length[b[same]]), COMPARED[1])
            differs = store.read(b_start[a[same]], length) != store.read(b_start[b[same]], length)
            keep[same] = np.logical_or.reduceat(differs, np.cumsum(length) - length)
        keep &= np.cumsum(keep) <= wanted
        pairs.append((a[keep], b[keep]))
        wanted -= int(np.count_nonzero(keep))
    return _joined(pairs)


def _joined(pairs: list[Pairs]) -> Pairs:
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *(left for left, _ in pairs)]), np.concatenate(
        [empty, *(right for _, right in pairs)]
    )
