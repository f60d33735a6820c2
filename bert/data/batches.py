"""The keys of a batch, and batches of a prepared store. Batch i is a pure function of (store, settings, i).

B rows of T tokens; a row holds up to E examples and P predictions (unpacked batches are the case E = 1). The objective
decides what is predicted: mlm, the masked words at their own places, whatever replaced them; blank, all words at
theirs; causal, each token at the place before it, but for the first of an example.

| key | | |
| --- | --- | --- |
| token_ids | int32 [B, T] | what the model reads; [PAD] after the last example |
| type_ids | int32 [B, T] | 0 in [CLS] A [SEP], 1 in B [SEP] |
| position_ids | int32 [B, T] | 0, 1, ... from each [CLS] on |
| example_ids | int32 [B, T] | 0 padding, 1.. example in the row; attention stays inside one example |
| cls_positions | int32 [B, E] | the position of each example's [CLS]; 0 in empty slots |
| masked_positions | int32 [B, P] | where words are predicted, ascending; 0 in empty slots |
| masked_ids | int32 [B, P] | the tokens predicted there; 0 in empty slots |
| masked_weights | float32 [B, P] | 1 for each prediction; 0 in empty slots |
| next_sentence_labels | int32 [B, E] | an index of `pairs.CLASS_NAMES`; 0 without a label |
| next_sentence_weights | float32 [B, E] | 1 with a label, 0 without |

An encoder of pictures also reads ``patches``, float32 [B, T, K]: the pixels of the patch at each position, anything
at [CLS], which pictures that are captioned do not have. Batches of fine-tuning have the first five keys and the targets
below. A weight of 0 excludes a target.

| key | | |
| --- | --- | --- |
| targets | float32 [B, E, C] or [B, T, C] | shares of classes or tags, of an example or a token; or a number, C = 1 |
| target_weights | float32 [B, E] or [B, T] | the weight of each target |
| example_share | float32 [B, E] | a window's share of its text's tokens with a target; sums to the texts |
| start, end | int32 [B, E] | the answer's first and last token, counted from [CLS]; both 0 without an answer |

Batches of pairs of a source and a target have the first five keys of the source, and of the target, U places a row:

| key | | |
| --- | --- | --- |
| target_ids | int32 [B, U] | the words to be predicted, the last of each example the one that ends it; 0 behind them |
| target_position_ids | int32 [B, U] | 0, 1, ... from the first word of each example on |
| target_example_ids | int32 [B, U] | 0 padding; the number of the example, as in example_ids |
| target_weights | float32 [B, U] | 1 for each word; 0 in padding |
"""

from __future__ import annotations

import bisect
import dataclasses
import threading
from collections.abc import Iterator
from concurrent import futures

import numpy as np

from bert import objectives
from bert.data import assembly, packing, pairs
from bert.data.settings import BatchSettings
from bert.errors import InputError
from bert.progress import progress as show_progress
from bert.store.reader import Store
from bert.types import HostBatch

__all__ = ["BatchSettings", "Batches", "EvaluationBatches"]


@dataclasses.dataclass(frozen=True)
class EpochReport:
    """Counts of an epoch; `str()` is the line for the user."""

    pairs: pairs.PairCounts
    rows: int
    tokens: int  # with [CLS] and [SEP], without padding
    predicts: str  # the objective
    masked: int  # predictions; of masked words at most so many, for [UNK] is never chosen
    text_tokens: int
    fill: float  # share of the rows' places that hold tokens

    def __str__(self) -> str:
        predicted = f"{self.masked:,} tokens predicted"
        if objectives.OBJECTIVES[self.predicts].masked:
            predicted = f"{self.masked / max(self.text_tokens, 1):.1%} of the tokens masked"
        return f"{self.pairs}; {self.rows:,} rows, {1 - self.fill:.1%} padding, {predicted}"


class _Plan:
    """The rows of one epoch."""

    def __init__(self, store: Store, settings: BatchSettings, epoch: int):
        self.store, self.settings, self.epoch = store, settings, epoch
        self.examples = pairs.plan_epoch(
            store, max_length=settings.max_length, objective=settings.objective, seed=settings.seed, epoch=epoch,
            short_probability=settings.short_probability,
        )  # fmt: skip
        length_N = self.examples.lengths
        masks_N = settings.mask_limits(self.examples.tokens, length_N)
        masked = objectives.OBJECTIVES[settings.predicts].masked
        # An example with many masks for its length counts as longer, so that no row exceeds the budget.
        needed_N = -(-masks_N * settings.max_length // settings.masks_in_row) if masked else length_N
        self.rows = packing.pack(
            np.maximum(length_N, needed_N), capacity=settings.max_length, max_examples=settings.examples_in_row,
            seed=(settings.seed, epoch, 2),
        )  # fmt: skip
        tokens = int(length_N.sum(dtype=np.int64))
        self.report = EpochReport(
            pairs=self.examples.counts,
            rows=len(self.rows),
            tokens=tokens,
            predicts=settings.predicts,
            masked=int(masks_N.sum()),
            text_tokens=int(self.examples.tokens.sum(dtype=np.int64)),
            fill=tokens / max(len(self.rows) * settings.max_length, 1),
        )

    def build(self, start: int, stop: int) -> HostBatch:
        """Rows start to stop."""
        starts = self.rows.row_starts[start : stop + 1]
        chosen_N = self.rows.order[starts[0] : starts[-1]]
        return assembly.build(self.store, self.settings, self.examples, chosen_N, np.diff(starts), self.epoch)


def _joined(parts: list[HostBatch]) -> HostBatch:
    if len(parts) == 1:
        return parts[0]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _row_range(index: int, batch_size: int, rows: slice) -> tuple[int, int]:
    """First row and end of a part of a batch, counted over all batches."""
    low, high, step = rows.indices(batch_size)
    if step != 1:
        raise ValueError(f"{rows} must have step 1")
    return index * batch_size + low, index * batch_size + max(low, high)


def _check_vocabulary(store: Store, settings: BatchSettings) -> None:
    masked, special = objectives.OBJECTIVES[settings.predicts].masked, store.tokenizer
    if masked and special.mask_id in (special.pad_id, special.unk_id, special.cls_id, special.sep_id):
        raise InputError(
            f"{store.directory}: the vocabulary has no mask token; choose another objective, such as causal"
        )
    if masked and settings.random_share > 0 and not len(store.tokenizer.replacement_ids):
        what = "the vocabulary has no ordinary token that a random replacement could draw"
        raise InputError(f"{store.directory}: {what}; set examples.random_share to 0")


class Batches:
    """Training batches without end: the rows of epoch 0, of epoch 1, and so on, cut into batches.

    `batches(i)` is the global batch i; `batches(i, slice(8, 16))` its rows 8 to 15, for one host of several. A batch
    may hold the end of an epoch and the start of the next; no row is left out or repeated. The next epoch is planned in
    a thread while the current one is read; no other is held. How many rows an epoch has is known from its plan only, so
    the first batch of a resumed run plans every epoch before it, once. Calls from several threads are safe.
    """

    def __init__(self, store: Store, settings: BatchSettings):
        """Raises InputError where the store cannot give what the settings ask for."""
        pairs.check_documents(store, settings.objective)
        _check_vocabulary(store, settings)
        self._store, self.settings = store, settings
        self._plans: dict[int, futures.Future[_Plan]] = {}
        self._first_rows = [0]  # first row of epoch 0, 1, ...; grows as epochs are planned
        self._planner = futures.ThreadPoolExecutor(1, "plan")
        self._lock = threading.Lock()
        self.report = self._plan(0).result().report

    @property
    def steps_per_epoch(self) -> float:
        """Batches in the first epoch, not rounded; other epochs differ by a few rows."""
        return self.report.rows / self.settings.batch_size

    def __call__(self, index: int, rows: slice = slice(None)) -> HostBatch:
        """Batch `index` (0, 1, ...), or a range of its rows (step 1); keys as in the table above."""
        if index < 0:
            raise IndexError(f"batch {index}: numbers start at 0")
        row, end = _row_range(index, self.settings.batch_size, rows)
        parts: list[HostBatch] = []
        while row < end or not parts:
            plan, first = self._plan_of_row(row)
            stop = min(end, first + len(plan.rows))
            parts.append(plan.build(row - first, stop - first))
            row = stop
        return _joined(parts)

    def _plan_of_row(self, row: int) -> tuple[_Plan, int]:
        """The epoch that holds a row of the stream, and the number of its first row."""
        with self._lock:
            epoch = max(0, bisect.bisect_right(self._first_rows, row) - 1)
            while True:
                plan, first = self._plan(epoch).result(), self._first_rows[epoch]
                if epoch + 1 == len(self._first_rows):
                    self._first_rows.append(first + len(plan.rows))
                if row < first + len(plan.rows):
                    break
                epoch += 1
            if row - first > len(plan.rows) // 2:
                self._plan(epoch + 1)  # ready when the epoch ends
            return plan, first

    def _plan(self, epoch: int) -> futures.Future[_Plan]:
        if epoch not in self._plans:
            while len(self._plans) > 1:
                del self._plans[min(self._plans)]
            self._plans[epoch] = self._planner.submit(_Plan, self._store, self.settings, epoch)
        return self._plans[epoch]


class EvaluationBatches:
    """The rows of epoch 0 of a store, each in exactly one batch; empty rows fill the last one. Masks never change.

    `len(batches)` batches; `batches(i, rows)` as in `Batches`. With pair labels impossible (one document), the labels'
    weights are 0.
    """

    def __init__(self, store: Store, settings: BatchSettings):
        """Raises InputError where the store is empty."""
        pairs.check_documents(store, "none")
        _check_vocabulary(store, settings)
        self._store, self.settings, self._plan = store, settings, _Plan(store, settings, 0)
        self.report = self._plan.report

    def __len__(self) -> int:
        return -(-self.report.rows // self.settings.batch_size)

    def __call__(self, index: int, rows: slice = slice(None)) -> HostBatch:
        if not 0 <= index < len(self):
            raise IndexError(f"batch {index} of {len(self)}")
        first, end = _row_range(index, self.settings.batch_size, rows)
        start, stop = min(first, self.report.rows), min(end, self.report.rows)
        batch, missing = self._plan.build(start, stop), end - first - (stop - start)
        padding = [assembly.empty(missing, self.settings, self._store.tokenizer.pad_id)] if missing else []
        return _joined([batch, *padding])

    def all(self, rows: slice = slice(None), *, progress: bool = False) -> Iterator[HostBatch]:
        """All batches in order; ``progress``: shows a bar on a terminal, a line every ten seconds elsewhere."""
        with show_progress(len(self), "batch", label="evaluation", shown=progress) as done:
            for index in range(len(self)):
                yield self(index, rows)
                done(1)
