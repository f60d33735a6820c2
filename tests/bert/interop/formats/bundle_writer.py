"""A small writer of TensorFlow's checkpoint format that can also lie, and how the tests of its readers compare."""

import google_crc32c
import numpy as np
import pyarrow

from bert.interop import parameters
from bert.interop.names.bert import GOOGLE

# TensorFlow's numbers of the types (framework/types.proto).
NUMBERS = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "int64": 9, "bool": 10}
NUMBERS |= {"bfloat16": 14, "float16": 19}
INTEGER, FIXED32, BYTES = 0, 5, 2  # wire types
MAGIC = bytes.fromhex("57fb808b247547db")  # TensorFlow's core/lib/io/format.h, kTableMagicNumber


def varint(number):
    number %= 1 << 64
    more, last = [], number
    while last > 127:
        more.append(last & 127 | 128)
        last >>= 7
    return bytes([*more, last])


def message(*fields):
    """A protobuf message of (field, wire type, value)."""
    encoded = b""
    for field, wire, value in fields:
        encoded += varint(field << 3 | wire)
        encoded += varint(value) if wire == INTEGER else varint(len(value)) * (wire == BYTES) + value
    return encoded


def masked(data):
    crc = google_crc32c.value(bytes(data))
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def header(shards=1, endianness=0, min_consumer=0):
    version = message((1, INTEGER, 1), (2, INTEGER, min_consumer))
    return message((1, INTEGER, shards), (2, INTEGER, endianness), (3, BYTES, version))


def entry(dtype, shape, shard, offset, size, crc, *more):
    axes = message(*((2, BYTES, message((1, INTEGER, axis))) for axis in shape))
    numbers = [(field, INTEGER, value) for field, value in ((1, dtype), (3, shard), (4, offset), (5, size))]
    return message(*numbers, (2, BYTES, axes), (6, FIXED32, crc.to_bytes(4, "little")), *more)


def block_of(rows, every=3):
    """A block's content: each `every`-th row stores its whole key, the others what differs from the key before."""
    content, starts, last = b"", [], b""
    for i, (key, value) in enumerate(rows):
        shared = 0
        if i % every:
            shared = next(
                (n for n, (a, b) in enumerate(zip(key, last, strict=False)) if a != b), min(len(key), len(last))
            )
        else:
            starts.append(len(content))
        content += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return content + b"".join(n.to_bytes(4, "little") for n in (*starts, len(starts)))


def table_of(rows, per_block=4, snappy=False, place=lambda i, *at: at, kind=None, content=block_of):
    """A whole table of rows (key, value); `place` may lie about where block i is, `content` about what is in it."""
    table = b""

    def add(block):
        nonlocal table
        if snappy:
            block = pyarrow.Codec("snappy").compress(block, asbytes=True)
        offset, tail = len(table), bytes([snappy if kind is None else kind])
        table += block + tail + masked(block + tail).to_bytes(4, "little")
        return offset, len(block)

    blocks = [rows[i : i + per_block] for i in range(0, len(rows), per_block)]
    places = [place(i, *add(content(block))) for i, block in enumerate(blocks)]
    handles = [b"".join(map(varint, pair)) for pair in places]
    listed = [(block[-1][0], handle) for block, handle in zip(blocks, handles, strict=True)]
    ends = [add(block_of([])), add(content(listed))]
    return table + b"".join(varint(n) for pair in ends for n in pair).ljust(40, b"\0") + MAGIC


def write_data(prefix, variables, shards=1):
    """The data files; returns the index's rows."""
    data, rows = [b""] * shards, [(b"", header(shards))]
    for i, name in enumerate(sorted(variables, key=str.encode)):
        raw, at = variables[name].tobytes(), i % shards
        place = (at, len(data[at]), len(raw), masked(raw))
        rows.append((name.encode(), entry(NUMBERS[variables[name].dtype.name], variables[name].shape, *place)))
        data[at] += raw
    for i, content in enumerate(data):
        prefix.with_name(f"{prefix.name}.data-{i:05d}-of-{shards:05d}").write_bytes(content)
    return rows


def write_checkpoint(prefix, variables, *more, shards=1, change=lambda rows: rows, **options):
    """PREFIX.index and PREFIX.data-* of these variables (and more rows); `options` are table_of's."""
    rows = sorted([*write_data(prefix, variables, shards), *more])
    prefix.with_name(f"{prefix.name}.index").write_bytes(table_of(change(rows), **options))
    return prefix


def variables_of(found):
    """The parameters of a model under Google's names."""
    return dict(parameters.from_params(found.params, found.config, GOOGLE))


def assert_same(tensors, expected):
    """The same names; each of the same type, shape and values."""
    assert sorted(tensors) == sorted(expected)
    for name, value in expected.items():
        assert (tensors[name].dtype, tensors[name].shape) == (value.dtype, value.shape), name
        np.testing.assert_array_equal(tensors[name], value, err_msg=name)
