"""Reads the pickle in a PyTorch file; the pickle can describe tensors and do nothing else.

A pickle is a program that can call anything. So its opcodes are checked first. Then a restricted unpickler runs it,
which knows only dictionaries, tensors and their storages. torch_file.py finds the numbers.

Source: torch/serialization.py (`_save`, `_legacy_save`) and torch/_utils.py (`_rebuild_*`) of PyTorch 2.13.
"""

import dataclasses
import io
import pickle
import pickletools
from collections.abc import Callable
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from bert.errors import listed
from bert.interop.formats.tensors import Bytes

LARGEST_PICKLE = 1 << 22  # bytes; a tensor takes about 150 of them, so this is a hundred times BERT-large
MOST_PAIRS = 100_000  # in all lists that dictionaries are made of; Python 2 wrote one for each state dict
_DTYPES = {
    **{"DoubleStorage": np.dtype("<f8"), "FloatStorage": np.dtype("<f4"), "HalfStorage": np.dtype("<f2")},
    **{"LongStorage": np.dtype("<i8"), "IntStorage": np.dtype("<i4"), "ShortStorage": np.dtype("<i2")},
    **{"CharStorage": np.dtype("i1"), "ByteStorage": np.dtype("u1"), "BoolStorage": np.dtype("?")},
    "BFloat16Storage": np.dtype(ml_dtypes.bfloat16),
}
# All that torch.save writes for a state dict, from Python 2 and in old protocols too. Not EXT, which can bypass
# `find_class`, nor sets, bytes and objects, which no state dict has.
_STATE_DICT = (
    "PROTO FRAME STOP MARK GLOBAL STACK_GLOBAL INST REDUCE BUILD BINPERSID NONE NEWTRUE NEWFALSE "
    "INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT STRING SHORT_BINSTRING UNICODE SHORT_BINUNICODE BINUNICODE "
    "EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT DICT SETITEM SETITEMS "
    "PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET"
)
_OPCODES = frozenset(_STATE_DICT.split())
DAMAGED = "the file is damaged or cut short; copy it again, or save the model again as safetensors"
SAVE_AGAIN = "save the model's state_dict alone, best as safetensors"


class Refusal(Exception):
    """A fault of a file and the way out; `open_torch` adds the file's name."""

    def __init__(self, what: str, way_out: str = DAMAGED):
        super().__init__(what, way_out)


class _Inert:
    """An object whose attributes a pickle cannot set: opcode BUILD calls `__setstate__` where there is one."""

    def __setstate__(self, state: object) -> None:
        raise Refusal(f"sets attributes of a {_kind(self)}", SAVE_AGAIN)


class _Dictionary(_Inert, dict[Any, Any]):
    """Any dictionary of a pickle. Python 3 fills it item by item, Python 2 wrote a list of pairs."""

    def __setitem__(self, name: object, value: object) -> None:
        # Before anything hashes it: sixty tuples, each of the one before it twice, take 2^60 steps.
        if type(name) not in (str, int):
            raise Refusal(f"has a {_kind(name)} for a name in a dictionary", SAVE_AGAIN)
        if name in self:
            raise Refusal(f"has the name {name} twice")
        super().__setitem__(name, value)

    def __setstate__(self, state: object) -> None:
        """Nothing: a state dict carries `_metadata`, the versions of its modules, which say nothing of BERT's."""


@dataclasses.dataclass(eq=False)
class _Global(_Inert):
    """A name that a pickle may use: the dtype of a storage, or what makes a dictionary or a tensor."""

    value: Any

    def __call__(self, *arguments: object) -> object:
        return self.value(*arguments)


@dataclasses.dataclass(eq=False)
class PickledStorage(_Inert):
    """``count`` elements from element ``start`` on of the numbers stored under ``key``."""

    key: str
    dtype: np.dtype
    start: int
    count: int


@dataclasses.dataclass(eq=False)
class PickledTensor(_Inert):
    """A tensor as the pickle describes it, unchecked; offset and strides in elements."""

    storage: Any
    offset: Any
    shape: Any
    strides: Any


def _rebuild_tensor_v2(
    storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, hooks: Any, metadata: Any = None
) -> PickledTensor:
    if metadata:
        raise Refusal("has a tensor that is stored conjugated or negated", SAVE_AGAIN)
    return PickledTensor(storage, offset, shape, strides)


# By module and name, never joined: "torch" and "_utils.f" would reach through a module.
_GLOBALS: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor"): PickledTensor,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor_v2,
    ("torch._utils", "_rebuild_parameter"): lambda tensor, requires_grad, hooks: tensor,
    **{("torch", name): dtype for name, dtype in _DTYPES.items()},
}

Storages = dict[str, tuple[np.dtype, int]]  # key -> dtype, number of elements


class _Unpickler(pickle._Unpickler):
    """Builds tensors and nothing else; adds the storages that they are in to ``storages``.

    The unpickler in Python is used because the one in C creates dictionaries itself and hashes any name.
    """

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)
    append: Callable[[object], None]
    pop_mark: Callable[[], list[Any]]

    def __init__(self, pickled: bytes, storages: Storages):
        super().__init__(io.BytesIO(pickled))
        self.storages = storages
        self.pairs = 0

    def load_empty_dictionary(self) -> None:
        self.append(_Dictionary())

    def load_dict(self) -> None:
        items = self.pop_mark()
        self.append(self.dictionary(list(zip(items[::2], items[1::2], strict=True))))

    dispatch |= {pickle.EMPTY_DICT[0]: load_empty_dictionary, pickle.DICT[0]: load_dict}

    def dictionary(self, pairs: Any = ()) -> _Dictionary:
        """A dictionary of a list of pairs, which a pickle may use again and again."""
        dictionary = _Dictionary()
        self.pairs += len(pairs)
        if self.pairs > MOST_PAIRS:
            raise Refusal(f"makes dictionaries of more than {MOST_PAIRS} pairs", SAVE_AGAIN)
        for name, value in pairs:
            dictionary[name] = value
        return dictionary

    def find_class(self, module: str, name: str) -> _Global:
        value = self.dictionary if (module, name) == ("collections", "OrderedDict") else _GLOBALS.get((module, name))
        if value is None:
            raise Refusal(f"names {module}.{name}, which is no part of a state dict; nothing of it was run", SAVE_AGAIN)
        return _Global(value)

    def persistent_load(self, pid: Any) -> PickledStorage:
        match pid:
            case ("storage", _Global(value=np.dtype() as dtype), str(key), _, int(count), *view) if count >= 0:
                pass
            case _:
                raise Refusal("describes a storage in a way that torch.save does not")
        if self.storages.setdefault(key, (dtype, count)) != (dtype, count):
            raise Refusal(f"describes storage {key} in two ways")
        match view:
            case [] | [None]:
                return PickledStorage(key, dtype, 0, count)
            case [(_, int(start), int(size))] if start >= 0 and size >= 0 and start + size <= count:
                return PickledStorage(key, dtype, start, size)
        raise Refusal(f"has a view of storage {key} that is not inside it")


def unpickle(file: Bytes, start: int, end: int, storages: Storages) -> tuple[Any, int]:
    """The object of the pickle that starts at a byte, and the byte after it.

    Its opcodes are checked first, before any of them runs. (The unpickler alone would refuse each foreign name.)
    """
    window, stop = file[start : min(end, start + LARGEST_PICKLE)], 0
    for opcode, argument, position in pickletools.genops(window):
        stop = position or 0
        if opcode.name not in _OPCODES:
            raise Refusal(f"has pickle opcode {opcode.name}, which is no part of a state dict", SAVE_AGAIN)
        if opcode.name in ("PUT", "BINPUT", "LONG_BINPUT") and (argument or 0) > stop:
            raise Refusal(f"has memo index {argument} at byte {stop} of its pickle")
        if opcode.name == "FRAME" and stop + 9 + (argument or 0) > len(window):
            raise Refusal(f"has a frame of {argument} bytes at byte {stop} of its pickle, which ends before it")
    return _Unpickler(window[: stop + 1], storages).load(), start + stop + 1


def tensors_by_name(value: object) -> dict[str, PickledTensor]:
    """What a file holds, if it is tensors by name."""
    if not isinstance(value, dict):
        raise Refusal(f"holds one {_kind(value)}, not tensors by name", SAVE_AGAIN)
    if all(type(name) is str and isinstance(tensor, PickledTensor) for name, tensor in value.items()):
        return value
    others = {name: other for name, other in value.items() if not isinstance(other, PickledTensor)} or value
    shown = listed((f"{name if type(name) is str else _kind(name)} ({_kind(x)})" for name, x in others.items()), most=4)
    raise Refusal(f"holds {shown}, not a model's tensors by name", SAVE_AGAIN)


def _kind(value: object) -> str:
    """What a message calls the value: "tensor", "dictionary", "int"."""
    return type(value).__name__.lower().strip("_").removeprefix("pickled")
