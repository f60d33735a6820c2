"""The pickle inside a PyTorch file: whatever it asks for but tensors is refused by name and never run.

The files are written here, opcode by opcode, so that they can say what torch.save never would.
"""

import copyreg
import os
import pickle

import pytest

from bert.interop.formats import torch_pickle
from bert.interop.formats.torch_file import open_torch
from tests.bert.interop.formats.torch_writer import (
    CONTAINERS,
    ORDERED,
    REBUILD,
    Raw,
    assert_equal,
    assert_refused,
    call,
    named,
    opcodes,
    persistent,
    pickled,
    stored,
    tensor,
    with_state,
)  # fmt: skip


def test_a_pickle_without_end_is_not_read_to_it(write_torch, monkeypatch):
    held = {"w": tensor(container="stream"), **{str(i): tensor(container="stream") for i in range(99)}}
    monkeypatch.setattr(torch_pickle, "LARGEST_PICKLE", len(pickled(held)))
    assert len(open_torch(write_torch("stream", held))) == 100
    monkeypatch.setattr(torch_pickle, "LARGEST_PICKLE", len(pickled(held)) - 1)
    assert_refused(write_torch("stream", held), "before seeing STOP")


# What a file must not reach: by name, in a module of a module, through an allowed name.
FOREIGN = {
    "os.system": named("os", "system"),
    "posix.system": named("posix", "system"),
    "builtins.eval": named("builtins", "eval"),
    "torch._utils._rebuild_parameter_with_state": named("torch._utils", "_rebuild_parameter_with_state"),
    "torch.load": named("torch", "load"),
    "torch._utils._rebuild_tensor_v2": named("torch", "_utils._rebuild_tensor_v2"),
    "collections.OrderedDict.fromkeys": Raw(b"\x8c\x0bcollections\x8c\x14OrderedDict.fromkeys\x93"),
    "bert.interop.formats.torch_file.os": Raw(b"\x8c\x1fbert.interop.formats.torch_file\x8c\x02os\x93"),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_names_are_refused_and_never_run(write_torch, tmp_path, container, name):
    marker = tmp_path / "ran"
    held = {"w": call(FOREIGN[name], (f"touch {marker}",))}
    assert_refused(write_torch(container, held, {}), f"names {name}", "nothing of it was run")
    assert not marker.exists()


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_runs_a_command(write_torch, tmp_path, container, protocol):
    """The same as pickle itself writes it, in all its protocols; the file does run under pickle.load."""
    marker = tmp_path / "ran"

    class Command:
        def __reduce__(self):
            return os.system, (f"touch {marker}",)

    text = pickle.dumps({"w": Command()}, protocol)
    body = text[text.startswith(b"\x80") * 2 : -1]
    assert_refused(write_torch(container, Raw(body), {}), f"names {os.system.__module__}.system")
    alone = tmp_path / "alone.bin"
    alone.write_bytes(text)
    assert_refused(alone)
    assert not marker.exists()
    pickle.loads(text)
    assert marker.exists()


def test_objects_are_refused_by_the_name_of_their_class(write_torch):
    assert_refused(write_torch("archive", Raw(b"(S'true'\nios\nsystem\n"), {}), "names os.system")
    assert_refused(write_torch("archive", Raw(b"cos\nsystem\n)\x81"), {}), "opcode NEWOBJ")  # as objects have


def test_extension_codes_do_not_go_past_the_check(write_torch):
    """A code that a program has registered and used is in a cache, where the unpickler looks before it asks."""
    copyreg.add_extension("os", "system", 200)
    try:
        pickle.loads(b"\x80\x02\x82\xc8.")
        assert_refused(write_torch("archive", call(Raw(b"\x82\xc8"), ("true",)), {}), "EXT1")
    finally:
        copyreg.remove_extension("os", "system", 200)


@pytest.mark.parametrize(
    "target", [ORDERED, REBUILD, named("torch", "FloatStorage"), stored(), tensor()], ids=["d", "f", "t", "s", "w"]
)
@pytest.mark.parametrize("state", [{"value": "x"}, (None, {"__class__": "x", "__defaults__": ()})])
def test_state_is_set_on_nothing(write_torch, target, state):
    before = open_torch(write_torch("archive", {"w": tensor()}))["w"].copy()
    assert_refused(write_torch("archive", {"w": with_state(target, state)}), "sets attributes")
    assert_equal(open_torch(write_torch("archive", {"w": tensor()}))["w"], before)


def nested_tuples(depth):
    return Raw(b")" + b"\x85" * depth)


# Sixty tuples, each of the one before it twice: 2^60 steps for whoever hashes, compares or prints the last.
SHARED_TUPLES = Raw(b")" + b"q\0h\0\x86" * 60)
PAIRS = opcodes([[f"{i:04}", None] for i in range(2000)])
MANY_TIMES = Raw(b"](" + PAIRS + b"q\1" + (ORDERED + b"h\1\x85R") * 10_000 + b"e")
BROKEN_OBJECTS = {
    "one tensor": (tensor(), "holds one tensor"),
    "list": ([tensor()], "holds one list"),
    "number": (3, "holds one int"),
    "numbered": ({1: tensor()}, "holds int (tensor)"),
    "wrapped": ({"epoch": 3, "state_dict": {"w": tensor()}}, "epoch (int), state_dict (dictionary)"),
    "wrapped, beside others": ({"model": {"w": tensor()}, "args": None}, "model (dictionary), args"),
    "many others": ({str(i): i for i in range(9)}, "3 (int) and 5 more"),
    "name with a line end": ({"a\nb\x1b[2J": 1}, "a?b?[2J (int)"),
    "name without end": ({"x" * 10**6: 1}, "xxx..."),
    "name twice": (call(ORDERED, ([["w", tensor()], ["w", tensor()]],)), "the name w twice"),
    "name that is a number": (call(ORDERED, ([[1, tensor()]],)), "holds int (tensor)"),
    "name that is a tensor": (Raw(b"}" + tensor() + b"Ns"), "a tensor for a name"),
    "name of shared tuples": (Raw(b"}" + SHARED_TUPLES + b"Ns"), "a tuple for a name"),
    "name of shared tuples, all at once": (Raw(b"(" + SHARED_TUPLES + b"Nd"), "a tuple for a name"),
    "name of shared tuples, inside": (Raw(b"}X\1\0\0\0w}" + SHARED_TUPLES + b"Nss"), "a tuple for a name"),
    "name of shared tuples, in pairs": (call(ORDERED, ([[SHARED_TUPLES, 1]],)), "a tuple for a name"),
    "pairs that are used again and again": (MANY_TIMES, "dictionaries of more than"),
    "name that cannot be decoded": (Raw(b"X\1\0\0\0\xff"), "UnicodeDecodeError"),
    "itself": (Raw(b"}q\0X\1\0\0\0wh\0s"), "holds w (dictionary)"),
    "memo without end": (Raw(b"}r\xff\xff\xff\xff"), f"memo index {0xFFFFFFFF}"),
    "memo without end in text": (Raw(b"}p99999999999\n"), "memo index 99999999999"),
    "memo that is empty": (Raw(b"h\7"), "UnpicklingError"),
    "nothing on the stack": (Raw(b"R"), "cannot be read"),
    "frame without end": (Raw(b"\x95" + b"\xff" * 7 + b"\x7f}"), "frame"),
    "text without end": (Raw(b"X\xff\xff\xff\x7fabc"), "ValueError"),
    "unknown opcode": (Raw(b"\xf0"), "ValueError"),
    "array of bytes without end": (Raw(b"\x96" + b"\xff" * 7 + b"\x7f"), ""),
    "set": (Raw(b"\x8f"), "opcode EMPTY_SET"),
    "persistent text": (Raw(b"P0\n"), "opcode PERSID"),
    "nesting": (Raw(b"}" + nested_tuples(10**5) + b"Ns"), "a tuple for a name"),
    "nesting in a value": (Raw(b"}X\1\0\0\0w" + nested_tuples(10**5) + b"s"), "holds w (tuple)"),
    "protocol of the future": (Raw(b"\x80\x63}"), "unsupported pickle protocol"),
    "recursion": (Raw(b"]" + b"q\0" + b"h\0a"), "holds one list"),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("fault", BROKEN_OBJECTS)
def test_objects_that_are_no_state_dict(write_torch, container, fault):
    """None takes the steps or the memory that it asks for: this test would not end."""
    held, words = BROKEN_OBJECTS[fault]
    assert_refused(write_torch(container, held), words)


LABEL = named("torch", "FloatStorage")
BROKEN_STORAGES = {
    "more elements than bytes": (stored(7), "storage 0 has 7 elements"),
    "fewer elements than bytes": (stored(5), "storage 0 has 5 elements"),
    "elements that no memory holds": (stored(1 << 62), f"storage 0 has {1 << 62} elements"),
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
def test_storages_that_cannot_be(write_torch, fault):
    storage, words = BROKEN_STORAGES[fault]
    assert_refused(write_torch("archive", {"w": call(REBUILD, (storage, 0, (6,), (1,), False, None))}), words)
