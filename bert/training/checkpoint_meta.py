"""The JSON object of a checkpoint: the loop's counters, the shape and digest of every array, and a checksum.

Keys: those of the loop (``totals``, ``best``), ``arrays`` {path: {shape, digest}}, and ``sha256`` of the rest.
Checkpoints of earlier versions lack the last two, and are read without them.
"""

import contextlib
import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert import json_files
from bert.errors import InputError
from bert.training import array_digests, run_directory
from bert.training.best import Best

_ARRAYS, _CHECKSUM = "arrays", "sha256"


class Meta(NamedTuple):
    content: dict[str, Any]  # of the loop
    arrays: dict[str, dict[str, Any]] | None  # path -> {"shape", "digest"}; None in an older checkpoint


def complete(content: Mapping[str, Any], state: Any) -> dict[str, Any]:
    """The object to write for a state on its devices; every process must call it."""
    digests = array_digests.of_devices(state)
    arrays = {name: {"shape": shape, "digest": digests[name]} for name, shape in array_digests.shapes(state).items()}
    # A copy: Orbax writes it later, in a thread, when the loop has added to its sums.
    whole = json.loads(json.dumps({**content, _ARRAYS: arrays}))
    return {**whole, _CHECKSUM: _checksum(whole)}


def read(step_directory: pathlib.Path) -> Meta:
    """The object of a checkpoint. ValueError where it is absent or damaged."""
    try:
        values = json_files.read_object(step_directory / "meta" / "metadata", finite=False)
    except FileNotFoundError:
        raise ValueError("its meta/metadata is missing") from None
    except InputError as error:
        raise ValueError(str(error).removeprefix(f"{step_directory}/")) from None
    if values.keys() & {_ARRAYS, _CHECKSUM}:
        if values.pop(_CHECKSUM, None) != _checksum(values):
            raise ValueError("its meta/metadata differs from its checksum")
        return Meta(values, values.pop(_ARRAYS))
    _check_older(values)
    return Meta(values, None)


def newest(checkpoints: pathlib.Path) -> tuple[int, Meta] | None:
    """Step and object of the newest checkpoint with a readable one; its arrays may still be damaged."""
    for step in run_directory.steps(checkpoints)[::-1]:
        with contextlib.suppress(ValueError):  # damaged, which reading the arrays reports
            return step, read(checkpoints / str(step))
    return None


def damage(digests: Mapping[str, str], arrays: Mapping[str, Mapping[str, Any]] | None) -> str:
    """A sentence on the first array that differs from its digest; empty where none does, or without digests."""
    wrong = [name for name, digest in digests.items() if arrays and arrays.get(name, {}).get("digest") != digest]
    return f"array {wrong[0]} differs from its digest" if wrong else ""


def _checksum(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _check_older(values: Mapping[str, Any]) -> None:
    """Raises ValueError unless ``values`` are what earlier versions wrote, which no checksum protects."""
    totals, best = values.get("totals"), values.get("best") or {}
    fields = {field.name for field in dataclasses.fields(Best)}
    if not isinstance(totals, dict) or not all(_is_number(value) for value in totals.values()):
        raise ValueError("its meta/metadata has no sums (totals)")
    if not isinstance(best, dict) or not best.keys() <= fields or not all(map(_is_number, best.values())):
        raise ValueError("its meta/metadata has no best evaluation that makes sense (best)")


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, int | float)
