"""Tensors of a file by name, read on first use. What the names mean is in names/.

Every reader of a format gives a mapping name -> NumPy array. An array is a read-only view of the file, mapped into
memory: nothing is read before it is used, and nothing is held twice.
"""

import mmap
import os
import pathlib
import stat
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np

from bert.errors import InputError

Tensors = Mapping[str, np.ndarray]
Bytes = mmap.mmap | bytes
Entry = TypeVar("Entry")
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"  # Git LFS, docs/spec.md


def map_file(path: pathlib.Path) -> Bytes:
    """The file's bytes, read-only, each page read when it is used.

    Raises InputError for what is no regular file, may not be read, or is a pointer of Git LFS.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for a writer
            raise InputError(f"{path}: no regular file but a folder, pipe or device; put the file there")
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size == 0:  # cannot be mapped
                return b""
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    if mapped[: len(_LFS_POINTER)] == _LFS_POINTER:
        raise InputError(f"{path}: is a Git LFS pointer, not the file itself; fetch that with `git lfs pull`")
    return mapped


class LazyTensors(Tensors, Generic[Entry]):
    """A mapping whose names are known (``entries``: name -> what a subclass reads the tensor by)."""

    def __init__(self, entries: dict[str, Entry]):
        self.entries = entries

    def __contains__(self, name: object) -> bool:
        return name in self.entries  # and not by reading it, as a Mapping would

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class Selected(LazyTensors[tuple[Tensors, str]]):
    """Tensors of one or several files under other names; ``entries``: name -> (file, the name in that file)."""

    def __getitem__(self, name: str) -> np.ndarray:
        file, own_name = self.entries[name]
        return file[own_name]

    def own_name(self, name: str) -> str:
        """The name in the file."""
        return self.entries[name][1]
