"""The weights of a Hugging Face directory: one file or several with an index, as safetensors or as torch's pickles.

Where a directory holds several kinds, safetensors wins; a pickle is read by torch_file.py, which executes nothing.
"""

import json
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import safetensors
import safetensors.numpy

from bert.errors import InputError
from bert.interop.model_directory import read_json
from bert.interop.tensors import Selected, Tensors, open_safetensors
from bert.interop.torch_file import open_torch

SAFETENSORS, TORCH = "model.safetensors", "pytorch_model.bin"
INDEX = f"{SAFETENSORS}.index.json"
_OPEN: dict[str, Callable[[pathlib.Path], Tensors]] = {SAFETENSORS: open_safetensors, TORCH: open_torch}


def find(folder: pathlib.Path) -> pathlib.Path | None:
    """The weights file, or the index of several; None where there is neither."""
    candidates = (folder / f"{name}{suffix}" for name in _OPEN for suffix in ("", ".index.json"))
    return next((path for path in candidates if path.is_file()), None)


def open_weights(path: pathlib.Path) -> Tensors:
    """The tensors of a file that `find` found.

    Raises:
      InputError: a file is absent, damaged, or lacks a tensor that the index promises.
    """
    if path.name in _OPEN:
        return _OPEN[path.name](path)
    homes = _weight_map(path)
    opened: dict[str, Tensors] = {}
    for shard in sorted(set(homes.values())):
        # An index comes from whoever made the directory: it may name files beside it, and no others.
        if pathlib.PurePath(shard).name != shard or "\\" in shard:
            raise InputError(f"{path}: names the file {shard!r}; shards lie beside their index")
        if not (path.parent / shard).is_file():
            raise InputError(f"{path.parent / shard}: no such file, but {path.name} names it; get the missing shard")
        opened[shard] = _OPEN[path.name.removesuffix(".index.json")](path.parent / shard)
    for name, shard in homes.items():
        if name not in opened[shard]:
            raise InputError(f"{path.parent / shard}: lacks {name}, which {path.name} promises; get the files again")
    return Selected({name: (opened[shard], name) for name, shard in homes.items()})


def _weight_map(path: pathlib.Path) -> dict[str, str]:
    homes = read_json(path).get("weight_map")
    if not isinstance(homes, dict) or not homes or not all(isinstance(shard, str) for shard in homes.values()):
        raise InputError(f"{path}: weight_map must hold the file name of each tensor; the file is damaged")
    return homes


def _write_one(path: pathlib.Path, tensors: dict[str, np.ndarray]) -> None:
    try:
        safetensors.numpy.save_file(tensors, path, metadata={"format": "pt"})
    except safetensors.SafetensorError as error:
        cause = re.search(r"\(os error (\d+)\)", str(error))
        if cause is None:
            raise
        # The library has an exception of its own for a full disk; the system's says it to everyone.
        raise OSError(int(cause[1]), os.strerror(int(cause[1])), str(path)) from None


def write(folder: pathlib.Path, tensors: Iterator[tuple[str, np.ndarray]], largest: int) -> None:
    """Writes the tensors as model.safetensors, or as shards with an index where they have more than ``largest`` bytes.

    Holds one shard in memory at a time. A tensor is never split, so one that is larger makes a larger shard.
    OSError where the system does not let it.
    """
    names: list[list[str]] = []
    held: dict[str, np.ndarray] = {}
    total = 0

    def put_away() -> None:
        # Names say how many there are, so until the end they say something else.
        _write_one(folder / f"{len(names)}.part", held)
        names.append(list(held))
        held.clear()

    for name, tensor in tensors:
        if held and sum(other.nbytes for other in held.values()) + tensor.nbytes > largest:
            put_away()
        held[name], total = tensor, total + tensor.nbytes
    put_away()
    if len(names) == 1:
        (folder / "0.part").rename(folder / SAFETENSORS)
        return
    homes: dict[str, str] = {}
    for i, shard_names in enumerate(names):
        shard = f"model-{i + 1:05d}-of-{len(names):05d}.safetensors"
        (folder / f"{i}.part").rename(folder / shard)
        homes |= dict.fromkeys(shard_names, shard)
    index: Mapping[str, object] = {"metadata": {"total_size": total}, "weight_map": homes}
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8", newline="\n")
