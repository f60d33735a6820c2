"""Pads token ids of any length to batches of a few shapes, one example per row, for inference.

Each shape is compiled once, so lengths and numbers of rows come from short lists. The keys of a batch are those of
batches.py. NumPy only. Axes: B row, T position, N text.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bert.errors import InputError
from bert.types import HostBatch

# Rows are padded to the next of these, or to the model's positions: few compilations, and little padding.
LENGTHS = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)


def bucket_length(tokens: int, limit: int) -> int:
    """The length that a row of so many tokens is padded to; ``limit``: the model's positions."""
    return next((length for length in LENGTHS if tokens <= length <= limit), limit)


def power_of_two(count: int) -> int:
    """The least power of two that is not below ``count``."""
    return 1 << max(0, count - 1).bit_length()


def batch_rows(count: int, batch_size: int) -> int:
    """Rows of each batch where there are ``count`` in all: 1, 8 or ``batch_size``."""
    return min(batch_size, next(size for size in (1, 8, batch_size) if size >= min(count, batch_size)))


def plan(tokens_N: Sequence[int], limit: int, batch_size: int) -> list[tuple[list[int], int, int]]:
    """(indices of rows, length, rows to pad to) for each batch: all rows of one length bucket together.

    One shape a bucket: a last, smaller batch takes that of the full ones.
    """
    buckets: dict[int, list[int]] = {}
    for i, tokens in enumerate(tokens_N):
        buckets.setdefault(bucket_length(tokens, limit), []).append(i)
    batches = []
    for length, members in sorted(buckets.items()):
        size = batch_rows(len(members), batch_size)
        batches += [(members[i : i + size], length, size) for i in range(0, len(members), size)]
    return batches


def one_example_a_row(
    rows: Sequence[Sequence[int]], length: int, size: int, type_ids: Sequence[Sequence[int]] | None = None
) -> HostBatch:
    """The batch [size, length] of these token ids; rows beyond them are empty. Types are 0 where not given."""
    arrays = {name: np.zeros((size, length), np.int32) for name in ("token_ids", "type_ids", "example_ids")}
    for i, ids in enumerate(rows):
        arrays["token_ids"][i, : len(ids)] = ids
        arrays["example_ids"][i, : len(ids)] = 1
        if type_ids is not None:
            arrays["type_ids"][i, : len(ids)] = type_ids[i]
    return padded(arrays, length, size)


def padded(arrays: HostBatch, length: int, size: int) -> HostBatch:
    """The arrays [B, T] padded with 0 to [size, length], with position ids."""
    larger = {name: np.pad(a_BT, ((0, size - len(a_BT)), (0, length - a_BT.shape[1]))) for name, a_BT in arrays.items()}
    return larger | {"position_ids": np.tile(np.arange(length, dtype=np.int32), (size, 1))}


def whole_numbers(values: Any, name: str, shape: tuple[int, ...] | None, count: int, what: str) -> np.ndarray:
    """int32 [B, T] of this shape (None: any) with every value in 0..count-1; InputError for any other.

    what: what the model has ``count`` of, for messages.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} has rows of different lengths; pad them with 0 and give a mask") from None
    if array.ndim != 2 or 0 in array.shape or (shape is not None and array.shape != shape):
        wanted = "[B, T] with at least one token" if shape is None else f"{list(shape)}, as token_ids"
        raise InputError(f"{name} has shape {list(array.shape)}; it must be {wanted}")
    if array.dtype.kind not in "iub":
        raise InputError(f"{name} holds {array.dtype}; it must hold whole numbers")
    wrong = np.argwhere((array < 0) | (array >= count))
    if len(wrong):
        row, position = wrong[0]
        raise InputError(
            f"{name}: row {row}, position {position} holds {array[row, position]}; it must be from 0 to {count - 1} "
            f"(the model has {count} {what})"
        )
    return array.astype(np.int32)
