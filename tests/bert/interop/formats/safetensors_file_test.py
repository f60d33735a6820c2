"""safetensors: damage is found by the checksums of our own files; headers that cannot be are refused in one line."""

import json

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from bert.errors import InputError
from bert.interop.formats import weight_files
from bert.interop.formats.safetensors_file import CHECKSUMS, open_safetensors, write_safetensors
from tests.bert.refusals import refused

TENSORS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "empty": np.zeros((0, 4), np.float32),
    "half": np.ones(3, ml_dtypes.bfloat16),
    "number": np.array(3.0),
}


@pytest.fixture
def ours(tmp_path):
    weight_files.write(tmp_path, iter(TENSORS.items()), largest=10**6)
    return tmp_path / "model.safetensors"


def read(path):
    return {name: np.array(tensor) for name, tensor in open_safetensors(path).items()}


def same(tensors):
    return tensors.keys() == TENSORS.keys() and all(
        tensors[name].dtype == tensor.dtype and np.array_equal(tensors[name], tensor)
        for name, tensor in TENSORS.items()
    )


def test_any_bit_that_turns_is_found_or_harmless(ours):
    """In the tensors always; in the header (a bit of each byte is turned) it may be in words that nothing reads."""
    data = ours.read_bytes()
    assert same(read(ours))
    start, harmless = 8 + int.from_bytes(data[:8], "little"), 0
    for bit in (*(8 * i + i % 8 for i in range(start)), *range(8 * start, 8 * len(data))):
        ours.write_bytes(data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :])
        try:
            found = read(ours)
        except InputError as error:
            assert str(error).startswith(f"{ours}: ")  # noqa: PT017
            continue
        assert bit < 8 * start, f"bit {bit} of the tensors"
        assert same(found), f"bit {bit}"
        harmless += 1
    assert harmless < start / 4


def test_damage_is_refused_however_often_it_is_asked_for(tmp_path):
    weight_files.write(tmp_path, iter([("a", TENSORS["a"])]), largest=10**6)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    tensors = open_safetensors(path)
    for _ in range(2):
        with refused("model.safetensors: a ", "checksum", "again"):
            tensors["a"]


def test_files_without_checksums_are_read(tmp_path):
    path = tmp_path / "theirs.safetensors"
    safetensors.numpy.save_file(TENSORS, path, metadata={"format": "pt"})
    assert same(read(path))


def test_others_read_our_files(ours):
    assert same(safetensors.numpy.load_file(ours))


def with_header(path, text, data=b""):
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def about(shape, start, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


BROKEN = {
    "65 axes": ({"w": about([1] * 65, 0, 4)}, 4, "impossible shape"),
    "a size that no index can count": ({"w": about([0, 2**62], 0, 0)}, 0, "impossible shape"),
    "a size beyond 64 bits": ({"w": about([0, 2**64], 0, 0)}, 0, "cannot be read"),
    "more bytes than the file": ({"w": about([2**40, 2**20], 0, 2**62)}, 4, "cannot be read"),
    "an overlap": ({"v": about([2], 0, 8), "w": about([2], 4, 12)}, 12, "cannot be read"),
    "a hole": ({"v": about([1], 0, 4), "w": about([1], 8, 12)}, 12, "cannot be read"),
    "bytes that are no one's": ({"w": about([1], 0, 4)}, 8, "cannot be read"),
    "an end before the start": ({"w": about([1], 4, 0)}, 4, "cannot be read"),
    "a size below zero": ({"w": about([-1], 0, 4)}, 4, "cannot be read"),
    "a type of no name": ({"w": about([1], 0, 4, "F33")}, 4, "cannot be read"),
    "a type that NumPy lacks": ({"w": about([4], 0, 4, "F8_E4M3")}, 4, "w holds F8_E4M3"),
    "complex numbers": ({"w\x1b[2J": about([1], 0, 8, "C64")}, 8, r"w\\x1b\[2J holds C64"),
    "a name that stands twice": (
        b'{"w": %(t)b, "w": %(t)b}' % {b"t": json.dumps(about([1], 0, 4)).encode()},
        4,
        "'w' stands twice",
    ),
    "nesting": (b"[" * 100_000, 0, "cannot be read"),
    "no object": (b"[]", 0, "cannot be read"),
    "metadata that is no text": ({"__metadata__": {"a": 1}}, 0, "cannot be read"),
    "checksums that are none": ({"__metadata__": {CHECKSUMS: "["}, "w": about([1], 0, 4)}, 4, "checksums"),
    "checksums of other tensors": ({"__metadata__": {CHECKSUMS: '{"v": "0"}'}, "w": about([1], 0, 4)}, 4, "checksums"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_headers_that_cannot_be(tmp_path, fault):
    header, size, words = BROKEN[fault]
    path = with_header(tmp_path / "model.safetensors", header, bytes(size))
    with pytest.raises(InputError, match=rf"^{path}: .*{words}") as caught:
        read(path)
    assert str(caught.value).isprintable()
    assert "; " in str(caught.value), "a way out"


def test_a_header_larger_than_any_model_has_is_not_read(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes((2**40).to_bytes(8, "little") + b"{}")
    with pytest.raises(InputError, match="header has 1099511627776 bytes"):
        read(path)


def test_equal_tensors_give_equal_files(tmp_path):
    """The order of the metadata is the same in every file, whatever the library makes of it."""
    tensors = {"b": np.arange(3, dtype=np.float32), "a": np.ones((2, 2), np.float16)}
    contents = set()
    for i in range(8):
        write_safetensors(tmp_path / f"{i}", tensors, {"one": "ä", "two": "2", "three": "3"})
        contents.add((tmp_path / f"{i}").read_bytes())
    assert len(contents) == 1
    np.testing.assert_array_equal(open_safetensors(tmp_path / "0")["b"], tensors["b"])
