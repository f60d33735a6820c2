"""Rows of examples to the arrays of a batch; `batches.py` says what each array means. No random state, no order."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert.data import masking
from bert.data.pairs import NO_LABEL, Examples


@dataclasses.dataclass(frozen=True)
class Shape:
    """Sizes of a batch's rows: tokens T, examples E, masked positions P."""

    tokens: int
    examples: int
    masks: int


@dataclasses.dataclass(frozen=True)
class Masks:
    """How words are masked, and with which ids; `masking.py` explains each value."""

    rate: float
    mask_share: float
    random_share: float
    whole_words: bool
    mask_id: int
    replacement_ids: np.ndarray
    maskable_V: np.ndarray


def empty(num_rows: int, shape: Shape, pad_id: int) -> dict[str, np.ndarray]:
    """A batch of rows without examples."""
    wide, few, masks = (num_rows, shape.tokens), (num_rows, shape.examples), (num_rows, shape.masks)
    return {
        "token_ids": np.full(wide, pad_id, np.int32),
        "type_ids": np.zeros(wide, np.int32),
        "position_ids": np.zeros(wide, np.int32),
        "example_ids": np.zeros(wide, np.int32),
        "cls_positions": np.zeros(few, np.int32),
        "masked_positions": np.zeros(masks, np.int32),
        "masked_ids": np.zeros(masks, np.int32),
        "masked_weights": np.zeros(masks, np.float32),
        "next_sentence_labels": np.zeros(few, np.int32),
        "next_sentence_weights": np.zeros(few, np.float32),
    }


def fill(batch, store, examples: Examples, chosen_N, row_N, key_N, limit_N, masks: Masks) -> None:
    """Writes examples into the rows of an empty batch.

    Args:
      batch: from `empty`; changed in place.
      chosen_N: int [N], numbers of the examples, those of a row one after the other.
      row_N: int [N], the row of each, ascending.
      key_N: uint64 [N], random stream of each example (`masking.example_keys`).
      limit_N: int [N], the most masked positions of each example.
    """
    width = batch["token_ids"].shape[1]
    a_length, b_length = examples.a_length[chosen_N].astype(np.int64), examples.b_length[chosen_N].astype(np.int64)
    length_N = a_length + b_length + (b_length > 0) + 2
    end_N = np.cumsum(length_N)
    first_N = np.searchsorted(row_N, row_N)  # first example of the same row
    offset_N = end_N - length_N - (end_N - length_N)[first_N]
    base_N = row_N * width + offset_N  # place of [CLS] in the flat batch

    nth_N = np.arange(len(row_N)) - first_N
    batch["cls_positions"][row_N, nth_N] = offset_N
    label_N = examples.label[chosen_N]
    batch["next_sentence_labels"][row_N, nth_N] = np.where(label_N == NO_LABEL, 0, label_N)
    batch["next_sentence_weights"][row_N, nth_N] = label_N != NO_LABEL

    place_S = _ranges(base_N, length_N)
    batch["example_ids"].reshape(-1)[place_S] = np.repeat(nth_N + 1, length_N)
    batch["position_ids"].reshape(-1)[place_S] = _ranges(np.zeros_like(length_N), length_N)
    paired_N = b_length > 0
    after_a_N = base_N + a_length + 2
    batch["type_ids"].reshape(-1)[_ranges(after_a_N[paired_N], b_length[paired_N] + 1)] = 1

    # segments in the order A, B, A, B, ...; those of length 0 hold nothing
    segment_length = np.stack([a_length, b_length], axis=1).reshape(-1)
    segment_start = np.stack([examples.a_start[chosen_N], examples.b_start[chosen_N]], axis=1).reshape(-1)
    place_T = _ranges(np.stack([base_N + 1, after_a_N], axis=1).reshape(-1), segment_length)
    used = segment_length > 0
    ids_T = store.read(segment_start[used], segment_length[used])
    flat = batch["token_ids"].reshape(-1)
    tokenizer = store.tokenizer
    flat[base_N] = tokenizer.cls_id
    flat[after_a_N - 1] = tokenizer.sep_id
    flat[base_N + length_N - 1] = tokenizer.sep_id

    word_start_T = None
    if masks.whole_words:
        word_start_T = ~store.read_continues(segment_start[used], segment_length[used])
        segment_end = np.cumsum(segment_length[used])
        word_start_T[segment_end - segment_length[used]] = True  # a part of a word is a word of its own here
    index_M, choice_M, bits_M = masking.choose(
        key_N, a_length + b_length, masks.maskable_V[ids_T], rate=masks.rate, limit_N=limit_N, word_start_T=word_start_T
    )
    place_M, id_M = place_T[index_M], ids_T[index_M]
    ids_T[index_M] = masking.replace(
        id_M,
        choice_M,
        bits_M,
        mask_id=masks.mask_id,
        replacement_ids=masks.replacement_ids,
        mask_share=masks.mask_share,
        random_share=masks.random_share,
    )
    flat[place_T] = ids_T
    row_M, position_M = np.divmod(place_M, width)
    slot_M = np.arange(len(row_M)) - np.searchsorted(row_M, row_M)
    batch["masked_positions"][row_M, slot_M] = position_M
    batch["masked_ids"][row_M, slot_M] = id_M
    batch["masked_weights"][row_M, slot_M] = 1.0


def _ranges(start_N: np.ndarray, length_N: np.ndarray) -> np.ndarray:
    """int64 [sum of lengths], start, start + 1, ... of each range, one range after the other."""
    return np.arange(int(length_N.sum())) + np.repeat(start_N - (np.cumsum(length_N) - length_N), length_N)
