"""Tensors of a safetensors file: read strictly, and written with a checksum of each.

Files written here store a CRC-32C of each tensor, its type and its shape in the metadata, under "crc32c", which detects
damage on reading. Other programs ignore it; files without it are read unchecked.

Source: safetensors' README, "Format".
"""

import json
import os
import pathlib
import re
from collections.abc import Mapping

import google_crc32c
import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

from bert.errors import InputError, printable
from bert.interop.formats.tensors import LazyTensors, map_file
from bert.json_files import object_once

CHECKSUMS = "crc32c"  # key of the metadata; its value is a JSON object, name -> eight hexadecimal digits
_LARGEST_HEADER = 1 << 24  # bytes; a tensor takes about 120, so this is three hundred times BERT-large
_DTYPES = {
    **{"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "BOOL": np.bool_},
    **{"I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8},
    **{"U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8},
}
_DAMAGED = "the file is damaged or cut short: copy it again, or export it again"


class SafetensorsFile(LazyTensors[str]):
    """A file opened by `open_safetensors`. Its items are read-only views over a memory map of the file.

    A tensor's checksum, where the file has one, is compared when it is first read.
    """

    def __init__(self, path: pathlib.Path, views: dict[str, np.ndarray], metadata: dict[str, str]):
        self.path, self.metadata, self._views = path, metadata, views
        self._unchecked = _checksums(path, views, metadata)
        aliases = {alias: name for alias, name in metadata.items() if name in views and alias not in views}
        super().__init__({**aliases, **{name: name for name in views}})  # name -> the name that it is stored under

    def __getitem__(self, name: str) -> np.ndarray:
        stored_name = self.entries[name]
        view = self._views[stored_name]
        if stored_name in self._unchecked:
            if self._unchecked[stored_name] != checksum(view):
                shown = printable(name)
                raise InputError(f"{self.path}: {shown} does not have the checksum it was saved with; {_DAMAGED}")
            del self._unchecked[stored_name]
        return view


def open_safetensors(path: pathlib.Path) -> SafetensorsFile:
    """The tensors of a safetensors file; no data is read until a tensor is asked for.

    A tensor that its writer stored once for two names (metadata ``second name -> stored name``) has both.

    Raises InputError for what is not a whole safetensors file, and for types and shapes that NumPy lacks.
    """
    # Mapped first: the library would call a file that is absent or may not be read damaged.
    data = np.frombuffer(map_file(path), np.uint8)
    size = int.from_bytes(data[:8].tobytes(), "little")  # of the header, which follows
    try:
        if size > _LARGEST_HEADER:
            raise ValueError(f"its header has {size} bytes, more than {_LARGEST_HEADER}")
        header = json.loads(data[8 : 8 + size].tobytes(), object_pairs_hook=object_once)
        with safetensors.safe_open(path, framework="numpy"):  # checks types and sizes, and that there are no gaps
            pass
        metadata = header.pop("__metadata__", None) or {}
    except (safetensors.SafetensorError, OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read ({printable(str(error)[:300])}); {_DAMAGED}") from None
    views = {}
    for name, entry in header.items():
        kind, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        if kind not in _DTYPES:
            rule = "a weight must be a float of 16, 32 or 64 bits: save the model again in one of them"
            raise InputError(f"{path}: {printable(name)} holds {kind}; {rule}")
        try:
            views[name] = data[8 + size + start : 8 + size + end].view(_DTYPES[kind]).reshape(shape)
        except (ValueError, OverflowError):  # more than NumPy's 64 axes, or an axis that no index can count
            raise InputError(f"{path}: {printable(name)} has an impossible shape; {_DAMAGED}") from None
    return SafetensorsFile(path, views, metadata)


def _checksums(path: pathlib.Path, names: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> dict[str, str]:
    """Name -> checksum as stored; empty for a file of another program."""
    if CHECKSUMS not in metadata:
        return {}
    try:
        stored = json.loads(metadata[CHECKSUMS])
    except (ValueError, RecursionError):
        stored = None
    if not isinstance(stored, dict) or stored.keys() != names.keys():
        raise InputError(f"{path}: its checksums are not those of its tensors; {_DAMAGED}")
    return stored


def checksum(tensor: np.ndarray) -> str:
    """CRC-32C of a contiguous tensor, with its type and shape."""
    kind = google_crc32c.value(f"{tensor.dtype} {tensor.shape}".encode())
    return f"{google_crc32c.extend(kind, tensor.reshape(-1).view(np.uint8)):08x}"


def write_safetensors(path: pathlib.Path, tensors: dict[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Writes the tensors. Raises OSError where the system refuses."""
    try:
        safetensors.numpy.save_file(tensors, path, metadata={"format": "pt", **metadata})
    except safetensors.SafetensorError as error:
        cause = re.search(r"\(os error (\d+)\)", str(error))
        if cause is None:
            raise
        # For a full disk the library has an exception of its own; callers handle the system's.
        raise OSError(int(cause[1]), os.strerror(int(cause[1])), str(path)) from None
    _sort_metadata(path)


def _sort_metadata(path: pathlib.Path) -> None:
    """Sorts the metadata, which the library writes in random order: equal models must give equal files."""
    with open(path, "r+b") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        file.seek(8)
        file.write(json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode().ljust(size))
