"""The folder of one run: which settings and which data it was started with, and may it go on with these?

config.json            every value as used, and what the data was
tokenizer.json, vocab.txt, tokenizer_config.json
checkpoints/STEP/      bert/training/checkpoint.py
metrics.jsonl, tensorboard/
model/                 the newest finished export, in Hugging Face layout
"""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
from absl import logging
from jax.experimental import multihost_utils

from bert.errors import InputError
from bert.text.tokenizer import Tokenizer

CONFIG, CHECKPOINTS, MODEL = "config.json", "checkpoints", "model"


def open_run(
    workdir: pathlib.Path, settings: Mapping[str, Any], tokenizer: Tokenizer, *, may_change: tuple[str, ...]
) -> bool:
    """Makes the run directory, or checks that the one there was started with the same settings.

    Args:
      settings: dotted name -> value that survives JSON; all of the run's settings and its data's checksum.
      may_change: names, or beginnings that end in a dot, of settings that do not change what is trained.

    Returns:
      whether the run goes on (True) or is new.

    Raises:
      InputError: settings differ, naming each with both values.
    """
    path = workdir / CONFIG
    settings = json.loads(json.dumps(settings))  # tuples become lists, as they come back
    goes_on = path.exists()
    if goes_on:
        before = read(workdir)
        differing = {k for k in before.keys() | settings.keys() if before.get(k) != settings.get(k)}
        free = {
            k for k in differing if any(k == name or (name[-1] == "." and k.startswith(name)) for name in may_change)
        }
        told = lambda names: "; ".join(f"{k} was {before.get(k)!r}, is {settings.get(k)!r}" for k in sorted(names))  # noqa: E731
        if differing - free:
            raise InputError(
                f"{path}: this run was started with other settings: {told(differing - free)}; "
                "give the same ones, or another --workdir"
            )
        if free:
            logging.info("changed since the run was started: %s", told(free))
    elif workdir.exists() and any(entry.name != "cache" for entry in workdir.iterdir()):
        raise InputError(f"{workdir}: holds files but no run ({CONFIG} is not there); give another --workdir")
    if jax.process_index() == 0:
        workdir.mkdir(parents=True, exist_ok=True)
        tokenizer.save(workdir)
        aside = path.with_suffix(".json.tmp")
        aside.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        aside.replace(path)
    return goes_on


def read(workdir: pathlib.Path) -> dict[str, Any]:
    """The settings that a run directory was started with.

    Raises:
      InputError: no run there, or a damaged file.
    """
    path = workdir / CONFIG
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{workdir}: no run here ({CONFIG} is not there)") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON ({error.msg}); the file was damaged or edited") from error


def on_this_host(params: Any) -> Any:
    """A tree of NumPy arrays from one of global arrays; every process must call it, and gets all of it."""
    if jax.process_count() > 1:
        return multihost_utils.process_allgather(params, tiled=True)
    return jax.device_get(params)
