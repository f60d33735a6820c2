"""The weights of a directory: one file, or shards with an index; safetensors or PyTorch pickles.

If a directory has both, safetensors is read. torch_file.py reads pickles without executing them.
A new weight format is a reader in this folder and a line in `_READERS`.
"""

import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import google_crc32c
import numpy as np

from bert import json_files
from bert.errors import InputError, printable
from bert.interop.formats import safetensors_file
from bert.interop.formats.safetensors_file import CHECKSUMS, SafetensorsFile, open_safetensors
from bert.interop.formats.tensors import Selected, Tensors
from bert.interop.formats.torch_file import open_torch

SAFETENSORS, TORCH = "model.safetensors", "pytorch_model.bin"
INDEX = f"{SAFETENSORS}.index.json"
_READERS: dict[str, Callable[[pathlib.Path], Tensors]] = {SAFETENSORS: open_safetensors, TORCH: open_torch}


def find(folder: pathlib.Path) -> pathlib.Path | None:
    """The weights file, or the index of several; None where there is neither.

    Raises InputError where something else has the name of one: other weights beside it are not read in its place.
    """
    for path in (folder / f"{name}{suffix}" for name in _READERS for suffix in ("", ".index.json")):
        if path.is_file():
            return path
        if os.path.lexists(path):
            raise InputError(
                f"{path}: no file but a folder, pipe, device or dead link; put the file there or remove it"
            )
    return None


def open_weights(path: pathlib.Path) -> Tensors:
    """The tensors of a file that `find` returned. InputError where it is damaged, or lacks what its index promises."""
    if path.name in _READERS:
        return _READERS[path.name](path)
    index = json_files.read_object(path, allow_surrogates=True)
    homes = index.get("weight_map")
    if not isinstance(homes, dict) or not homes or not all(isinstance(shard, str) for shard in homes.values()):
        raise InputError(f"{path}: weight_map must hold the file name of each tensor; the file is damaged")
    shards = {shard: _open_shard(path, shard) for shard in sorted(set(homes.values()))}
    _check_checksums(path, index, shards)
    for name, shard in homes.items():
        if name not in shards[shard]:
            what = f"lacks {printable(name)}, which {path.name} promises"
            raise InputError(f"{path.parent / shard}: {what}; get the files again")
    # What a shard holds beyond the index is there, too: other programs load whole shards.
    entries = {name: (tensors, name) for tensors in shards.values() for name in tensors}
    entries |= {name: (shards[shard], name) for name, shard in homes.items()}
    for shard, tensors in shards.items():
        for name in tensors:
            file, _ = entries[name]
            if file is not tensors and not np.array_equal(file[name], tensors[name]):
                what = f"its {printable(name)} is not that of the shard which {path.name} names"
                raise InputError(f"{path.parent / shard}: {what}; the files are of two models: get them again")
    return Selected(entries)


def _open_shard(index: pathlib.Path, shard: str) -> Tensors:
    # An index comes from whoever made the directory: it may name files beside it, and no others.
    if pathlib.PurePath(shard).name != shard or "\\" in shard or not shard.isprintable():
        raise InputError(f"{index}: names the file {shard!r}; shards lie beside their index")
    path = index.parent / shard
    if not os.path.lexists(path):
        raise InputError(f"{path}: no such file, but {index.name} names it; get the missing shard")
    return _READERS[index.name.removesuffix(".index.json")](path)


def metadata_of(tensors: Tensors) -> dict[str, str]:
    """The metadata of the file, or of the first of its shards; empty in a format without any."""
    file = next((file for file, _ in tensors.entries.values()), {}) if isinstance(tensors, Selected) else tensors
    return file.metadata if isinstance(file, SafetensorsFile) else {}


def _check_checksums(path: pathlib.Path, index: Mapping[str, Any], shards: Mapping[str, Tensors]) -> None:
    """Refuses a shard that is whole, but of another export than the index. Other programs write no checksums."""
    metadata = index.get("metadata")
    stored = metadata.get(CHECKSUMS) if isinstance(metadata, dict) else None
    for shard, tensors in shards.items() if stored is not None else ():
        if not isinstance(stored, dict) or stored.get(shard) != _checksum(metadata_of(tensors)):
            what = f"not the shard that {path.name} was written with"
            raise InputError(f"{path.parent / shard}: {what}; copy all files again, or export again")


def _checksum(metadata: Mapping[str, str]) -> str:
    """Of a whole shard: of the checksums of its tensors."""
    return f"{google_crc32c.value(metadata.get(CHECKSUMS, '').encode()):08x}"


def write(
    folder: pathlib.Path,
    tensors: Iterator[tuple[str, np.ndarray]],
    largest: int,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes the tensors as model.safetensors, or as shards with an index where they have more than ``largest`` bytes.

    Holds one shard in memory at a time. A tensor is never split, so one that is larger makes a larger shard. Each file
    gets the checksums of its tensors, and ``metadata``. Raises OSError where the system refuses.
    """
    names: list[list[str]] = []  # of the tensors in each shard
    checksums: list[str] = []
    total = 0
    for shard in _shards(tensors, largest):
        header = {CHECKSUMS: json.dumps({name: safetensors_file.checksum(tensor) for name, tensor in shard.items()})}
        header |= metadata or {}
        # The final names hold the number of shards, which is known at the end.
        safetensors_file.write_safetensors(folder / f"{len(names)}.part", shard, header)
        names.append(list(shard))
        checksums.append(_checksum(header))
        total += sum(tensor.nbytes for tensor in shard.values())
    count = len(names)
    files = [f"model-{i + 1:05d}-of-{count:05d}.safetensors" for i in range(count)] if count > 1 else [SAFETENSORS]
    for i, file in enumerate(files):
        (folder / f"{i}.part").rename(folder / file)
    if count > 1:
        homes = {name: file for file, shard_names in zip(files, names, strict=True) for name in shard_names}
        about = {"total_size": total, CHECKSUMS: dict(zip(files, checksums, strict=True))}
        text = json.dumps({"metadata": about, "weight_map": homes}, indent=2)
        (folder / INDEX).write_text(text + "\n", encoding="utf-8", newline="\n")


def _shards(tensors: Iterator[tuple[str, np.ndarray]], largest: int) -> Iterator[dict[str, np.ndarray]]:
    """The tensors of each shard. The dict is reused, so that one shard is in memory at a time."""
    shard: dict[str, np.ndarray] = {}
    for name, tensor in tensors:
        if shard and sum(other.nbytes for other in shard.values()) + tensor.nbytes > largest:
            yield shard
            shard.clear()
        shard[name] = tensor
    yield shard
