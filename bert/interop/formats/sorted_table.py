"""Reads the index of a TensorFlow checkpoint: a sorted table of keys and values, in blocks with checksums.

It is LevelDB's table, with its own magic number; tensor_bundle.py knows what the keys and values mean.

Source: TensorFlow's core/lib/io/format.cc and table_format.txt; LevelDB's doc/table_format.md; snappy's
format_description.txt.
"""

from collections.abc import Iterator

import google_crc32c
import numpy as np

from bert.extras import check_installed

MAGIC = bytes.fromhex("57fb808b247547db")  # the last bytes of a table
COPY_AGAIN = "it is damaged or cut short: copy or download it again"
_FOOTER, _TRAILER = 48, 5  # bytes: the end of a table; after each block, its kind and its checksum
_SNAPPY_GAIN = 22  # three bytes of snappy make 64 at most
_MAX_NAMES = 1 << 26  # bytes of all names together: each may repeat the one before it at no cost to the file


class Fault(Exception):
    """A fault of a table and the way out; callers add the file's name."""

    def __init__(self, fault: str, way_out: str = COPY_AGAIN):
        super().__init__(f"{fault}; {way_out}")


def rows_of_table(table: np.ndarray) -> Iterator[tuple[bytes, bytes]]:
    """All keys with their values, in strictly rising order."""
    footer = table[-_FOOTER:].tobytes()
    if footer[-8:] != MAGIC:
        raise Fault(f"no checkpoint's index, for it ends in {footer[-8:].hex() or 'nothing'}, not {MAGIC.hex()}")
    _, _, offset, size = varints(footer, 0, 4)[0]  # the first two: the table's own metadata, which is empty
    last, names, free = None, 0, 0
    for _, place in _rows_of_block(_block(table, offset, size)):
        offset, size = varints(place, 0, 2)[0]
        if offset < free:
            raise Fault(f"two blocks overlap at byte {offset}")
        free = offset + size + _TRAILER
        for key, value in _rows_of_block(_block(table, offset, size)):
            names += len(key)
            if names > _MAX_NAMES:
                raise Fault(f"its names have more than {_MAX_NAMES} bytes together")
            if last is not None and key <= last:
                raise Fault(f"{spelled(key)} comes after {spelled(last)}, but names are sorted, and each is there once")
            last = key
            yield key, value


def _block(table: np.ndarray, offset: int, size: int) -> bytes:
    """The content of one block, its checksum compared."""
    end = offset + size
    if end + _TRAILER > len(table) - _FOOTER:
        raise Fault(f"a block of {size} bytes at byte {offset} reaches beyond the table of {len(table)} bytes")
    stored = int.from_bytes(table[end + 1 : end + _TRAILER].tobytes(), "little")
    if (actual := masked_crc(table[offset : end + 1])) != stored:
        raise Fault(f"the block at byte {offset} has the checksum {actual:#010x}, but {stored:#010x} is stored")
    content, kind = table[offset:end].tobytes(), int(table[end])
    if kind == 0:
        return content
    if kind != 1:
        raise Fault(f"the block at byte {offset} is of kind {kind}; known are 0 (plain) and 1 (snappy)")
    check_installed("pyarrow", "pyarrow", "arrow", "a checkpoint compressed by snappy")
    import pyarrow  # slow to import, and few checkpoints need it

    ((length,), _) = varints(content, 0, 1)
    if length > _SNAPPY_GAIN * size:
        raise Fault(f"the block at byte {offset} cannot hold {length} bytes in {size}")
    try:
        return bytes(pyarrow.Codec("snappy").decompress(content, length, asbytes=True))
    except (OSError, pyarrow.ArrowException) as error:
        raise Fault(f"the block at byte {offset} cannot be decompressed ({error})") from None


def _rows_of_block(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """A block's keys and values; a key is stored without the beginning that it shares with the one before it."""
    # The end lists the rows that store their whole key, for binary search.
    end = len(block) - 4 - 4 * int.from_bytes(block[-4:], "little")
    if end < 0:
        raise Fault("a block is shorter than its own list of rows")
    at, key = 0, b""
    while at < end:
        (shared, unshared, length), at = varints(block, at, 3)
        if shared > len(key) or at + unshared + length > end:
            raise Fault(f"the row after {spelled(key)} reaches beyond its block")
        key = key[:shared] + block[at : at + unshared]
        at += unshared + length
        yield key, block[at - length : at]


def spelled(key: bytes) -> str:
    """A key for a message: on one line, and not too long."""
    return repr(key[:200].decode("utf-8", "backslashreplace"))


def varints(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """Numbers from a position on, each 0 to 2^64 - 1 and seven bits a byte; and the position after them."""
    values = []
    for _ in range(count):
        value = shift = 0
        more = True
        while more:
            if at >= len(data):
                raise Fault("it ends within a number")
            value |= (data[at] & 127) << shift
            more, shift, at = data[at] > 127, shift + 7, at + 1
            if value >> 64 or shift > 70:
                raise Fault("a number has more than 64 bits")
        values.append(value)
    return values, at


def masked_crc(data: np.ndarray) -> int:
    """CRC-32C as it is stored: rotated, plus a constant (LevelDB's util/crc32c.h)."""
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
