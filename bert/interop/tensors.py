"""Tensors of a file by name, read when they are asked for. What the names mean is weight_names.py's business.

Every reader of a format gives a `Tensors`: a mapping name -> NumPy array. An array is a read-only view of the file,
mapped into memory: nothing is read before it is used, and nothing is held twice.
"""

import mmap
import os
import pathlib
from collections.abc import Iterator, Mapping

import ml_dtypes
import numpy as np
import safetensors

from bert.errors import InputError

Tensors = Mapping[str, np.ndarray]
Bytes = mmap.mmap | bytes
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"  # Git LFS, docs/spec.md

_SAFETENSORS_DTYPES = {
    **{"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "BOOL": np.bool_},
    **{"I64": np.int64, "I32": np.int32, "I16": np.int16, "I8": np.int8},
    **{"U64": np.uint64, "U32": np.uint32, "U16": np.uint16, "U8": np.uint8},
}


def map_file(path: pathlib.Path) -> Bytes:
    """The file's bytes, read-only, read page by page as they are looked at.

    Raises:
      InputError: there is no such file, or it may not be read; it is the stand-in that Git LFS leaves for a file.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:  # cannot be mapped
                return b""
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    if mapped[: len(_LFS_POINTER)] == _LFS_POINTER:
        raise InputError(f"{path}: is a Git LFS pointer, not the file itself; fetch that with `git lfs pull`")
    return mapped


class Selected(Tensors):
    """Tensors of one or several files under names of our choice; ``places`` is name -> (file, its own name there)."""

    def __init__(self, places: dict[str, tuple[Tensors, str]]):
        self.places = places

    def __getitem__(self, name: str) -> np.ndarray:
        file, own_name = self.places[name]
        return file[own_name]

    def own_name(self, name: str) -> str:
        """What the file calls it."""
        return self.places[name][1]

    def __contains__(self, name: object) -> bool:
        return name in self.places  # and not by reading it, as a Mapping would

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


def open_safetensors(path: pathlib.Path) -> Tensors:
    """The tensors of a safetensors file.

    A tensor that its writer stored once for two names (metadata ``second name -> stored name``) is there under both.

    Raises:
      InputError: the file cannot be read, is cut short or is not safetensors, or a tensor has a type that NumPy lacks.
    """
    # First, for the library calls everything damage: a file that may not be read, and one that is not there yet.
    data, views = np.frombuffer(map_file(path), np.uint8), {}
    try:
        with safetensors.safe_open(path, framework="numpy") as file:  # checks the header: names, types, offsets
            slices = {name: file.get_slice(name) for name in file.offset_keys()}
            kinds = {name: (found.get_dtype(), found.get_shape()) for name, found in slices.items()}
            metadata = file.metadata() or {}
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(f"{path}: cannot be read ({error}); the file is damaged or cut short") from None
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")  # the header's length, and the header
    for name, (kind, shape) in kinds.items():  # in the order of the file, where they lie one after another
        if kind not in _SAFETENSORS_DTYPES:
            raise InputError(f"{path}: {name} holds {kind}; a weight must be a float of 16, 32 or 64 bits")
        dtype = np.dtype(_SAFETENSORS_DTYPES[kind])
        end = start + int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        views[name] = data[start:end].view(dtype).reshape(shape)
        start = end
    aliases = {alias: views[name] for alias, name in metadata.items() if name in views}
    return {**aliases, **views}
