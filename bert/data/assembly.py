"""Rows of examples to the arrays of a batch; `batches.py` says what each array means. No order, no random state."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert.data import masking
from bert.data.pairs import NO_LABEL, ExampleRanges
from bert.data.settings import BatchSettings
from bert.store.reader import Store, range_positions
from bert.tokenizer.tokenizer import Template, Tokenizer
from bert.types import HostBatch


@dataclasses.dataclass(frozen=True)
class RowLayout:
    """Where N examples stand in R rows; arrays are int64 [N], row by row."""

    nth: np.ndarray  # number in its row, from 0
    base: np.ndarray  # place of its first token in the flattened rows
    a: np.ndarray  # tokens of segment A, without special ones
    b: np.ndarray
    length: np.ndarray  # tokens with the special ones
    pad: np.ndarray  # empty places between it and the next example


def lay_out(examples: ExampleRanges, chosen_N: np.ndarray, in_row_R: np.ndarray, width: int) -> RowLayout:
    """The layout of examples `chosen_N` in rows of `width` tokens, `in_row_R` int [R] (at least 1) in each."""
    a_N, b_N = examples.a_length[chosen_N].astype(np.int64), examples.b_length[chosen_N].astype(np.int64)
    length_N = a_N + b_N + examples.template.special_counts(b_N)
    first_R = np.cumsum(in_row_R) - in_row_R  # first example of the row
    before_N = np.cumsum(length_N) - length_N
    base_N = before_N + np.repeat(np.arange(len(in_row_R)) * width - before_N[first_R], in_row_R)
    pad_N = np.diff(base_N, append=len(in_row_R) * width) - length_N
    return RowLayout(np.arange(len(a_N)) - np.repeat(first_R, in_row_R), base_N, a_N, b_N, length_N, pad_N)


def build(
    store: Store,
    settings: BatchSettings,
    examples: ExampleRanges,
    chosen_N: np.ndarray,
    in_row_R: np.ndarray,
    epoch: int,
) -> HostBatch:
    """R rows with the examples `chosen_N` int [N] of an epoch, `in_row_R` int [R] (at least 1) in each."""
    batch = empty(len(in_row_R), settings, store.tokenizer.pad_id)
    if not len(in_row_R):
        return batch
    at = lay_out(examples, chosen_N, in_row_R, settings.max_length)
    _write_structure(batch, at, examples.template)
    words_BT = _write_tokens(batch, store, examples, chosen_N, at, settings.whole_words)

    is_example = np.arange(settings.examples_in_row) < np.asarray(in_row_R)[:, None]
    batch["cls_positions"][is_example] = at.base % settings.max_length
    label_N = examples.label[chosen_N]
    batch["next_sentence_labels"][is_example] = np.where(label_N == NO_LABEL, 0, label_N)
    batch["next_sentence_weights"][is_example] = label_N != NO_LABEL

    key_N = masking.example_keys(settings.seed, epoch, chosen_N)
    _write_masks(batch, store.tokenizer, settings, at, key_N, words_BT)
    return batch


def empty(num_rows: int, settings: BatchSettings, pad_id: int) -> HostBatch:
    """A batch of rows without examples."""
    wide, few = (num_rows, settings.max_length), (num_rows, settings.examples_in_row)
    masks = (num_rows, settings.masks_in_row)
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


def _write_structure(batch: HostBatch, at: RowLayout, template: Template) -> None:
    """Fills type_ids, position_ids and example_ids."""
    zero_N = np.zeros_like(at.nth)
    runs = np.stack([at.length, at.pad], axis=1).reshape(-1)
    example_ids = batch["example_ids"].reshape(-1)
    example_ids[:] = np.repeat(np.stack([at.nth + 1, zero_N], axis=1).astype(np.int32).reshape(-1), runs)
    position_ids = batch["position_ids"].reshape(-1)
    position_ids[:] = np.arange(len(position_ids)) - np.repeat(at.base, at.length + at.pad)
    position_ids *= example_ids > 0
    of_b = np.where(at.b > 0, at.b + len(template.after), 0)
    runs = np.stack([at.length - of_b, of_b, at.pad], axis=1).reshape(-1)
    types = np.array([0, template.type_of_b, 0], np.int32)
    batch["type_ids"].reshape(-1)[:] = np.repeat(np.tile(types, len(at.nth)), runs)


def _write_tokens(
    batch: HostBatch, store: Store, examples: ExampleRanges, chosen_N: np.ndarray, at: RowLayout, whole_words: bool
) -> np.ndarray | None:
    """Fills token_ids. Returns the `words_BT` of `masking.choose`, or None."""
    template = examples.template
    place_of_a = at.base + len(template.before)
    end_of_a = place_of_a + at.a
    token_ids = batch["token_ids"].reshape(-1)
    for special, place_N in (
        (template.before, at.base),
        (template.between, end_of_a[at.b > 0]),
        (template.after, at.base + at.length - len(template.after)),
    ):
        for offset, token in enumerate(special):
            token_ids[place_N + offset] = token
    length_S = np.stack([at.a, at.b], axis=1).reshape(-1)  # segments A, B, A, B, ...
    start_S = np.stack([examples.a_start[chosen_N], examples.b_start[chosen_N]], axis=1).reshape(-1)
    place_S = np.stack([place_of_a, end_of_a + len(template.between)], axis=1).reshape(-1)
    used = length_S > 0
    length_S, start_S, place_S = length_S[used], start_S[used], place_S[used]
    place_T = range_positions(place_S, length_S)
    token_ids[place_T] = store.read(start_S, length_S)
    if not whole_words:
        return None
    words = np.zeros(batch["token_ids"].shape, np.uint8)
    words.reshape(-1)[place_T] = np.where(store.read_continues(start_S, length_S), masking.CONTINUES, masking.STARTS)
    words.reshape(-1)[place_S] = masking.STARTS  # the part of a word that stands here is a word of its own
    return words


def _write_masks(
    batch: HostBatch,
    tokenizer: Tokenizer,
    settings: BatchSettings,
    at: RowLayout,
    key_N: np.ndarray,
    words_BT: np.ndarray | None,
) -> None:
    """Fills masked_*, and replaces tokens in token_ids."""
    maskable_V = np.ones(tokenizer.vocab_size, bool)
    maskable_V[list(tokenizer.special_ids)] = False
    place_M, choice_M, bits_M = masking.choose(
        key_N,
        at.base,
        at.nth,
        batch["position_ids"],
        maskable_V.take(batch["token_ids"]),
        rate=settings.mask_rate,
        limit_N=settings.mask_limits(at.a + at.b, at.length),
        words_BT=words_BT,
    )
    token_ids = batch["token_ids"].reshape(-1)
    id_M = token_ids[place_M]
    token_ids[place_M] = masking.replace(
        id_M,
        choice_M,
        bits_M,
        mask_id=tokenizer.mask_id,
        replacement_ids=tokenizer.replacement_ids,
        mask_share=settings.mask_share,
        random_share=settings.random_share,
    )
    row_M, position_M = np.divmod(place_M, settings.max_length)
    in_row_R = np.bincount(row_M, minlength=len(batch["masked_ids"]))
    is_mask = np.arange(settings.masks_in_row) < in_row_R[:, None]
    batch["masked_positions"][is_mask] = position_M
    batch["masked_ids"][is_mask] = id_M
    batch["masked_weights"][is_mask] = 1.0
