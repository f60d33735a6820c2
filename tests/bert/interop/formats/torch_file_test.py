"""PyTorch files without PyTorch: both containers give the same tensors, and tensors that cannot be are refused.

The files are written here, opcode by opcode, so that they can say what torch.save never would.
"""

import pathlib
import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from bert.errors import InputError
from bert.interop.formats import torch_pickle
from bert.interop.formats.torch_file import open_torch
from tests.bert.interop.torch_writer import (
    CONTAINERS,
    NUMBERS,
    ORDERED,
    REBUILD,
    Raw,
    assert_equal,
    assert_refused,
    call,
    named,
    opcodes,
    stored,
    tensor,
    with_state,
)


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


def test_what_the_system_refuses_is_told_once(write_torch, monkeypatch):
    """The line of whoever opened the file, not an exception of some kind inside another line."""
    path = write_torch("archive", {"w": tensor()})

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "open", refuse)
    with pytest.raises(InputError) as caught:
        open_torch(path)
    assert str(caught.value) == f"{path}: cannot be read (Permission denied); check the path and its permissions"
