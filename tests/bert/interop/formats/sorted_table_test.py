"""The sorted table of a checkpoint's index: rows come back, and no lie in it is believed for its right checksum."""

import numpy as np
import pytest

from bert.interop.formats.sorted_table import Fault, rows_of_table, varints
from tests.bert.interop.formats.bundle_writer import table_of, varint

ROWS = [(f"name{i:02d}".encode(), bytes([i]) * i) for i in range(12)]


def rows(table):
    return list(rows_of_table(np.frombuffer(table, np.uint8)))


@pytest.mark.parametrize("per_block", [1, 4, 100])
@pytest.mark.parametrize("snappy", [False, True])
def test_rows_come_back_in_order(per_block, snappy):
    assert rows(table_of(ROWS, per_block=per_block, snappy=snappy)) == ROWS


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**32, 2**64 - 1])
def test_numbers_of_seven_bits_a_byte(number):
    data = varint(number)
    assert varints(b"x" + data + data, 1, 2) == ([number, number], 1 + 2 * len(data))


FAULTY_BLOCKS = {
    "beyond the table": ({"place": lambda i, at, size: (at, 10**6)}, "a block of 1000000 bytes at byte 0 reaches"),
    "offset near 2^64": ({"place": lambda i, at, size: (2**64 - 1, size)}, "at byte 18446744073709551615 reaches"),
    "beside itself": ({"place": lambda i, at, size: (at + 1, size)}, "the block at byte 1 has the checksum 0x"),
    "the same twice": ({"place": lambda i, at, size: (0, size)}, "two blocks overlap at byte 0"),
    "of a new kind": ({"kind": 2}, "is of kind 2"),
    "plain, called snappy": ({"kind": 1}, "cannot be"),
    "2^31 bytes of snappy": ({"kind": 1, "content": lambda rows: varint(2**31) + b"abc"}, "cannot hold 2147483648"),
    "2^64 bytes of snappy": ({"kind": 1, "content": lambda rows: varint(2**64 - 1) + b"a"}, "cannot hold 1844"),
    "false snappy": ({"kind": 1, "content": lambda rows: varint(9) + b"abcdefghi"}, "cannot be decompressed"),
    "no content": ({"content": lambda rows: b""}, "shorter than its own list"),
    "2^32 whole rows": ({"content": lambda rows: bytes(8) + b"\xff" * 4}, "shorter than its own list"),
    "more shared than there is": ({"content": lambda rows: b"\x01\x00\x00" + bytes(4)}, "the row after '' reaches"),
    "a value of 2^63 bytes": ({"content": lambda rows: b"\0\0" + varint(2**63) + bytes(4)}, "the row after '' reaches"),
    "a row cut short": ({"content": lambda rows: b"\0\5\0abc" + bytes(4)}, "the row after '' reaches"),
}


@pytest.mark.parametrize("fault", FAULTY_BLOCKS)
def test_what_a_table_says_is_not_believed(fault):
    options, reason = FAULTY_BLOCKS[fault]
    with pytest.raises(Fault, match=f"{reason}.*; "):
        rows(table_of(ROWS, **options))
