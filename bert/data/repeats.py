"""Tells whether segment B follows segment A anywhere in the store; such a pair is never labelled random.

Copies, templates and logs repeat sentences in many documents. Repeated sentences are found once per store, by hashes;
most corpora have few. The tokens of a pair are compared only if sentences on both sides repeat.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bert.store.reader import Store

# Tokens before and behind a boundary that are compared; of shorter segments all are, and at least the whole sentence.
COMPARED = (32, 8)
_HASHED = (8, 4)  # tokens of the sentence before a boundary, and of the one behind it, in the hashes
_BLOCK = 1 << 18  # boundaries hashed together
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

Read = Callable[[np.ndarray], np.ndarray]  # positions in the store -> tokens
Lengths = np.ndarray | int


class _Repeats(NamedTuple):
    """Ascending positions in a store, int64, each with a hash, uint64."""

    ends: np.ndarray  # ends of sentences that end as another does
    end_keys: np.ndarray
    starts: np.ndarray  # beginnings of sentences that begin as another does
    start_keys: np.ndarray
    both: np.ndarray  # where one ends and one begins
    both_keys: np.ndarray


_of_store: weakref.WeakKeyDictionary[Store, _Repeats] = weakref.WeakKeyDictionary()


def follows_elsewhere(
    store: Store, a_end_K: np.ndarray, a_length_K: np.ndarray, b_start_K: np.ndarray, b_length_K: np.ndarray
) -> np.ndarray:
    """bool [K]; True where segment B stands behind segment A inside a document of the store.

    Only an A that ends with a sentence and a B that begins with one are searched for, and this sentence as a whole: a
    cut may leave only a full stop, which stands before many others.

    a_end_K, b_start_K: int64, positions behind the last token of each A, and of the first of each B; lengths of 1 up.

    Memory: for the first call on a store 40 bytes a sentence, afterwards as much for each that repeats.
    """
    repeats = _of_store.get(store) or _of_store.setdefault(store, _find_repeats(store))
    end_K = _keys_at(repeats.ends, repeats.end_keys, a_end_K)
    start_K = _keys_at(repeats.starts, repeats.start_keys, b_start_K)
    # The text may stand where this B stands, where this A stands, or at a third place.
    key_K, known = end_K * _FACTOR + start_K, np.zeros(len(a_end_K), bool)
    for hash_K, positions, keys, other_K in (
        (end_K, repeats.ends, repeats.end_keys, b_start_K),
        (start_K, repeats.starts, repeats.start_keys, a_end_K),
    ):
        several = np.flatnonzero(hash_K)
        known[several] |= hash_K[several] == _keys_at(positions, keys, other_K[several])
    several = np.flatnonzero((end_K != 0) & (start_K != 0))
    known[several] |= _are_among(key_K[several], repeats.both_keys)
    maybe = np.flatnonzero(known)
    follows_K = np.zeros(len(a_end_K), bool)
    if not len(maybe):
        return follows_K

    def read(position_N: np.ndarray) -> np.ndarray:
        """Positions beyond the text give any token of it."""
        return store.read(np.clip(position_N, 0, store.num_tokens - 1), np.ones(len(position_N), np.int64))

    a_end, b_start = a_end_K[maybe], b_start_K[maybe]
    sentence_start, _ = _bounds(store, a_end - 1, "sentence_ends")
    _, sentence_end = _bounds(store, b_start, "sentence_ends")
    before = np.minimum(np.maximum(a_length_K[maybe], a_end - sentence_start), COMPARED[0])
    behind = np.minimum(np.maximum(b_length_K[maybe], sentence_end - b_start), COMPARED[1])
    places = np.concatenate([repeats.both[_are_among(repeats.both_keys, np.sort(key_K[maybe]))], a_end, b_start])
    first, last = _bounds(store, places, "document_ends")
    for a, b in sorted(set(zip(before.tolist(), behind.tolist(), strict=True))):
        inside = places[(places - first >= a) & (last - places >= b)]
        chosen = (before == a) & (behind == b)
        here = _hash(read, a_end[chosen], a, b_start[chosen], b, (a, b))
        follows_K[maybe[chosen]] = _are_among(here, np.sort(_hash(read, inside, a, inside, b, (a, b))))
    return follows_K


def _find_repeats(store: Store) -> _Repeats:
    (ends, end_keys), (starts, start_keys) = _repeated(store, at_end=True), _repeated(store, at_end=False)
    both = ends[_are_among(ends, starts)]
    keys = _keys_at(ends, end_keys, both) * _FACTOR + _keys_at(starts, start_keys, both)
    order = np.argsort(keys)
    return _Repeats(ends, end_keys, starts, start_keys, both[order], keys[order])


def _keys_at(positions: np.ndarray, keys: np.ndarray, wanted_K: np.ndarray) -> np.ndarray:
    """uint64 [K], the keys of the wanted positions, 0 for those that are none of the ascending ones."""
    if not len(positions):
        return np.zeros(len(wanted_K), np.uint64)
    place_K = np.minimum(np.searchsorted(positions, wanted_K), len(positions) - 1)
    return np.where(positions[place_K] == wanted_K, keys[place_K], np.uint64(0))


def _repeated(store: Store, *, at_end: bool) -> tuple[np.ndarray, np.ndarray]:
    """int64, uint64: ascending ends (or beginnings) of sentences whose hash another one has, too, and the hashes."""
    positions, hashes = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
    for shard in store.shards:
        tokens = np.asarray(shard.tokens)

        def read(position_N: np.ndarray, tokens: np.ndarray = tokens, start: int = shard.token_start) -> np.ndarray:
            return tokens.take(position_N - start, mode="clip")

        for start in range(0, len(shard.sentence_ends), _BLOCK):
            ends = np.asarray(shard.sentence_ends[start : start + _BLOCK])
            bounds = np.concatenate([shard.sentence_ends[start - 1 : start] if start else [0], ends])
            lengths = np.diff(bounds)
            position = shard.token_start + (bounds[1:] if at_end else bounds[:-1])
            before, behind = (lengths, 0) if at_end else (0, lengths)
            positions.append(position)
            hashes.append(_hash(read, position, before, position, behind, _HASHED))
    position_N, hash_N = np.concatenate(positions), np.concatenate(hashes)
    ordered = np.sort(hash_N)
    several = _are_among(hash_N, np.unique(ordered[1:][ordered[1:] == ordered[:-1]]))
    return position_N[several], hash_N[several]


def _hash(
    read: Read, end_N: np.ndarray, before: Lengths, start_N: np.ndarray, behind: Lengths, widths: tuple[int, int]
) -> np.ndarray:
    """uint64 [N]; of the `before` tokens that end at each end and the `behind` from each start on, up to `widths`."""
    hash_N = np.zeros(len(end_N), np.uint64)
    for position_N, count, width, step in ((end_N - 1, before, widths[0], -1), (start_N, behind, widths[1], 1)):
        for number in range(width if np.max(count, initial=0) else 0):
            token_N = read(position_N + step * number).astype(np.uint64)
            token_N += np.uint64(1)
            token_N *= np.less(number, count)
            hash_N += token_N
            hash_N *= _FACTOR
    return hash_N


def _are_among(values: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """bool, of each value; np.isin takes ten times as long."""
    if not len(ordered):
        return np.zeros(len(values), bool)
    nearest = ordered.take(np.searchsorted(ordered, values), mode="clip")
    return np.asarray(nearest == values)


def _bounds(store: Store, position_N: np.ndarray, ends_name: str) -> tuple[np.ndarray, np.ndarray]:
    """int64 [N] each: where the sentences or documents with these tokens begin and end."""
    first_N, last_N = np.zeros_like(position_N), np.zeros_like(position_N)
    for shard in store.shards:
        ends, local_N = getattr(shard, ends_name), position_N - shard.token_start
        here = np.flatnonzero((local_N >= 0) & (local_N < len(shard.tokens)))
        number = np.searchsorted(ends, local_N[here], side="right")
        first_N[here] = shard.token_start + np.where(number > 0, ends[np.maximum(number - 1, 0)], 0)
        last_N[here] = shard.token_start + ends[number]
    return first_N, last_N
