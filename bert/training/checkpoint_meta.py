"""What a checkpoint holds beside its arrays: counters, shape and digest of every array, and a checksum of all that.

It is a JSON object: what the loop gives (``totals``, ``best``), ``arrays`` {path: {shape, digest}}, and ``sha256`` of
the rest. Checkpoints of earlier versions lack the last two; they are read as they are.
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
    """``content``: what the loop gave. ``arrays``: path -> {"shape", "digest"}; None in an older checkpoint."""

    content: dict[str, Any]
    arrays: dict[str, dict[str, Any]] | None


def complete(content: Mapping[str, Any], state: Any) -> dict[str, Any]:
    """The object to write for a state on its devices; every process must call it."""
    found = array_digests.of_devices(state)
    arrays = {name: {"shape": shape, "digest": found[name]} for name, shape in array_digests.shapes(state).items()}
    # A copy: Orbax writes it later, in a thread, when the loop has gone on and added to its sums.
    whole = json.loads(json.dumps({**content, _ARRAYS: arrays}))
    return {**whole, _CHECKSUM: _checksum(whole)}


def read(step_directory: pathlib.Path) -> Meta:
    """What a checkpoint says.

    Raises:
      ValueError: it is absent or damaged.
    """
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
    """Step of the newest checkpoint that says what it holds, and what it says; its arrays may still be damaged."""
    for step in run_directory.steps(checkpoints)[::-1]:
        with contextlib.suppress(ValueError):  # damaged: who reads the arrays says so
            return step, read(checkpoints / str(step))
    return None


def damage(found: Mapping[str, str], arrays: Mapping[str, Mapping[str, Any]] | None) -> str:
    """Which array did not come back as it was saved, in words; empty where all did, or nothing was noted."""
    wrong = [name for name, digest in found.items() if arrays and arrays.get(name, {}).get("digest") != digest]
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
