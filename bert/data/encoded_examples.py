"""Encoded examples for fine-tuning, and batches of them with the keys of batches.py. NumPy only.

Batch i of training is a pure function of (examples, settings, i). Each training batch has the same number of examples,
in any number of rows: short examples share rows if packing is on, so packing changes only the amount of work.
Axes: N example, B row, T position, E example in a row.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from bert.data import packing, padding
from bert.errors import check_range
from bert.types import HostBatch

_TOKENS_OF_AN_EXAMPLE = 8  # a row of T positions holds T / 8 examples at most
_COUNTED_BATCHES = 64  # whose rows decide the shape of packed batches


class Examples(Protocol):
    """What batches are made of: `EncodedExamples`, or pairs of these (sequence_pairs.py)."""

    def __len__(self) -> int: ...
    @property
    def length_N(self) -> np.ndarray: ...  # int [N], the places that each needs in a row

    def assembled(self, members: Sequence[np.ndarray], length: int, size: int, slots: int) -> HostBatch:
        """The batch [size, length] whose row b holds the examples ``members[b]``, ``slots`` at most."""
        ...


@dataclasses.dataclass(frozen=True)
class EncodedExamples:
    """N encoded texts or pairs, one after the other."""

    token_ids: np.ndarray  # int32 [sum of lengths], special tokens included
    starts: np.ndarray  # int64 [N + 1], where each begins and the last ends
    a_length_N: np.ndarray  # int32 [N], tokens of segment A with its [CLS] and [SEP]; those behind are of segment B
    # name -> array [N, ...], such as ``targets`` and ``target_weights``; name -> array [sum of lengths, ...]
    of_example: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    of_token: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @functools.cached_property
    def length_N(self) -> np.ndarray:
        return np.diff(self.starts)

    def assembled(self, members: Sequence[np.ndarray], length: int, size: int, slots: int) -> HostBatch:
        """See `assemble`."""
        return assemble(self, members, length, size, slots)

    def take(self, chosen: Sequence[int]) -> EncodedExamples:
        """The chosen examples, in that order."""
        parts = [slice(self.starts[i], self.starts[i + 1]) for i in chosen]

        def flat(values: np.ndarray) -> np.ndarray:
            return np.concatenate([values[:0], *(values[part] for part in parts)])

        return EncodedExamples(
            flat(self.token_ids),
            starts_of([part.stop - part.start for part in parts]),
            self.a_length_N[list(chosen)],
            {name: values[list(chosen)] for name, values in self.of_example.items()},
            {name: flat(values) for name, values in self.of_token.items()},
        )


def starts_of(length_N: Sequence[int]) -> np.ndarray:
    """int64 [N + 1], where each of N runs of these lengths begins, and the last ends."""
    return np.concatenate([[0], np.cumsum(length_N)]).astype(np.int64)


def join(sequences: Sequence[tuple[Sequence[int] | np.ndarray, int]], **of_example: np.ndarray) -> EncodedExamples:
    """Examples given as (token ids, tokens of segment A)."""
    starts = starts_of([len(ids) for ids, _ in sequences])
    flat = np.concatenate([np.zeros(0, np.int32), *(np.asarray(ids, np.int32) for ids, _ in sequences)])
    return EncodedExamples(flat, starts, np.array([first for _, first in sequences], np.int32), of_example)


@dataclasses.dataclass(frozen=True)
class ExampleSettings:
    """How encoded examples become batches."""

    batch_size: int  # examples in a batch of training; rows in one of prediction
    max_length: int  # tokens a row, special tokens among them
    packed: bool = True  # several short examples in a row: the same results, less work
    seed: int = 0  # of the data order
    row_unit: int = 1  # rows of a batch are a multiple of it (devices that share them, times micro-batches)

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_length", "row_unit"):
            check_range(name, getattr(self, name), at_least=1, whole=True)

    @property
    def examples_in_row(self) -> int:
        return max(1, self.max_length // _TOKENS_OF_AN_EXAMPLE) if self.packed else 1


def epoch_order(length_N: np.ndarray, batch_size: int, seed: int | Sequence[int]) -> np.ndarray:
    """int64 [N]: batches in random order, each with short and long examples, as has the rest behind the last one.

    Sorted by length, without the rest, the examples are cut into `batch_size` equal parts, and a batch takes one of
    each, short ones first; the longest go where the others have the fewest tokens. So packed batches need almost the
    same number of rows.
    """
    rng, N = np.random.default_rng(seed), len(length_N)
    by_length_N = rng.permutation(N)
    by_length_N = by_length_N[np.argsort(length_N[by_length_N], kind="stable")]
    rest = ((np.arange(N % batch_size) + rng.random()) * N / (N % batch_size)).astype(np.int64)
    parts = np.delete(by_length_N, rest).reshape(batch_size, N // batch_size)
    others = rng.permuted(parts[:-1], axis=1)
    others = others[:, np.argsort(-length_N[others].sum(0), kind="stable")]
    batches = rng.permutation(np.concatenate([others, parts[-1:]]).T)
    return np.concatenate([batches.reshape(-1), by_length_N[rest]])


class TrainingBatches:
    """Batch number -> batch; an epoch takes each example once, in an order of its own.

    The last batch of an epoch holds what is left. Each shape of a batch is compiled, so packed batches have one, with
    the most rows that one of the first batches needs. A rare batch that needs more has a row for each example.
    """

    def __init__(self, examples: Examples, settings: ExampleSettings):
        self.examples, self.settings = examples, settings
        self.steps_per_epoch = -(-len(examples) // settings.batch_size)
        self._order_of = functools.lru_cache(maxsize=1)(
            lambda epoch: epoch_order(examples.length_N, settings.batch_size, (settings.seed, epoch))
        )
        self._sizes = [_multiple(settings.batch_size, settings.row_unit)]
        if settings.packed:
            used = max(len(self._members(i)[0]) for i in range(min(_COUNTED_BATCHES, self.steps_per_epoch)))
            self._sizes.insert(0, _multiple(used, settings.row_unit))

    def __call__(self, number: int) -> HostBatch:
        members, length = self._members(number)
        size = next(size for size in self._sizes if size >= len(members))
        return self.examples.assembled(members, length, size, self.settings.examples_in_row)

    def _members(self, number: int) -> tuple[list[np.ndarray], int]:
        """The examples of each row of a batch, and the rows' length."""
        epoch, place = divmod(number, self.steps_per_epoch)
        size, settings, length_N = self.settings.batch_size, self.settings, self.examples.length_N
        chosen = self._order_of(epoch)[place * size : (place + 1) * size]
        longest = int((length_N if settings.packed else length_N[chosen]).max())
        length = padding.bucket_length(longest, settings.max_length)
        if not settings.packed:
            return list(chosen[:, None]), length
        packed = packing.pack(
            length_N[chosen], capacity=length, max_examples=settings.examples_in_row, seed=(settings.seed, epoch, place)
        )
        return [chosen[row] for row in packed.rows()], length


def prediction_batches(examples: Examples, settings: ExampleSettings) -> Iterator[tuple[HostBatch, np.ndarray]]:
    """(batch, int64 [B, E]: which example each slot holds, -1 for none), until every example was there once."""
    length_N, size = examples.length_N, _multiple(settings.batch_size, settings.row_unit)
    if not len(examples):
        return
    if settings.packed:
        length = padding.bucket_length(int(length_N.max()), settings.max_length)
        packed = packing.pack(length_N, capacity=length, max_examples=settings.examples_in_row, seed=0)
        rows = packed.rows()
        groups = [(rows[i : i + size], length) for i in range(0, len(rows), size)]
    else:
        plan = padding.plan(length_N.tolist(), settings.max_length, size)
        groups = [([np.array([i]) for i in chosen], length) for chosen, length, _ in plan]
    for members, length in groups:
        index_BE = np.full((size, settings.examples_in_row), -1, np.int64)
        for row, chosen in enumerate(members):
            index_BE[row, : len(chosen)] = chosen
        yield examples.assembled(members, length, size, settings.examples_in_row), index_BE


def assemble(examples: EncodedExamples, members: Sequence[np.ndarray], length: int, size: int, slots: int) -> HostBatch:
    """The batch [size, length] whose row b holds the examples ``members[b]`` one after the other.

    The examples' own arrays become [B, E, ...] or [B, T, ...], 0 where there is nothing.
    """
    names = ("token_ids", "type_ids", "position_ids", "example_ids")
    batch = {name: np.zeros((size, length), np.int32) for name in names}
    batch["cls_positions"] = np.zeros((size, slots), np.int32)
    for columns, arrays in ((slots, examples.of_example), (length, examples.of_token)):
        for name, values in arrays.items():
            batch[name] = np.zeros((size, columns, *values.shape[1:]), values.dtype)
    for row, chosen in enumerate(members):
        start = 0
        for slot, i in enumerate(chosen):
            source = slice(examples.starts[i], examples.starts[i + 1])
            count = int(source.stop - source.start)
            at = slice(start, start + count)
            batch["token_ids"][row, at] = examples.token_ids[source]
            batch["type_ids"][row, start + examples.a_length_N[i] : at.stop] = 1
            batch["position_ids"][row, at] = np.arange(count)
            batch["example_ids"][row, at] = slot + 1
            batch["cls_positions"][row, slot] = start
            for name, of_example in examples.of_example.items():
                batch[name][row, slot] = of_example[i]
            for name, of_token in examples.of_token.items():
                batch[name][row, at] = of_token[source]
            start = at.stop
    return batch


def _multiple(count: int, unit: int) -> int:
    """The least multiple of ``unit`` that is not below ``count``."""
    return -(-count // unit) * unit
