"""Masked words: chooses positions, then replaces their tokens (Devlin et al. 2018, section 3.1, task 1).

Every random number is a function of (seed, epoch, example, position of the token in its example). So the masks of an
example do not depend on its row, its batch, or the process that builds it. Axis X: B * T, positions of all rows.
"""

from __future__ import annotations

import numpy as np

from bert.store.range_positions import range_positions
from bert.store.reader import Store

# SplitMix64 (Steele, Lea, Flood 2014): weyl increment and the two multipliers of the finaliser
_WEYL, _MULTIPLIER_1, _MULTIPLIER_2 = map(np.uint64, (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
# A sort key: number of the example in its row (14 bits), random (36), column (14).
_RANDOM_BITS, _COLUMN_BITS = np.uint64(36), np.uint64(14)
_COLUMN = np.uint64((1 << 14) - 1)
_LAST = np.uint64((1 << 64) - 1)  # sorts after all others
MAX_LENGTH = 1 << 14  # tokens in a row
STARTS, CONTINUES = np.uint8(1), np.uint8(2)  # a token starts a word, or continues the one before it


def scramble(x_N: np.ndarray) -> np.ndarray:
    """The SplitMix64 finaliser: uint64 [N] to uint64 [N], every output bit depends on every input bit."""
    x_N = x_N ^ (x_N >> np.uint64(30))
    for multiplier, shift in ((_MULTIPLIER_1, 27), (_MULTIPLIER_2, 31)):
        x_N *= multiplier
        x_N ^= x_N >> np.uint64(shift)
    return x_N


def example_keys(seed: int, epoch: int, example_N: np.ndarray) -> np.ndarray:
    """uint64 [N], one independent random stream for each example number of an epoch."""
    key = np.array([seed], np.uint64)
    for number in (np.array([epoch], np.uint64), np.asarray(example_N).astype(np.uint64)):
        key = scramble((scramble(key + _WEYL) + number) * _WEYL)
    return key


def count_masks(maskable_N: np.ndarray, rate: float) -> np.ndarray:
    """int64 [N]: how many of the maskable tokens become targets: the rounded rate, at least 1 where there is one."""
    wanted_N = np.floor(rate * np.asarray(maskable_N) + 0.5).astype(np.int64)
    return np.clip(wanted_N, np.minimum(maskable_N, 1), maskable_N)


def choose(
    key_N: np.ndarray, base_N: np.ndarray, nth_N: np.ndarray, position_BT: np.ndarray, maskable_BT: np.ndarray,
    *, rate: float, limit_N: np.ndarray, words_BT: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """(place int64 [M] in the flattened rows, ascending, choice bits uint64 [M], token bits uint64 [M]) of the targets.

    Args:
      key_N: uint64 [N], stream of each example (`example_keys`), row by row.
      base_N, nth_N: int64 [N], where each example begins in the flattened rows, and its number in its row, from 0.
      position_BT: int [B, T], place of a token in its example.
      maskable_BT: bool [B, T]; False is never chosen (specials, padding; [UNK] too, a target that teaches nothing).
      rate, limit_N: share of the maskable tokens of each example, and int [N], the most; a random subset remains.
      words_BT: uint8 [B, T], STARTS or CONTINUES a word, or neither. Words are then chosen whole or not at all: taken
        in random order, one that no longer fits is passed over, so an example has the wanted number or a few less (none
        where each of its words is longer than that number). None: each token is a word.

    The random bits are for `replace`; choice bits are equal within a word.
    """
    width = position_BT.shape[1]
    span_N = np.diff(base_N, append=position_BT.size)  # of the example and the padding behind it
    bits_X = position_BT.reshape(-1).astype(np.uint64)
    bits_X *= _WEYL
    bits_X += np.repeat(key_N, span_N)
    bits_X = scramble(bits_X)
    maskable_N = np.add.reduceat(maskable_BT.reshape(-1), base_N, dtype=np.int64)
    wanted_N = np.minimum(count_masks(maskable_N, rate), limit_N)
    # nth example | random | column in one number: sorting each row ranks the tokens of all its examples at once
    rank_X = (bits_X >> (np.uint64(64) - _RANDOM_BITS)) << _COLUMN_BITS
    rank_X |= np.repeat(nth_N.astype(np.uint64) << (_RANDOM_BITS + _COLUMN_BITS), span_N)
    rank_BT = rank_X.reshape(position_BT.shape)
    rank_BT |= np.arange(width, dtype=np.uint64)
    if words_BT is not None:
        place_M, lead_M = _choose_words(rank_BT, nth_N, maskable_BT, wanted_N, words_BT)
        return place_M, bits_X[lead_M], bits_X[place_M]
    rank_BT[~maskable_BT] = _LAST
    rank_BT.sort(axis=1)
    row_N, before_N = base_N // width, np.cumsum(maskable_N) - maskable_N
    first_N = np.arange(len(nth_N)) - nth_N
    nearest = rank_X[range_positions(row_N * width + before_N - before_N[first_N], wanted_N)]
    chosen_X = np.zeros(position_BT.size, bool)
    chosen_X[np.repeat(row_N * width, wanted_N) + (nearest & _COLUMN).astype(np.int64)] = True
    place_M = np.flatnonzero(chosen_X)
    return place_M, bits_X[place_M], bits_X[place_M]


def _choose_words(
    rank_BT: np.ndarray, nth_N: np.ndarray, maskable_BT: np.ndarray, wanted_N: np.ndarray, words_BT: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(place [M] ascending, place of the first token of its word [M]) of the tokens of the chosen words."""
    width = rank_BT.shape[1]
    words_X, maskable_X = words_BT.reshape(-1), maskable_BT.reshape(-1)
    start_W = np.flatnonzero(words_X == STARTS)
    size_W = np.add.reduceat(words_X > 0, start_W, dtype=np.int64)
    usable_W = np.add.reduceat(maskable_X, start_W, dtype=np.int64) == size_W
    ranked_BT = np.full(rank_BT.shape, _LAST)
    ranked_BT.reshape(-1)[start_W[usable_W]] = rank_BT.reshape(-1)[start_W[usable_W]]
    ranked_BT.sort(axis=1)
    row, column = np.nonzero(ranked_BT != _LAST)
    rank = ranked_BT[row, column]
    word_at_X = np.zeros(len(words_X), np.int64)
    word_at_X[start_W] = np.arange(len(start_W))
    word = word_at_X[row * width + (rank & _COLUMN).astype(np.int64)]
    first_of_row = np.flatnonzero(nth_N == 0)
    example = first_of_row[row] + (rank >> (_RANDOM_BITS + _COLUMN_BITS)).astype(np.int64)

    room_N, taken = wanted_N.copy(), [np.zeros(0, np.int64)]
    # Each pass takes, in random order, words up to the first that does not fit; what no longer fits leaves for good.
    while True:
        fits = size_W[word] <= room_N[example]
        word, example = word[fits], example[fits]
        if not len(word):
            break
        size = size_W[word]
        before = np.cumsum(size) - size
        heads = np.flatnonzero(np.diff(example, prepend=-1))  # first word left of each example
        before -= np.repeat(before[heads], np.diff(heads, append=len(word)))
        inside = before + size <= room_N[example]
        taken.append(word[inside])
        room_N -= np.bincount(example[inside], size[inside], len(room_N)).astype(np.int64)
        word, example = word[~inside], example[~inside]
    chosen_W = np.sort(np.concatenate(taken))
    return range_positions(start_W[chosen_W], size_W[chosen_W]), np.repeat(start_W[chosen_W], size_W[chosen_W])


def replace(
    id_M: np.ndarray, choice_M: np.ndarray, bits_M: np.ndarray,
    *, mask_id: int, replacement_ids: np.ndarray, mask_share: float, random_share: float,
) -> np.ndarray:  # fmt: skip
    """int32 [M], what stands at the places of `choose`: [MASK], a random token, or the token itself, id_M int32 [M].

    replacement_ids: int32 [R], the ids that a random replacement draws from, uniformly. BERT: 80, 10, 10 %.
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
    block, left = 1 << 20, most_tokens
    for shard in store.shards:
        for start in range(0, min(left, len(shard.tokens)), block):
            length = min(block, len(shard.tokens) - start, left)
            continues_T = store.read_continues(np.array([shard.token_start + start]), np.array([length]))
            words += int(np.count_nonzero(~continues_T))
            split_words += int(np.count_nonzero(continues_T[1:] & ~continues_T[:-1]))
            left -= length
    return split_words / words if words else 0.0
