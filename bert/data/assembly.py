"""Builds the arrays of a batch (documented in batches.py) from rows of examples. No order, no random state."""

from __future__ import annotations

import numpy as np

from bert.data import masking
from bert.data.pairs import NO_LABEL, ExampleRanges
from bert.data.settings import BatchSettings
from bert.store.range_positions import range_positions
from bert.store.reader import Store
from bert.types import HostBatch


def build(
    store: Store, settings: BatchSettings, examples: ExampleRanges, chosen_N: np.ndarray, in_row_R: np.ndarray,
    epoch: int,
) -> HostBatch:  # fmt: skip
    """R rows with the examples `chosen_N` int [N] of an epoch, `in_row_R` int [R] (at least 1) in each."""
    batch = empty(len(in_row_R), settings, store.tokenizer.pad_id)
    if not len(in_row_R):
        return batch
    rows = _Rows(batch, examples, chosen_N, in_row_R, settings.max_length)
    rows.write_structure()
    words_BT = rows.write_tokens(store, settings.whole_words)

    is_example = np.arange(settings.examples_in_row) < np.asarray(in_row_R)[:, None]
    batch["cls_positions"][is_example] = rows.base % settings.max_length
    label_N = examples.label[chosen_N]
    batch["next_sentence_labels"][is_example] = np.where(label_N == NO_LABEL, 0, label_N)
    batch["next_sentence_weights"][is_example] = label_N != NO_LABEL

    if settings.predicts == "mlm":
        rows.write_masks(store, settings, masking.example_keys(settings.seed, epoch, chosen_N), words_BT)
    elif settings.predicts == "blank":
        rows.write_all_words(store)
    else:
        rows.write_next_words()
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


class _Rows:
    """N examples in the R rows of a batch; arrays are int64 [N], row by row."""

    def __init__(
        self, batch: HostBatch, examples: ExampleRanges, chosen_N: np.ndarray, in_row_R: np.ndarray, width: int
    ):
        self.batch, self.examples, self.chosen, self.template = batch, examples, chosen_N, examples.template
        first_R = np.cumsum(in_row_R) - in_row_R  # first example of the row
        self.a = examples.a_length[chosen_N].astype(np.int64)  # tokens of segment A, without special ones
        self.b = examples.b_length[chosen_N].astype(np.int64)
        self.nth = np.arange(len(self.a)) - np.repeat(first_R, in_row_R)  # number in its row, from 0
        self.length = self.a + self.b + self.template.special_counts(self.b)  # tokens with the special ones
        before_N = np.cumsum(self.length) - self.length
        # place of its first token in the flattened rows
        self.base = before_N + np.repeat(np.arange(len(in_row_R)) * width - before_N[first_R], in_row_R)
        # empty places between it and the next example
        self.pad = np.diff(self.base, append=len(in_row_R) * width) - self.length

    def write_structure(self) -> None:
        """Fills type_ids, position_ids and example_ids."""
        zero_N = np.zeros_like(self.nth)
        runs = np.stack([self.length, self.pad], axis=1).reshape(-1)
        example_ids = self.batch["example_ids"].reshape(-1)
        example_ids[:] = np.repeat(np.stack([self.nth + 1, zero_N], axis=1).astype(np.int32).reshape(-1), runs)
        position_ids = self.batch["position_ids"].reshape(-1)
        position_ids[:] = np.arange(len(position_ids)) - np.repeat(self.base, self.length + self.pad)
        position_ids *= example_ids > 0
        of_b = np.where(self.b > 0, self.b + len(self.template.after), 0)
        runs = np.stack([self.length - of_b, of_b, self.pad], axis=1).reshape(-1)
        types = np.array([0, self.template.type_of_b, 0], np.int32)
        self.batch["type_ids"].reshape(-1)[:] = np.repeat(np.tile(types, len(self.nth)), runs)

    def write_tokens(self, store: Store, whole_words: bool) -> np.ndarray | None:
        """Fills token_ids. Returns the `words_BT` of `masking.choose`, or None."""
        before, between, after, _ = self.template
        place_of_a = self.base + len(before)
        end_of_a = place_of_a + self.a
        token_ids = self.batch["token_ids"].reshape(-1)
        end_N = self.base + self.length - len(after)
        for special, place_N in ((before, self.base), (between, end_of_a[self.b > 0]), (after, end_N)):
            for offset, token in enumerate(special):
                token_ids[place_N + offset] = token
        length_S = np.stack([self.a, self.b], axis=1).reshape(-1)  # segments A, B, A, B, ...
        starts = (self.examples.a_start[self.chosen], self.examples.b_start[self.chosen])
        start_S = np.stack(starts, axis=1).reshape(-1)
        place_S = np.stack([place_of_a, end_of_a + len(between)], axis=1).reshape(-1)
        used = length_S > 0
        length_S, start_S, place_S = length_S[used], start_S[used], place_S[used]
        place_T = range_positions(place_S, length_S)
        token_ids[place_T] = store.read(start_S, length_S)
        if not whole_words:
            return None
        words_BT = np.zeros(self.batch["token_ids"].shape, np.uint8)
        words_X = words_BT.reshape(-1)
        words_X[place_T] = np.where(store.read_continues(start_S, length_S), masking.CONTINUES, masking.STARTS)
        words_X[place_S] = masking.STARTS  # the part of a word that stands here is a word of its own
        return words_BT

    def write_masks(
        self, store: Store, settings: BatchSettings, key_N: np.ndarray, words_BT: np.ndarray | None
    ) -> None:
        """Fills masked_*, and replaces tokens in token_ids."""
        place_M, choice_M, bits_M = masking.choose(
            key_N, self.base, self.nth, self.batch["position_ids"], self._words(store),
            rate=settings.mask_rate, limit_N=settings.mask_limits(self.a + self.b, self.length), words_BT=words_BT,
        )  # fmt: skip
        token_ids = self.batch["token_ids"].reshape(-1)
        id_M = token_ids[place_M]
        token_ids[place_M] = masking.replace(
            id_M, choice_M, bits_M,
            mask_id=store.tokenizer.mask_id, replacement_ids=store.tokenizer.replacement_ids,
            mask_share=settings.mask_share, random_share=settings.random_share,
        )  # fmt: skip
        self._write_predictions(place_M, id_M)

    def write_all_words(self, store: Store) -> None:
        """Fills masked_*: each token that may be masked is predicted at its own place, and none is replaced."""
        place_M = np.flatnonzero(self._words(store))
        self._write_predictions(place_M, self.batch["token_ids"].reshape(-1)[place_M])

    def _words(self, store: Store) -> np.ndarray:
        """bool [B, T]: which tokens may be masked: those of the text but [UNK]."""
        maskable_V = np.ones(store.tokenizer.vocab_size, bool)
        maskable_V[list(store.tokenizer.special_ids)] = False
        return maskable_V.take(self.batch["token_ids"])

    def write_next_words(self) -> None:
        """Fills masked_*: each token is predicted at the place before it, but for the first of an example."""
        example_BT = self.batch["example_ids"]
        inside_BT = np.zeros(example_BT.shape, bool)
        inside_BT[:, :-1] = (example_BT[:, 1:] == example_BT[:, :-1]) & (example_BT[:, 1:] > 0)
        place_M = np.flatnonzero(inside_BT)
        self._write_predictions(place_M, self.batch["token_ids"].reshape(-1)[place_M + 1])

    def _write_predictions(self, place_M: np.ndarray, id_M: np.ndarray) -> None:
        """Fills masked_*: at these places of the flattened rows, ascending, the tokens ``id_M`` are predicted."""
        rows, width = self.batch["token_ids"].shape
        row_M, position_M = np.divmod(place_M, width)
        in_row_R = np.bincount(row_M, minlength=rows)
        is_mask = np.arange(self.batch["masked_ids"].shape[1]) < in_row_R[:, None]
        self.batch["masked_positions"][is_mask] = position_M
        self.batch["masked_ids"][is_mask] = id_M
        self.batch["masked_weights"][is_mask] = 1.0
