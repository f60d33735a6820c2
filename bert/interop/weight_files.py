"""The weights of a Hugging Face directory: one file or several with an index, as safetensors or as torch's pickles.

Where a directory holds several kinds, safetensors wins; a pickle is read by torch_file.py, which executes nothing.
"""

import json
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import google_crc32c
import numpy as np

from bert.errors import InputError, printable
from bert.interop.formats import safetensors_file
from bert.interop.formats.safetensors_file import CHECKSUMS, SafetensorsFile, open_safetensors
from bert.interop.formats.tensors import Selected, Tensors
from bert.interop.formats.torch_file import open_torch
from bert.interop.model_directory import read_json

SAFETENSORS, TORCH = "model.safetensors", "pytorch_model.bin"
INDEX = f"{SAFETENSORS}.index.json"
_OPEN: dict[str, Callable[[pathlib.Path], Tensors]] = {SAFETENSORS: open_safetensors, TORCH: open_torch}


def find(folder: pathlib.Path) -> pathlib.Path | None:
    """The weights file, or the index of several; None where there is neither.

    Raises InputError where what has the name of one is no file: no other kind of weights takes its place.
    """
    for name in (f"{name}{suffix}" for name in _OPEN for suffix in ("", ".index.json")):
        if (folder / name).is_file():
            return folder / name
        if os.path.lexists(folder / name):
            raise InputError(
                f"{folder / name}: no file but a folder, a pipe, a device or a link to nothing; put the file there, or "
                "remove it"
            )
    return None


def open_weights(path: pathlib.Path) -> Tensors:
    """The tensors of a file that `find` found.

    Raises InputError for a file that is absent, damaged, or does not hold the tensors that the index promises.
    """
    if path.name in _OPEN:
        return _OPEN[path.name](path)
    index = read_json(path)
    homes = index.get("weight_map")
    if not isinstance(homes, dict) or not homes or not all(isinstance(shard, str) for shard in homes.values()):
        raise InputError(f"{path}: weight_map must hold the file name of each tensor; the file is damaged")
    opened: dict[str, Tensors] = {}
    for shard in sorted(set(homes.values())):
        # An index comes from whoever made the directory: it may name files beside it, and no others.
        if pathlib.PurePath(shard).name != shard or "\\" in shard or not shard.isprintable():
            raise InputError(f"{path}: names the file {shard!r}; shards lie beside their index")
        if not os.path.lexists(path.parent / shard):
            raise InputError(f"{path.parent / shard}: no such file, but {path.name} names it; get the missing shard")
        opened[shard] = _OPEN[path.name.removesuffix(".index.json")](path.parent / shard)
    _check_shards(path, index, opened)
    for name, shard in homes.items():
        if name not in opened[shard]:
            raise InputError(
                f"{path.parent / shard}: lacks {printable(name)}, which {path.name} promises; get the files again"
            )
    # What a shard holds beyond the index is there, too: other programs load whole shards.
    places = {name: (tensors, name) for tensors in opened.values() for name in tensors}
    places |= {name: (opened[shard], name) for name, shard in homes.items()}
    for shard, tensors in opened.items():
        for name in tensors:
            file, _ = places[name]
            if file is not tensors and not np.array_equal(file[name], tensors[name]):
                raise InputError(
                    f"{path.parent / shard}: its {printable(name)} is not that of the shard which {path.name} names; "
                    "the files are of two models: get them again"
                )
    return Selected(places)


def metadata_of(tensors: Tensors) -> dict[str, str]:
    """The metadata of the file, or of the first of its shards; nothing in a format without any."""
    file = next((file for file, _ in tensors.entries.values()), {}) if isinstance(tensors, Selected) else tensors
    return file.metadata if isinstance(file, SafetensorsFile) else {}


def _check_shards(path: pathlib.Path, index: Mapping[str, Any], opened: Mapping[str, Tensors]) -> None:
    """Refuses a shard that is whole, but of another export than the index. An index of others has no checksums."""
    metadata = index.get("metadata")
    stored = metadata.get(CHECKSUMS) if isinstance(metadata, dict) else None
    if stored is None:
        return
    for shard, tensors in opened.items():
        if not isinstance(stored, dict) or stored.get(shard) != _checksum(metadata_of(tensors)):
            raise InputError(
                f"{path.parent / shard}: not the shard that {path.name} was written with; copy all files of the "
                "directory again, or export it again"
            )


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
    gets the checksums of its tensors, and ``metadata``. OSError where the system does not let it.
    """
    names: list[list[str]] = []  # of the tensors in each shard
    checksums: list[str] = []
    total = 0
    for shard in _shards(tensors, largest):
        header = {CHECKSUMS: json.dumps({name: safetensors_file.checksum(tensor) for name, tensor in shard.items()})}
        header |= metadata or {}
        # The final names say how many shards there are, which is known at the end.
        safetensors_file.write_safetensors(folder / f"{len(names)}.part", shard, header)
        names.append(list(shard))
        checksums.append(_checksum(header))
        total += sum(tensor.nbytes for tensor in shard.values())
    if len(names) == 1:
        (folder / "0.part").rename(folder / SAFETENSORS)
        return
    files = [f"model-{i + 1:05d}-of-{len(names):05d}.safetensors" for i in range(len(names))]
    for i, file in enumerate(files):
        (folder / f"{i}.part").rename(folder / file)
    homes = {name: file for file, shard_names in zip(files, names, strict=True) for name in shard_names}
    about = {"total_size": total, CHECKSUMS: dict(zip(files, checksums, strict=True))}
    text = json.dumps({"metadata": about, "weight_map": homes}, indent=2)
    (folder / INDEX).write_text(text + "\n", encoding="utf-8", newline="\n")


def _shards(tensors: Iterator[tuple[str, np.ndarray]], largest: int) -> Iterator[dict[str, np.ndarray]]:
    """The tensors of each shard, in one dict that is filled anew, so that one shard is in memory at a time."""
    shard: dict[str, np.ndarray] = {}
    for name, tensor in tensors:
        if shard and sum(other.nbytes for other in shard.values()) + tensor.nbytes > largest:
            yield shard
            shard.clear()
        shard[name] = tensor
    yield shard
