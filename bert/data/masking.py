"""Masked words: choose positions, then decide what stands there (Devlin et al. 2018, section 3.1, task 1).

Every random number is a function of (seed, epoch, example, place of the token in its example), so that the masks of an
example depend neither on its row, nor on the batch, the host or the worker that builds it. All arrays are flat over the
tokens of many examples ("T" below); [CLS], [SEP] and padding are not among them, so they cannot be chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bert.text.store import Store

# SplitMix64 (Steele, Lea, Flood 2014): weyl increment and the two multipliers of the finaliser
_WEYL = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)

# One sort key holds example | random | place, so one plain sort ranks the tokens of all examples at once.
_PLACE_BITS, _RANDOM_BITS, _EXAMPLE_BITS = np.uint64(14), np.uint64(30), np.uint64(20)
MAX_PLACES = 1 << int(_PLACE_BITS)  # tokens in an example
MAX_EXAMPLES = 1 << int(_EXAMPLE_BITS)  # examples in one call
_LAST = np.uint64((1 << int(_RANDOM_BITS)) - 1)  # rank of what may not be chosen
_PLACE = np.uint64(MAX_PLACES - 1)


def scramble(x_N: np.ndarray) -> np.ndarray:
    """The SplitMix64 finaliser: uint64 [N] to uint64 [N], every output bit depends on every input bit."""
    x_N = x_N ^ (x_N >> np.uint64(30))
    x_N *= _MULTIPLIER_1
    x_N ^= x_N >> np.uint64(27)
    x_N *= _MULTIPLIER_2
    x_N ^= x_N >> np.uint64(31)
    return x_N


def example_keys(seed: int, epoch: int, example_N: np.ndarray) -> np.ndarray:
    """uint64 [N], one independent random stream for each example number of an epoch."""
    key = np.array([seed], np.uint64)
    for number in (np.array([epoch], np.uint64), np.asarray(example_N).astype(np.uint64)):
        key = scramble((scramble(key + _WEYL) + number) * _WEYL)
    return key


def token_bits(key_N: np.ndarray, length_N: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(bits uint64 [T], example int64 [T], place int64 [T]) for the tokens of N examples laid end to end."""
    example_T = np.repeat(np.arange(len(length_N)), length_N)
    place_T = np.arange(len(example_T)) - (np.cumsum(length_N) - length_N)[example_T]
    bits_T = (place_T + 1).astype(np.uint64)
    bits_T *= _WEYL
    bits_T += key_N[example_T]
    return scramble(bits_T), example_T, place_T


def count_masks(maskable_N: np.ndarray, rate: float) -> np.ndarray:
    """int64 [N]: how many of the maskable tokens become targets: the rounded rate, at least 1 where there is one."""
    wanted_N = np.floor(rate * np.asarray(maskable_N) + 0.5).astype(np.int64)
    return np.minimum(np.maximum(wanted_N, 1), maskable_N)


def choose(
    key_N: np.ndarray,
    length_N: np.ndarray,
    maskable_T: np.ndarray,
    *,
    rate: float,
    limit_N: np.ndarray,
    word_start_T: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(index int64 [M], choice bits uint64 [M], token bits uint64 [M]) of the chosen tokens, index ascending.

    Args:
      key_N: uint64 [N] from `example_keys`.
      length_N: int [N], tokens of each example in the flat arrays, 1 to 16384; N at most 2**20.
      maskable_T: bool [T]; False is never chosen (special tokens in the text; [UNK], which teaches nothing).
      rate: share of the maskable tokens of each example.
      limit_N: int [N], the most targets of each example; where it is below the rate, a random subset remains.
      word_start_T: bool [T], True where a word (or a segment) starts: words are chosen whole or not at all. Taken in
        random order, a word that no longer fits is passed over, so an example has the wanted number or just fewer
        (none where each of its words is longer than that number). None: each token is its own word.

    The two random numbers are for `replace`: choice bits are equal for all tokens of a word.
    """
    bits_T, example_T, place_T = token_bits(key_N, length_N)
    rank_T = np.minimum(bits_T >> (np.uint64(64) - _RANDOM_BITS), _LAST - np.uint64(1))
    rank_T[~maskable_T] = _LAST
    rank_T <<= _PLACE_BITS
    rank_T |= place_T.astype(np.uint64)
    rank_T |= example_T.astype(np.uint64) << (_PLACE_BITS + _RANDOM_BITS)
    maskable_N = np.bincount(example_T[maskable_T], minlength=len(length_N))
    wanted_N = np.minimum(count_masks(maskable_N, rate), limit_N)
    start_N = np.cumsum(length_N) - length_N
    if word_start_T is not None:
        index_M, lead_M = _choose_words(rank_T, start_N, maskable_T, wanted_N, word_start_T)
        return index_M, bits_T[lead_M], bits_T[index_M]
    rank_T.sort()
    example_M = np.repeat(np.arange(len(length_N)), wanted_N)
    nth_M = np.arange(len(example_M)) - (np.cumsum(wanted_N) - wanted_N)[example_M]
    index_M = start_N[example_M] + (rank_T[start_N[example_M] + nth_M] & _PLACE).astype(np.int64)
    index_M.sort()
    return index_M, bits_T[index_M], bits_T[index_M]


def _choose_words(rank_T, start_N, maskable_T, wanted_N, word_start_T) -> tuple[np.ndarray, np.ndarray]:
    """(index [M] ascending, index of the first token of its word [M]) of the tokens of the chosen words."""
    first_W = np.flatnonzero(word_start_T)
    size_W = np.diff(np.append(first_W, len(rank_T)))
    usable_W = np.logical_and.reduceat(maskable_T, first_W) if len(first_W) else np.zeros(0, bool)
    rank_W = np.sort(rank_T[first_W[usable_W]])
    example_W = (rank_W >> (_PLACE_BITS + _RANDOM_BITS)).astype(np.int64)
    word_W = np.searchsorted(first_W, start_N[example_W] + (rank_W & _PLACE).astype(np.int64))
    room_N = wanted_N.copy()
    taken = []
    # Each pass takes, in random order, words up to the first that does not fit; what no longer fits leaves for good.
    while True:
        fits_W = size_W[word_W] <= room_N[example_W]
        word_W, example_W = word_W[fits_W], example_W[fits_W]
        if not len(word_W):
            break
        total_W = np.cumsum(size_W[word_W])
        head_W = np.searchsorted(example_W, example_W)  # first candidate of the same example
        inside_W = total_W - total_W[head_W] + size_W[word_W[head_W]] <= room_N[example_W]
        taken.append(word_W[inside_W])
        room_N -= np.bincount(example_W[inside_W], size_W[word_W[inside_W]], len(room_N)).astype(np.int64)
        word_W, example_W = word_W[~inside_W], example_W[~inside_W]
    chosen_K = np.sort(np.concatenate(taken)) if taken else np.zeros(0, np.int64)
    size_K = size_W[chosen_K]
    lead_M = np.repeat(first_W[chosen_K], size_K)
    return lead_M + np.arange(len(lead_M)) - np.repeat(np.cumsum(size_K) - size_K, size_K), lead_M


def replace(
    id_M: np.ndarray,
    choice_M: np.ndarray,
    bits_M: np.ndarray,
    *,
    mask_id: int,
    replacement_ids: np.ndarray,
    mask_share: float,
    random_share: float,
) -> np.ndarray:
    """int32 [M], what stands at the chosen places: [MASK], a random token, or the token itself (80, 10, 10 % in BERT).

    Args:
      id_M: int32 [M], the tokens chosen.
      choice_M, bits_M: uint64 [M] from `choose`.
      replacement_ids: int32 [R], the ids that a random replacement draws from, uniformly.
    """
    share_M = (scramble(choice_M ^ _WEYL) >> np.uint64(40)).astype(np.float64) * 2.0**-24
    new_M = np.where(share_M < mask_share, np.int32(mask_id), id_M)
    random_M = np.flatnonzero((share_M >= mask_share) & (share_M < mask_share + random_share))
    draw = scramble(bits_M[random_M] ^ _MULTIPLIER_1) >> np.uint64(32)
    new_M[random_M] = replacement_ids[(draw * np.uint64(len(replacement_ids)) >> np.uint64(32)).astype(np.int64)]
    return new_M


def share_of_split_words(store: Store, *, most_tokens: int = 1 << 24) -> float:
    """Share of the words with two pieces or more, over at most `most_tokens` tokens from the start of the shards.

    0.0 means that choosing whole words equals choosing tokens (Chinese without word boundaries): say so to the user.
    """
    words = split_words = 0
    block = 1 << 20
    left = most_tokens
    for shard in store.shards:
        for start in range(0, min(left, len(shard.tokens)), block):
            length = min(block, len(shard.tokens) - start, left)
            continues_T = store.read_continues(np.array([shard.token_start + start]), np.array([length]))
            words += int(np.count_nonzero(~continues_T))
            split_words += int(np.count_nonzero(continues_T[1:] & ~continues_T[:-1]))
            left -= length
    return split_words / words if words else 0.0
