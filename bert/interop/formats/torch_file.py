"""Reads the tensors of a PyTorch file (pytorch_model.bin: a state dict written by torch.save), without PyTorch.

Two containers are read: the ZIP archive (PREFIX/data.pkl, PREFIX/data/KEY), and the stream of pickles from before
PyTorch 1.6. The tar archive from before 0.1.10 is not read.

Nothing in such a file is executed: torch_pickle.py reads its pickle, which can only describe tensors.

Source: torch/serialization.py (`_save`, `_legacy_save`) of PyTorch 2.13; PKWARE APPNOTE 6.3.10, section 4.3.7.
"""

import math
import pathlib
import struct
import zipfile
from typing import Any

import numpy as np

from bert.errors import InputError
from bert.interop.formats import torch_pickle
from bert.interop.formats.tensors import Bytes, map_file
from bert.interop.formats.torch_pickle import DAMAGED, SAVE_AGAIN, PickledStorage, PickledTensor, Refusal, Storages

_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_BIG_ENDIAN = ("was written on a big-endian machine", "save the model again on a common one")


def open_torch(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The tensors of a state dict that torch.save wrote, as stored; checks that each lies in the file, reads no data.

    Raises InputError where the file is damaged, or holds or names anything but tensors by name.
    """
    try:
        if not path.is_file():
            raise Refusal("no such file", "name a file that torch.save wrote")
        file = map_file(path)
        if not file:
            raise Refusal("is empty")
        tensors, starts = _read_archive(file, path) if file[:4] == b"PK\3\4" else _read_stream(file)
        return {name: _view(name, tensor, starts, file) for name, tensor in tensors.items()}
    except InputError:
        raise
    except Refusal as refusal:
        what, way_out = refusal.args
    except Exception as error:  # pickle, zipfile and struct raise some twenty kinds of exceptions for damage
        what, way_out = f"cannot be read ({type(error).__name__}: {error})", DAMAGED
    # Names from the file may hold line ends, and whatever else steers a terminal.
    what = "".join(character if character.isprintable() else "?" for character in what)
    raise InputError(f"{path}: {what if len(what) < 400 else what[:400] + '...'}; {way_out}")


def _read_archive(file: Bytes, path: pathlib.Path) -> tuple[dict[str, PickledTensor], dict[str, int]]:
    """The tensors of a ZIP archive, and the byte of the file where each storage starts."""
    with zipfile.ZipFile(path) as archive:
        listed = archive.infolist()
    entries = {entry.filename: entry for entry in listed}
    if len(entries) != len(listed):
        raise Refusal("has two entries of one name")
    pickles = [name for name in entries if name.split("/")[1:] == ["data.pkl"]]
    if len(pickles) != 1:
        raise Refusal(f"is a ZIP archive with {len(pickles)} entries */data.pkl; a file of torch.save has one")
    prefix = pickles[0].removesuffix("data.pkl")
    order = entries.get(f"{prefix}byteorder")
    if order:
        start, end = _span(file, order)
        if file[start : min(end, start + 7)] != b"little":
            raise Refusal(*_BIG_ENDIAN)
    storages: Storages = {}
    held, _ = torch_pickle.unpickle(file, *_span(file, entries[pickles[0]]), storages)
    tensors = torch_pickle.tensors_by_name(held)
    starts = {}
    for key, (dtype, count) in storages.items():
        if f"{prefix}data/{key}" not in entries:
            raise Refusal(f"has no entry for storage {key}")
        starts[key], end = _span(file, entries[f"{prefix}data/{key}"])
        if (size := end - starts[key]) // dtype.itemsize != count:
            raise Refusal(f"says that storage {key} has {count} elements of {dtype}, but has {size} bytes for it")
    return tensors, starts


def _span(file: Bytes, entry: zipfile.ZipInfo) -> tuple[int, int]:
    """First byte and end of an entry's data."""
    if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
        raise Refusal(f"entry {entry.filename} is compressed or encrypted", SAVE_AGAIN)
    at = entry.header_offset
    signature, name_length, extra_length = struct.unpack("<4s22x2H", file[at : at + 30] if at >= 0 else b"")
    name = entry.orig_filename.encode("utf-8" if entry.flag_bits & 0x800 else "cp437")
    start = at + 30 + name_length + extra_length
    end = start + entry.file_size
    if signature != b"PK\3\4" or file[at + 30 : at + 30 + name_length] != name or end > len(file):
        raise Refusal(f"entry {entry.filename} is not where the directory of the archive says")
    return start, end


def _read_stream(file: Bytes) -> tuple[dict[str, PickledTensor], dict[str, int]]:
    """The tensors of the old container, and the byte of the file where each storage starts."""
    if file[257:262] == b"ustar":
        raise Refusal("is a tar archive of PyTorch before 0.1.10, which is not read", SAVE_AGAIN)
    storages: Storages = {}
    values: list[Any] = []
    position = 0
    for expected in (_MAGIC, _PROTOCOL, None, None, None):
        if file[:1] == b"\x80":
            value, position = torch_pickle.unpickle(file, position, len(file), storages)
            values.append(value)
        if not values or expected not in (None, values[-1]):
            raise Refusal("is no file of torch.save", "name one; a web page is none")
    _, _, system, held, keys = values
    if not isinstance(system, dict) or not isinstance(keys, list):
        raise Refusal("does not say what its bytes mean as a file of torch.save does")
    tensors = torch_pickle.tensors_by_name(held)
    if system.get("little_endian") is not True:
        raise Refusal(*_BIG_ENDIAN)
    if not all(type(key) is str for key in keys) or sorted(keys) != sorted(storages):
        raise Refusal("lists other storages than its tensors use")
    starts = {}
    for key in keys:
        dtype, count = storages[key]
        (written,) = struct.unpack("<q", file[position : position + 8])
        if written != count:
            raise Refusal(f"says that storage {key} has {count} elements, and {written} where they are")
        starts[key] = position + 8
        position = starts[key] + count * dtype.itemsize
        if position > len(file):
            raise Refusal(f"ends before the {count} elements of {dtype} of storage {key} do")
    if position != len(file):
        raise Refusal(f"has {len(file) - position} bytes after its last storage")
    return tensors, starts


def _view(name: str, tensor: PickledTensor, starts: dict[str, int], file: Bytes) -> np.ndarray:
    """A tensor as a read-only view over the file, after a check that all of it lies inside its storage."""
    storage, offset, shape, strides = tensor.storage, tensor.offset, tensor.shape, tensor.strides
    if not isinstance(storage, PickledStorage) or not isinstance(shape, tuple) or not isinstance(strides, tuple):
        raise Refusal(f"tensor {name} has no storage, shape or strides")
    if not all(type(number) is int and number >= 0 for number in (offset, *shape, *strides)):
        raise Refusal(f"tensor {name}: its offset, shape and strides must be whole numbers from 0 on")
    itemsize = storage.dtype.itemsize
    laid_out = f"shape {shape} with strides {strides} from element {offset} on"
    # 64 axes and the bytes of an index are NumPy's limits, which it checks even where there is no element.
    if len(shape) != len(strides) or len(shape) > 64 or math.prod(size or 1 for size in shape) * itemsize >= 1 << 63:
        raise Refusal(f"tensor {name} cannot be: {laid_out}")
    elements = math.prod(shape)
    used = [stride if size > 1 and elements else 0 for size, stride in zip(shape, strides, strict=True)]
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, used, strict=True))
    if elements and last >= storage.count:
        raise Refusal(f"tensor {name} leaves the {storage.count} elements of its storage: {laid_out}")
    # Such a tensor (an expanded one) would let a small file fill any memory once it is copied.
    if elements > storage.count:
        raise Refusal(f"tensor {name} has more elements than the {storage.count} stored: {laid_out}", SAVE_AGAIN)
    first = starts[storage.key] + (storage.start + offset if elements else 0) * itemsize
    return np.ndarray(shape, storage.dtype, file, first, tuple(stride * itemsize for stride in used))
