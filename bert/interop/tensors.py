"""Tensors of a file by name, read when they are asked for. What the names mean is weight_names.py's business.

Every reader of a format gives a `Tensors`: a mapping name -> NumPy array whose items are read on access.
"""

import pathlib
from collections.abc import Iterator, Mapping

import numpy as np
import safetensors

from bert.errors import InputError

Tensors = Mapping[str, np.ndarray]


class SafetensorsFile(Tensors):
    """A safetensors file; made by `open_safetensors`."""

    def __init__(self, file: safetensors.safe_open, names: dict[str, str]):
        self._file, self._names = file, names  # names: as asked for -> as stored

    def __getitem__(self, name: str) -> np.ndarray:
        return self._file.get_tensor(self._names[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def open_safetensors(path: pathlib.Path) -> SafetensorsFile:
    """The tensors of a safetensors file.

    A tensor that its writer stored once for two names (metadata ``second name -> stored name``) is there under both.

    Raises:
      InputError: the file is cut short or is not safetensors.
    """
    try:
        file = safetensors.safe_open(path, framework="numpy")
    except (safetensors.SafetensorError, OSError) as error:
        raise InputError(f"{path}: cannot be read ({error}); the file is damaged or cut short") from None
    names = {name: name for name in file.keys()}  # noqa: SIM118  (safe_open is no mapping)
    aliases = {alias: name for alias, name in (file.metadata() or {}).items() if name in names}
    return SafetensorsFile(file, {**aliases, **names})


class Renamed(Tensors):
    """Some tensors of another mapping under other names: ``names`` is new name -> name there, and may be changed."""

    def __init__(self, tensors: Tensors, names: dict[str, str]):
        self.tensors, self.names = tensors, names

    def __getitem__(self, name: str) -> np.ndarray:
        return self.tensors[self.names[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
