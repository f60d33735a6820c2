"""PyTorch files without PyTorch: both containers give the same tensors, and what torch.save never writes is refused.

The files are written here, opcode by opcode; torch_pickle_test.py tests what their pickles may do.
"""

import collections
import pathlib
import pickle
import struct
import tracemalloc
import zipfile

import ml_dtypes
import numpy as np
import pytest

from bert.errors import InputError
from bert.interop.formats import torch_pickle
from bert.interop.formats.torch_file import open_torch
from tests.bert.interop.formats.torch_writer import (
    CONTAINERS,
    MAGIC,
    NUMBERS,
    ORDERED,
    REBUILD,
    STORAGES,
    Raw,
    assert_equal,
    assert_refused,
    call,
    named,
    opcodes,
    pickled,
    stored,
    tensor,
    with_state,
)  # fmt: skip
from tests.bert.refusals import refused


@pytest.mark.parametrize("file", ["pytorch_model.bin", "legacy.bin"])
def test_files_of_pytorch_hold_what_the_safetensors_file_holds(golden, tiny_tensors, file):
    """Both containers, as PyTorch wrote them; the older one with gamma and beta."""
    found = open_torch(golden / "tiny_bert_torch" / file)
    got = {name.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias"): name for name in found}
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}  # safetensors stores them once
    assert got.keys() - tiny_tensors.keys() == tied
    for name, value in tiny_tensors.items():
        assert_equal(found[got[name]], value)


DTYPES = {
    **{"DoubleStorage": np.float64, "FloatStorage": np.float32, "HalfStorage": np.float16},
    **{"BFloat16Storage": ml_dtypes.bfloat16, "LongStorage": np.int64, "IntStorage": np.int32},
    **{"ShortStorage": np.int16, "CharStorage": np.int8, "ByteStorage": np.uint8, "BoolStorage": np.bool_},
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_dtype_comes_as_it_is_stored(write_torch, container):
    values = {kind: np.array([0, 1, 1, 0], dtype) for kind, dtype in DTYPES.items()}
    held = {kind: tensor((4,), (1,), count=4, key=kind, kind=kind, container=container) for kind in values}
    found = open_torch(write_torch(container, held, {kind: (4, value.tobytes()) for kind, value in values.items()}))
    assert list(found) == list(DTYPES)
    for kind, value in values.items():
        assert_equal(found[kind], value)


LAYOUTS = {
    "whole": ((2, 3), (3, 1), 0, NUMBERS.reshape(2, 3)),
    "transposed": ((3, 2), (1, 3), 0, NUMBERS.reshape(2, 3).T),
    "column": ((2,), (3,), 1, NUMBERS[1::3]),
    "scalar": ((), (), 5, NUMBERS[5]),
    "one axis of size 1 with any stride": ((1, 6), (10**40, 1), 0, NUMBERS[None]),
    "overlapping": ((3, 2), (1, 1), 2, np.array([[2, 3], [3, 4], [4, 5]], np.float32)),
    "empty": ((0,), (1,), 0, NUMBERS[:0]),
    "empty at the end": ((0, 3), (3, 1), 6, np.zeros((0, 3), np.float32)),
    "empty and wide": ((2, 0, 768), (0, 768, 1), 10**30, np.zeros((2, 0, 768), np.float32)),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_layouts_share_a_storage_that_nobody_can_write(write_torch, container):
    held = {name: tensor(*layout[:3], container=container) for name, layout in LAYOUTS.items()}
    found = open_torch(write_torch(container, call(ORDERED, ([[name, value] for name, value in held.items()],))))
    for name, (*_, want) in LAYOUTS.items():
        assert_equal(found[name], want)
        with pytest.raises(ValueError, match=r"WRITEABLE|writeable"):
            found[name].flags.writeable = True
    assert np.shares_memory(found["whole"], found["column"])


def test_what_else_torch_writes_for_a_state_dict(write_torch):
    """Parameters, the first rebuild function, versions of modules on the dictionary, views of storages."""
    old = call(named("torch._utils", "_rebuild_tensor"), (stored(), 0, (6,), (1,)))
    parameter = call(named("torch._utils", "_rebuild_parameter"), (tensor(), True, call(ORDERED, ())))
    ordered = Raw(opcodes(call(ORDERED, ())) + opcodes({"old": old, "parameter": parameter})[1:])
    found = open_torch(write_torch("archive", with_state(ordered, {"_metadata": call(ORDERED, ())})))
    assert_equal(found["old"], NUMBERS)
    assert_equal(found["parameter"], NUMBERS.reshape(2, 3))
    view = tensor((2,), (1,), 1, container="stream", view=("9", 2, 3))
    assert_equal(open_torch(write_torch("stream", {"view": view}))["view"], NUMBERS[3:5])


def test_opening_reads_no_data(write_torch):
    """A tensor of zeros that no disk holds is a view of its file."""
    path = write_torch(
        "stream", {"w": tensor((1 << 26,), (1,), count=1 << 26, container="stream")}, {"0": (1 << 26, b"")}
    )
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size + (1 << 28))
    tracemalloc.start()
    found = open_torch(path)["w"]
    assert tracemalloc.get_traced_memory()[1] < 5 * torch_pickle.LARGEST_PICKLE + 10**6, (
        "what is looked through for pickles"
    )
    tracemalloc.stop()
    assert found.nbytes == 1 << 28
    assert not found[:: 1 << 20].any()


HUGE = 1 << 62
BROKEN_TENSORS = {
    "beyond the end": (tensor((7,), (1,)), "leaves the 6 elements"),
    "offset beyond the end": (tensor((1,), (1,), 6), "leaves the 6 elements"),
    "stride beyond the end": (tensor((2, 3), (4, 1)), "leaves the 6 elements"),
    "offset below 0": (tensor(offset=-1), "whole numbers"),
    "stride below 0": (tensor((2,), (-1,), 1), "whole numbers"),
    "shape below 0": (tensor((-2, -3)), "whole numbers"),
    "shape of text": (tensor(("2", "3")), "whole numbers"),
    "truth for a size": (tensor((True, 3)), "whole numbers"),
    "offset of a list": (tensor(offset=[]), "whole numbers"),
    "lists": (tensor([2, 3], [3, 1]), "no storage, shape or strides"),
    "fewer strides": (tensor((2, 3), (3,)), "cannot be"),
    "65 axes": (tensor((1,) * 65, (1,) * 65), "cannot be"),
    "empty and too wide": (tensor((0, HUGE, HUGE), (1, 1, 1)), "cannot be"),
    "enormous": (tensor((HUGE, HUGE), (HUGE, HUGE)), "cannot be"),
    "one number expanded": (tensor((10**12,), (0,)), "more elements than the 6 stored"),
    "wrapping around 64 bits": (tensor((2,), (1 << 64,)), "leaves the 6 elements"),
    "no storage": (call(REBUILD, ("0", 0, (1,), (1,), False, None)), "no storage"),
    "negated": (call(REBUILD, (stored(), 0, (1,), (1,), False, None, {"neg": True})), "negated"),
    "text": ("a weight", "holds w (str)"),
    "a storage": (stored(), "holds w (storage)"),
    "a dictionary": ({"w": tensor()}, "holds w (dictionary)"),
    "fewer arguments": (call(REBUILD, (stored(),)), "TypeError"),
    "a parameter of text": (call(named("torch._utils", "_rebuild_parameter"), ("x", True, None)), "holds w (str)"),
    "a type that is called": (call(named("torch", "FloatStorage"), ()), "TypeError"),
}


@pytest.mark.parametrize("fault", BROKEN_TENSORS)
def test_tensors_that_cannot_be(write_torch, fault):
    value, words = BROKEN_TENSORS[fault]
    assert_refused(write_torch("archive", {"w": value}), words)


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_file_that_is_cut_short_anywhere(write_torch, container):
    held = call(ORDERED, ([["w", tensor(container=container)]],))
    path = write_torch(container, held)
    whole = path.read_bytes()
    assert_equal(open_torch(path)["w"], NUMBERS.reshape(2, 3))
    for length in range(len(whole)):
        short = path.with_name("short.bin")
        short.write_bytes(whole[:length])
        assert_refused(short)


@pytest.mark.parametrize("container", CONTAINERS)
def test_damage_of_any_byte_is_refused_or_harmless(write_torch, container):
    """Whatever one byte becomes: refused, or tensors that can be read to their last element."""
    path = write_torch(container, {"w": tensor((3, 2), (1, 3), container=container)})
    whole = path.read_bytes()
    refusals = 0
    for position in range(len(whole)):
        for value in (0xFF, whole[position] ^ 1):
            path.write_bytes(whole[:position] + bytes([value]) + whole[position + 1 :])
            try:
                tensors = open_torch(path)
            except InputError:
                refusals += 1
            else:
                assert all(len(array.tobytes()) == array.nbytes for array in tensors.values())
    assert refusals > len(whole)


def test_what_the_system_refuses_has_one_message(write_torch, monkeypatch):
    """That of the file's reader, not an exception inside another line."""
    path = write_torch("archive", {"w": tensor()})

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "open", refuse)
    with refused(f"{path}: cannot be read (Permission denied); check the path and its permissions"):
        open_torch(path)


def without(name):
    return lambda entries: [(key, data) for key, data in entries if key != name]


@pytest.fixture
def changed(write_torch, tmp_path):
    """changed(change, compression): an archive with other entries than torch.save writes."""

    def write(change, compression=zipfile.ZIP_STORED):
        path = tmp_path / "changed.bin"
        with (
            zipfile.ZipFile(write_torch("archive", {"w": tensor()})) as old,
            zipfile.ZipFile(path, "w", compression) as new,
        ):
            for name, data in change([(entry.filename, old.read(entry)) for entry in old.infolist()]):
                new.writestr(name, data)
        return path

    return write


ARCHIVES = {
    "no pickle": (without("archive/data.pkl"), 0, "0 entries */data.pkl"),
    "no storage": (without("archive/data/0"), 0, "no entry for storage 0"),
    "two pickles": (lambda entries: [*entries, ("b/data.pkl", dict(entries)["archive/data.pkl"])], 0, "2 entries"),
    "compressed": (list, zipfile.ZIP_DEFLATED, "archive/byteorder is compressed"),
    "a name twice": (lambda entries: [*entries, ("archive/data/0", bytes(24))], 0, "two entries of one name"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("fault", ARCHIVES)
def test_archives_that_torch_does_not_write(changed, fault):
    change, compression, words = ARCHIVES[fault]
    assert_refused(changed(change, compression), words)


def test_archives_of_other_versions_of_torch(write_torch, changed):
    """Without the order of bytes, and under another prefix."""
    for path in (changed(without("archive/byteorder")), write_torch("archive", {"w": tensor()}, prefix="model.1")):
        assert_equal(open_torch(path)["w"], NUMBERS.reshape(2, 3))


def test_an_archive_whose_directory_lies(write_torch):
    """Offsets and sizes in the directory that do not lead to the entry."""
    path = write_torch("archive", {"w": tensor()})
    whole = path.read_bytes()
    entry = whole.rindex(b"PK\1\2")  # that of archive/data/0, the last one
    for at, value, words in [
        (42, 0, "archive/data/0 is not where"),
        (42, 1, "archive/data/0 is not where"),
        (42, len(whole) - 9, "unpack"),
        (42, 0x7FFFFFFF, "error"),
        (24, 0x7FFFFFFF, "archive/data/0 is not where"),
        (24, 20, "has 20 bytes for it"),
        (8, 1, "encrypted"),
    ]:
        field = struct.pack("<H" if at == 8 else "<I", value)
        path.write_bytes(whole[: entry + at] + field + whole[entry + at + len(field) :])
        assert_refused(path, words)
    path.write_bytes(whole.replace(b"PK\3\4", b"PK\3\5").replace(b"PK\3\5", b"PK\3\4", 2))
    assert_refused(path, "archive/data/0 is not where")
    # Offsets count from where the directory says that it is: this puts the last entry before the file's first byte.
    shifted = bytearray(whole)
    places = [at + 42 for at in range(len(whole)) if whole[at : at + 4] == b"PK\1\2" and at != entry]
    for at in [*places, len(whole) - 6]:
        shifted[at : at + 4] = struct.pack("<I", int.from_bytes(whole[at : at + 4], "little") + len(whole))
    path.write_bytes(shifted)
    assert_refused(path, "cannot be read")


HELD = {"w": tensor(container="stream")}
TWICE = {**HELD, "v": tensor(container="stream", kind="IntStorage")}
STREAMS = {
    "fewer elements": (HELD, {"0": (5, NUMBERS.tobytes())}, "storage 0 has 6 elements, and 5"),
    "more bytes": (HELD, {"0": (6, bytes(25))}, "1 bytes after its last storage"),
    "another storage": (HELD, {"1": (6, bytes(24))}, "other storages"),
    "a storage too many": (HELD, STORAGES | {"1": (0, b"")}, "other storages"),
    "enormous": (
        {"w": tensor(container="stream", count=1 << 62)},
        {"0": (1 << 62, NUMBERS.tobytes())},
        f"ends before the {1 << 62} elements",
    ),
    "a storage of two types": (TWICE, STORAGES, "storage 0 in two ways"),
}


@pytest.mark.parametrize("fault", STREAMS)
def test_streams_that_torch_does_not_write(write_torch, fault):
    held, storages, words = STREAMS[fault]
    assert_refused(write_torch("stream", held, storages), words)


@pytest.mark.parametrize("container", CONTAINERS)
def test_numbers_of_a_big_endian_machine_are_refused(write_torch, container):
    assert_refused(write_torch(container, {"w": tensor(container=container)}, little=False), "big-endian")


FILES = {
    "empty": (b"", "is empty"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "is a Git LFS pointer"),
    "one byte": (b"\x80", "cannot be read"),
    "four bytes": (b"PK\3\4", "cannot be read"),
    "tar": (bytes(257) + b"ustar" + bytes(300), "tar archive"),
    "pickle": (pickle.dumps(collections.OrderedDict(w=1)), "no file of torch.save"),
    "magic number": (pickled(MAGIC + 1) + pickled(1001), "no file of torch.save"),
    "protocol": (pickled(MAGIC) + pickled(1002), "no file of torch.save"),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_that_are_none(tmp_path, kind):
    path = tmp_path / "pytorch_model.bin"
    content, words = FILES[kind]
    path.write_bytes(content)
    assert_refused(path, words)


def test_no_file(tmp_path):
    for path in (tmp_path / "pytorch_model.bin", tmp_path):
        assert_refused(path, "no such file")
