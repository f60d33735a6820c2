"""PyTorch files without PyTorch: both containers give the same tensors, and whatever else a pickle asks for is refused.

The files are written here, opcode by opcode, so that they can say what torch.save never would.
"""

import collections
import copyreg
import functools
import os
import pickle
import struct
import tracemalloc
import zipfile

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from bert.errors import InputError
from bert.interop import torch_pickle
from bert.interop.torch_file import open_torch
from tests.bert.interop.torch_writer import (
    MAGIC,
    NUMBERS,
    ORDERED,
    REBUILD,
    STORAGES,
    Raw,
    call,
    named,
    opcodes,
    persistent,
    pickled,
    stored,
    tensor,
    with_state,
    write_file,
)

CONTAINERS = ("archive", "stream")


@pytest.fixture
def write(tmp_path):
    """write(container, object, storages=key -> (count, bytes), ...): the path of a file with it."""
    return functools.partial(write_file, tmp_path)


def assert_refused(path, *words):
    """One line that names the file and says each of the words."""
    with pytest.raises(InputError) as caught:
        open_torch(path)
    message = str(caught.value)
    assert message.isprintable()
    assert message.startswith(f"{path}: ")
    assert "; " in message, "a way out"
    assert len(message) < 700
    for word in words:
        assert word in message, message


def assert_equal(got, want):
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("file", ["tiny_bert/pytorch_model.bin", "tiny_bert_gamma_beta_legacy.bin"])
def test_files_of_pytorch_hold_what_the_safetensors_file_holds(shared, file):
    golden = shared / "golden"
    want = safetensors.numpy.load_file(golden / "tiny_bert" / "model.safetensors")
    got = {
        name.replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias"): name
        for name in open_torch(golden / file)
    }
    tied = {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}  # safetensors stores them once
    assert got.keys() - want.keys() == tied
    for name, value in want.items():
        assert_equal(open_torch(golden / file)[got[name]], value)


DTYPES = {
    **{"DoubleStorage": np.float64, "FloatStorage": np.float32, "HalfStorage": np.float16},
    **{"BFloat16Storage": ml_dtypes.bfloat16, "LongStorage": np.int64, "IntStorage": np.int32},
    **{"ShortStorage": np.int16, "CharStorage": np.int8, "ByteStorage": np.uint8, "BoolStorage": np.bool_},
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_dtype_comes_as_it_is_stored(write, container):
    values = {kind: np.array([0, 1, 1, 0], dtype) for kind, dtype in DTYPES.items()}
    held = {kind: tensor((4,), (1,), count=4, key=kind, kind=kind, container=container) for kind in values}
    found = open_torch(write(container, held, {kind: (4, value.tobytes()) for kind, value in values.items()}))
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
def test_layouts_share_a_storage_that_nobody_can_write(write, container):
    held = {name: tensor(*layout[:3], container=container) for name, layout in LAYOUTS.items()}
    found = open_torch(write(container, call(ORDERED, ([[name, value] for name, value in held.items()],))))
    for name, (*_, want) in LAYOUTS.items():
        assert_equal(found[name], want)
        with pytest.raises(ValueError, match=r"WRITEABLE|writeable"):
            found[name].flags.writeable = True
    assert np.shares_memory(found["whole"], found["column"])


def test_what_else_torch_writes_for_a_state_dict(write):
    """Parameters, the first rebuild function, versions of modules on the dictionary, views of storages."""
    old = call(named("torch._utils", "_rebuild_tensor"), (stored(), 0, (6,), (1,)))
    parameter = call(named("torch._utils", "_rebuild_parameter"), (tensor(), True, call(ORDERED, ())))
    ordered = Raw(opcodes(call(ORDERED, ())) + opcodes({"old": old, "parameter": parameter})[1:])
    found = open_torch(write("archive", with_state(ordered, {"_metadata": call(ORDERED, ())})))
    assert_equal(found["old"], NUMBERS)
    assert_equal(found["parameter"], NUMBERS.reshape(2, 3))
    view = tensor((2,), (1,), 1, container="stream", view=("9", 2, 3))
    assert_equal(open_torch(write("stream", {"view": view}))["view"], NUMBERS[3:5])


def test_a_pickle_without_end_is_not_read_to_it(write, monkeypatch):
    held = {"w": tensor(container="stream"), **{str(i): tensor(container="stream") for i in range(99)}}
    monkeypatch.setattr(torch_pickle, "LARGEST_PICKLE", len(pickled(held)))
    assert len(open_torch(write("stream", held))) == 100
    monkeypatch.setattr(torch_pickle, "LARGEST_PICKLE", len(pickled(held)) - 1)
    assert_refused(write("stream", held), "before seeing STOP")


def test_opening_reads_no_data(write):
    """A tensor of zeros that no disk holds is a view of its file."""
    path = write("stream", {"w": tensor((1 << 26,), (1,), count=1 << 26, container="stream")}, {"0": (1 << 26, b"")})
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


# What a file must not reach: by name, in a module of a module, through an allowed name.
FOREIGN = {
    "os.system": named("os", "system"),
    "posix.system": named("posix", "system"),
    "builtins.eval": named("builtins", "eval"),
    "torch._utils._rebuild_parameter_with_state": named("torch._utils", "_rebuild_parameter_with_state"),
    "torch.load": named("torch", "load"),
    "torch._utils._rebuild_tensor_v2": named("torch", "_utils._rebuild_tensor_v2"),
    "collections.OrderedDict.fromkeys": Raw(b"\x8c\x0bcollections\x8c\x14OrderedDict.fromkeys\x93"),
    "bert.interop.torch_file.os": Raw(b"\x8c\x17bert.interop.torch_file\x8c\x02os\x93"),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_names_are_refused_and_never_run(write, tmp_path, container, name):
    marker = tmp_path / "ran"
    held = {"w": call(FOREIGN[name], (f"touch {marker}",))}
    assert_refused(write(container, held, {}), f"names {name}", "nothing of it was run")
    assert not marker.exists()


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_runs_a_command(write, tmp_path, container, protocol):
    """The same as pickle itself writes it, in all its protocols; the file does run under pickle.load."""
    marker = tmp_path / "ran"

    class Command:
        def __reduce__(self):
            return os.system, (f"touch {marker}",)

    text = pickle.dumps({"w": Command()}, protocol)
    body = text[text.startswith(b"\x80") * 2 : -1]
    assert_refused(write(container, Raw(body), {}), f"names {os.system.__module__}.system")
    alone = tmp_path / "alone.bin"
    alone.write_bytes(text)
    assert_refused(alone)
    assert not marker.exists()
    pickle.loads(text)
    assert marker.exists()


def test_objects_are_refused_by_the_name_of_their_class(write):
    assert_refused(write("archive", Raw(b"(S'true'\nios\nsystem\n"), {}), "names os.system")
    assert_refused(write("archive", Raw(b"cos\nsystem\n)\x81"), {}), "names os.system")  # NEWOBJ, as objects have


def test_extension_codes_do_not_go_past_the_check(write):
    """A code that a program has registered and used is in a cache, where the unpickler looks before it asks."""
    copyreg.add_extension("os", "system", 200)
    try:
        pickle.loads(b"\x80\x02\x82\xc8.")
        assert_refused(write("archive", call(Raw(b"\x82\xc8"), ("true",)), {}), "EXT1")
    finally:
        copyreg.remove_extension("os", "system", 200)


@pytest.mark.parametrize(
    "target", [ORDERED, REBUILD, named("torch", "FloatStorage"), stored(), tensor()], ids=["d", "f", "t", "s", "w"]
)
@pytest.mark.parametrize("state", [{"value": "x"}, (None, {"__class__": "x", "__defaults__": ()})])
def test_state_is_set_on_nothing(write, target, state):
    before = open_torch(write("archive", {"w": tensor()}))["w"].copy()
    assert_refused(write("archive", {"w": with_state(target, state)}), "sets attributes")
    assert_equal(open_torch(write("archive", {"w": tensor()}))["w"], before)


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
    "a dictionary": ({"w": tensor()}, "save what is under w alone"),
    "fewer arguments": (call(REBUILD, (stored(),)), "TypeError"),
    "a parameter of text": (call(named("torch._utils", "_rebuild_parameter"), ("x", True, None)), "holds w (str)"),
    "a type that is called": (call(named("torch", "FloatStorage"), ()), "TypeError"),
}


@pytest.mark.parametrize("fault", BROKEN_TENSORS)
def test_tensors_that_cannot_be(write, fault):
    value, words = BROKEN_TENSORS[fault]
    assert_refused(write("archive", {"w": value}), words)


LABEL = named("torch", "FloatStorage")
BROKEN_STORAGES = {
    "more elements than bytes": (stored(7), "storage 0 has 7 elements"),
    "fewer elements than bytes": (stored(5), "storage 0 has 5 elements"),
    "elements that no memory holds": (stored(HUGE), f"storage 0 has {HUGE} elements"),
    "count below 0": (stored(-6), "torch.save does not"),
    "count of text": (stored("6"), "torch.save does not"),
    "key that is no text": (stored(key=0), "torch.save does not"),
    "key that is not there": (stored(key="1"), "no entry for storage 1"),
    "key that climbs": (stored(key="../../../../etc/passwd"), "no entry for storage ../"),
    "key with a line end": (stored(key="0\n1"), "no entry for storage 0?1"),
    "type that is text": (persistent(("storage", "FloatStorage", "0", "cpu", 6)), "torch.save does not"),
    "type that is a function": (persistent(("storage", REBUILD, "0", "cpu", 6)), "torch.save does not"),
    "other word": (persistent(("module", LABEL, "0", "cpu", 6)), "torch.save does not"),
    "too few fields": (persistent(("storage", LABEL)), "torch.save does not"),
    "no fields": (persistent("storage"), "torch.save does not"),
    "view beyond the end": (stored(container="stream", view=("1", 4, 3)), "view of storage 0"),
    "view below 0": (stored(container="stream", view=("1", -1, 3)), "view of storage 0"),
    "view of another form": (stored(container="stream", view="1"), "view of storage 0"),
}


@pytest.mark.parametrize("fault", BROKEN_STORAGES)
def test_storages_that_cannot_be(write, fault):
    storage, words = BROKEN_STORAGES[fault]
    assert_refused(write("archive", {"w": call(REBUILD, (storage, 0, (6,), (1,), False, None))}), words)


def nested_tuples(depth):
    return Raw(b")" + b"\x85" * depth)


BROKEN_OBJECTS = {
    "one tensor": (tensor(), "holds one tensor"),
    "list": ([tensor()], "holds one list"),
    "number": (3, "holds one int"),
    "numbered": ({1: tensor()}, "holds int (tensor)"),
    "wrapped": ({"epoch": 3, "state_dict": {"w": tensor()}}, "epoch (int), state_dict (dictionary)"),
    "wrapped, way out": ({"model": {"w": tensor()}, "args": None}, "save what is under model alone"),
    "many others": ({str(i): i for i in range(9)}, "3 (int) and 5 more"),
    "name with a line end": ({"a\nb\x1b[2J": 1}, "a?b?[2J (int)"),
    "name without end": ({"x" * 10**6: 1}, "xxx..."),
    "name twice": (call(ORDERED, ([["w", tensor()], ["w", tensor()]],)), "the name w twice"),
    "name that is a number": (call(ORDERED, ([[1, tensor()]],)), "no text"),
    "name that cannot be decoded": (Raw(b"X\1\0\0\0\xff"), "UnicodeDecodeError"),
    "itself": (Raw(b"}q\0X\1\0\0\0wh\0s"), "holds w (dictionary)"),
    "memo without end": (Raw(b"}r\xff\xff\xff\xff"), f"memo index {0xFFFFFFFF}"),
    "memo without end in text": (Raw(b"}p99999999999\n"), "memo index 99999999999"),
    "memo that is empty": (Raw(b"h\7"), "UnpicklingError"),
    "nothing on the stack": (Raw(b"R"), "UnpicklingError"),
    "frame without end": (Raw(b"\x95" + b"\xff" * 7 + b"\x7f}"), "cannot be read"),
    "text without end": (Raw(b"X\xff\xff\xff\x7fabc"), "ValueError"),
    "unknown opcode": (Raw(b"\xf0"), "ValueError"),
    "array of bytes without end": (Raw(b"\x96" + b"\xff" * 7 + b"\x7f"), ""),
    "set": (Raw(b"\x8f"), "opcode EMPTY_SET"),
    "persistent text": (Raw(b"P0\n"), "opcode PERSID"),
    "nesting": (Raw(b"}" + nested_tuples(torch_pickle.MOST_TUPLES) + b"Ns"), "holds tuple (NoneType)"),
    "nesting that overflows": (Raw(b"}" + nested_tuples(10**6) + b"Ns"), "tuples"),
    "protocol of the future": (Raw(b"\x80\x63}"), "unsupported pickle protocol"),
    "recursion": (Raw(b"]" + b"q\0" + b"h\0a"), "holds one list"),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("fault", BROKEN_OBJECTS)
def test_objects_that_are_no_state_dict(write, container, fault):
    held, words = BROKEN_OBJECTS[fault]
    assert_refused(write(container, held), words)


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_file_that_is_cut_short_anywhere(write, container):
    held = call(ORDERED, ([["w", tensor(container=container)]],))
    path = write(container, held)
    whole = path.read_bytes()
    assert_equal(open_torch(path)["w"], NUMBERS.reshape(2, 3))
    for length in range(len(whole)):
        short = path.with_name("short.bin")
        short.write_bytes(whole[:length])
        assert_refused(short)


@pytest.mark.parametrize("container", CONTAINERS)
def test_damage_of_any_byte_is_refused_or_harmless(write, container):
    """Whatever one byte becomes: refused, or tensors that can be read to their last element."""
    path = write(container, {"w": tensor((3, 2), (1, 3), container=container)})
    whole = path.read_bytes()
    refused = 0
    for position in range(len(whole)):
        for value in (0xFF, whole[position] ^ 1):
            path.write_bytes(whole[:position] + bytes([value]) + whole[position + 1 :])
            try:
                tensors = open_torch(path)
            except InputError:
                refused += 1
            else:
                assert all(len(array.tobytes()) == array.nbytes for array in tensors.values())
    assert refused > len(whole)


def test_archives_that_torch_does_not_write(write, tmp_path):
    def changed(change, compression=zipfile.ZIP_STORED):
        whole = write("archive", {"w": tensor()})
        path = tmp_path / "changed.bin"
        with zipfile.ZipFile(whole) as old, zipfile.ZipFile(path, "w", compression) as new:
            for name, data in change({entry.filename: old.read(entry) for entry in old.infolist()}):
                new.writestr(name, data)
        return path

    def without(name):
        return lambda entries: [(key, data) for key, data in entries.items() if key != name]

    assert_equal(open_torch(changed(without("archive/byteorder")))["w"], NUMBERS.reshape(2, 3))
    assert_equal(open_torch(write("archive", {"w": tensor()}, prefix="model.1"))["w"], NUMBERS.reshape(2, 3))
    assert_refused(changed(without("archive/data.pkl")), "0 entries */data.pkl")
    assert_refused(changed(without("archive/data/0")), "no entry for storage 0")
    assert_refused(changed(lambda e: [*e.items(), ("b/data.pkl", e["archive/data.pkl"])]), "2 entries */data.pkl")
    assert_refused(changed(lambda e: list(e.items()), zipfile.ZIP_DEFLATED), "archive/byteorder is compressed")
    assert_refused(write("archive", {"w": tensor()}, little=False), "big-endian")
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = changed(lambda e: [*e.items(), ("archive/data/0", bytes(24))])
    assert_refused(path, "two entries of one name")


def test_an_archive_whose_directory_lies(write):
    """Offsets and sizes in the directory that do not lead to the entry."""
    path = write("archive", {"w": tensor()})
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


def test_streams_that_torch_does_not_write(write):
    held = {"w": tensor(container="stream")}
    assert_refused(write("stream", held, little=False), "big-endian")
    assert_refused(write("stream", held, {"0": (5, NUMBERS.tobytes())}), "storage 0 has 6 elements, and 5")
    assert_refused(write("stream", held, {"0": (6, bytes(25))}), "1 bytes after its last storage")
    assert_refused(write("stream", held, {"1": (6, bytes(24))}), "other storages")
    assert_refused(write("stream", held, STORAGES | {"1": (0, b"")}), "other storages")
    huge = {"w": tensor(container="stream", count=HUGE)}
    assert_refused(write("stream", huge, {"0": (HUGE, NUMBERS.tobytes())}), f"ends before the {HUGE} elements")
    twice = {"w": tensor(container="stream"), "v": tensor(container="stream", kind="IntStorage")}
    assert_refused(write("stream", twice), "storage 0 in two ways")
    path = write("stream", held)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(pickled(MAGIC), pickled(MAGIC + 1)))
    assert_refused(path, "no file of torch.save")
    path.write_bytes(whole.replace(pickled(1001), pickled(1002)))
    assert_refused(path, "no file of torch.save")


def test_files_that_are_none(tmp_path):
    path = tmp_path / "pytorch_model.bin"
    assert_refused(path, "no such file")
    assert_refused(tmp_path, "no such file")
    for content, words in [
        (b"", ("is empty",)),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", ("no file of torch.save", "Git LFS")),
        (b"\x80", ("cannot be read",)),
        (b"PK\3\4", ("cannot be read",)),
        (bytes(257) + b"ustar" + bytes(300), ("tar archive",)),
        (pickle.dumps(collections.OrderedDict(w=1)), ("no file of torch.save",)),
    ]:
        path.write_bytes(content)
        assert_refused(path, *words)
