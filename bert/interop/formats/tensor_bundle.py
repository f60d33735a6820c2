"""Reads the variables of a TensorFlow checkpoint in V2 format ("tensor bundle"), without TensorFlow.

PREFIX.index is a sorted table (sorted_table.py), variable name -> type, shape, place and checksum; the numbers are in
PREFIX.data-00000-of-00001 and further shards. V1 checkpoints, strings and variables saved in pieces are not read.

Source: TensorFlow's protobuf/tensor_bundle.proto and util/tensor_bundle/ (both under tensorflow/core).
"""

import math
import os
import pathlib
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from bert.errors import InputError
from bert.interop.formats.sorted_table import COPY_AGAIN, MAGIC, Fault, masked_crc, rows_of_table, spelled, varints
from bert.interop.formats.tensors import LazyTensors, map_file

# By TensorFlow's number of the type (framework/types.proto).
_NUMBERS = {1: np.float32, 2: np.float64, 3: np.int32, 4: np.uint8, 5: np.int16, 6: np.int8, 9: np.int64, 10: np.bool_}
_NUMBERS |= {14: ml_dtypes.bfloat16, 19: np.float16}
DTYPES: dict[int, np.dtype] = {number: np.dtype(kind) for number, kind in _NUMBERS.items()}
_MAX_AXES = 64  # NumPy's limit
_VERSION = 1  # kTensorBundleVersion: the newest format known here
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # protobuf's wire types
_FIXED = {_FIXED64: 8, _FIXED32: 4}  # bytes

Message = dict[tuple[int, int], list[Any]]


class Entry(NamedTuple):
    """A variable of the index."""

    dtype: int  # TensorFlow's number
    shape: tuple[int, ...]
    shard: int  # number of the data file
    offset: int  # bytes
    size: int  # bytes
    checksum: int  # masked CRC-32C of the data


class TensorBundle(LazyTensors[Entry]):
    """The variables of a checkpoint opened by `open_bundle`, read-only views over its data files.

    A variable's checksum is compared when it is first read; `entries` has types and shapes without reading data.
    """

    def __init__(self, entries: dict[str, Entry], shards: list[tuple[pathlib.Path, np.ndarray]]):
        super().__init__(entries)
        self._shards = shards  # each file with all its bytes, uint8
        self._compared: set[str] = set()

    def __getitem__(self, name: str) -> np.ndarray:
        """The variable (KeyError: there is none). InputError: its data is damaged, or strings or resources."""
        entry = self.entries[name]
        path, data = self._shards[entry.shard]
        if entry.dtype not in DTYPES:
            kind = {7: " (string)", 20: " (resource)", 21: " (variant)"}.get(entry.dtype, "")
            what = f"{name!r} has TensorFlow's type {entry.dtype}{kind}, which cannot be read"
            raise InputError(f"{path}: {what}; save the checkpoint again without it")
        data = data[entry.offset : entry.offset + entry.size]
        if name not in self._compared and (actual := masked_crc(data)) != entry.checksum:
            both = f"the data of {name!r} has the checksum {actual:#010x}, but the index says {entry.checksum:#010x}"
            raise InputError(f"{path}: {both}; damaged, or of two checkpoints: copy or download them again")
        self._compared.add(name)
        return data.view(DTYPES[entry.dtype]).reshape(entry.shape)


def open_bundle(prefix: pathlib.Path) -> TensorBundle:
    """The variables of the checkpoint PREFIX.index, PREFIX.data-*; no data is read until a variable is asked for.

    InputError for a file that is absent, damaged or of another kind (V1, big-endian, variables in pieces). A TF2
    object-based checkpoint is not refused; it holds `_CHECKPOINTABLE_OBJECT_GRAPH`.
    """
    index = pathlib.Path(f"{prefix}.index")
    if not os.path.isfile(index):
        raise InputError(_no_index(prefix, index))
    num_shards, entries = read_index(index)
    shards = []
    for shard in range(num_shards):
        path = pathlib.Path(f"{prefix}.data-{shard:05d}-of-{num_shards:05d}")
        if not os.path.isfile(path):
            raise InputError(f"{path}: no such file; {index.name} goes with {num_shards} of them: put it there")
        shards.append((path, np.frombuffer(map_file(path), np.uint8)))
    for name, entry in entries.items():
        path, data = shards[entry.shard]
        if (end := entry.offset + entry.size) > len(data):
            raise InputError(f"{path}: {name!r} should end at byte {end}, the file ends at {len(data)}; {COPY_AGAIN}")
    return TensorBundle(entries, shards)


def read_index(path: pathlib.Path) -> tuple[int, dict[str, Entry]]:
    """The number of data files, and what an index file says of each variable. Raises InputError as `open_bundle`."""
    try:
        rows = rows_of_table(np.frombuffer(map_file(path), np.uint8))
        key, value = next(rows, (None, b""))
        if key != b"":
            raise Fault("it holds no header")
        num_shards = _num_shards(value)
        return num_shards, dict(_entry(key, value, num_shards) for key, value in rows)
    except Fault as fault:
        raise InputError(f"{path}: {fault}") from None


def is_v1(path: pathlib.Path) -> bool:
    """Whether a file is a checkpoint of the format before this one, which was a single table."""
    return path.suffix != ".index" and path.is_file() and map_file(path)[-8:] == MAGIC


def _no_index(prefix: pathlib.Path, index: pathlib.Path) -> str:
    """Why there is nothing to open."""
    if is_v1(prefix):
        return f"{prefix}: TensorFlow's old V1 format, which cannot be read; load it there and save with SaverDef.V2"
    folder = prefix if os.path.isdir(prefix) else prefix.parent
    prefixes = ", ".join(str(path).removesuffix(".index") for path in sorted(folder.glob("*.index"))[:3])
    such = f", such as {prefixes}" if prefixes else ""
    return f"{index}: no such file; name a checkpoint by the part before .index and .data-00000-of-00001{such}"


def _message(data: bytes) -> Message:
    """A protobuf message's values by (field, wire type), as int for _VARINT and else as bytes."""
    fields: Message = {}
    at = 0
    while at < len(data):
        (tag,), at = varints(data, at, 1)
        wire = tag & 7
        if wire not in (_VARINT, _FIXED64, _BYTES, _FIXED32):
            raise Fault(f"a message has the wire type {wire}, which does not exist")
        (value,), at = ([_FIXED[wire]], at) if wire in _FIXED else varints(data, at, 1)
        if wire != _VARINT and at + value > len(data):
            raise Fault("a message is cut short")
        fields.setdefault((tag >> 3, wire), []).append(value if wire == _VARINT else data[at : at + value])
        at += 0 if wire == _VARINT else value
    return fields


def _number(message: Message, field: int) -> int:
    """An integer field, 0 where it is absent; negative ones are stored as their 64-bit complement."""
    value: int = message.get((field, _VARINT), [0])[-1]
    return value - (1 << 64) if value >> 63 else value


def _submessage(message: Message, field: int) -> Message:
    return _message(b"".join(message.get((field, _BYTES), [])))  # parts of one are merged, as protobuf does


def _num_shards(data: bytes) -> int:
    """The number of data files in a BundleHeaderProto, of a checkpoint that can be read."""
    message = _message(data)
    num_shards, oldest_reader = _number(message, 1), _number(_submessage(message, 3), 2)
    if _number(message, 2) != 0:
        raise Fault("its numbers are big-endian, which cannot be read", "save it again on a little-endian machine")
    if oldest_reader > _VERSION:
        raise Fault(f"it needs a reader of version {oldest_reader}, not {_VERSION}", "save it with an older TensorFlow")
    if num_shards < 1:
        raise Fault(f"it names {num_shards} data files")
    return num_shards


def _entry(key: bytes, data: bytes, num_shards: int) -> tuple[str, Entry]:
    """A variable's name and its BundleEntryProto, checked as far as the index alone allows."""
    message, name = _message(data), spelled(key)
    if key.startswith(b"\0") or (7, _BYTES) in message:
        # A piece's key: zero byte, the variable's name, zero byte, more (util/saved_tensor_slice_util.cc).
        name = spelled(key.lstrip(b"\0").split(b"\0")[0])
        raise Fault(f"{name} was saved in pieces (partitioned), which cannot be read", "save it with whole variables")
    described = _submessage(message, 2)
    axes = described.get((2, _BYTES), [])
    if len(axes) > _MAX_AXES or _number(described, 3):
        raise Fault(f"{name} has {len(axes)} axes (known: up to {_MAX_AXES}), or a shape that is not known")
    shape = tuple(_number(_message(axis), 1) for axis in axes)
    dtype, shard, offset, size = (_number(message, field) for field in (1, 3, 4, 5))
    itemsize = DTYPES[dtype].itemsize if dtype in DTYPES else 0
    if min(shape, default=0) < 0 or math.prod(max(axis, 1) for axis in shape) * max(itemsize, 1) >= 1 << 63:
        raise Fault(f"{name} has the impossible shape {list(shape)}")
    if itemsize and size != math.prod(shape) * itemsize:
        raise Fault(f"{name} has {size} bytes, but shape {list(shape)} of {DTYPES[dtype]} is another number of them")
    if not 0 <= shard < num_shards or min(offset, size) < 0:
        raise Fault(f"{name} has {size} bytes at byte {offset} of data file {shard} (there are {num_shards})")
    try:
        checksum = int.from_bytes(message.get((6, _FIXED32), [b""])[-1], "little")
        return key.decode(), Entry(dtype, shape, shard, offset, size, checksum)
    except UnicodeDecodeError:
        raise Fault(f"{name} is no name in UTF-8") from None
