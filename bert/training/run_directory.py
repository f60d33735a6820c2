"""The folder of a run: stores its settings and data, and checks whether it may resume with other ones.

config.json            every value as used, the encoder, and the checksums of the data and of the tokenizer
tokenizer.json, vocab.txt, tokenizer_config.json
checkpoints/STEP/      bert/training/checkpoint.py
metrics.jsonl, tensorboard/
starts.jsonl, evaluation.json, predictions/, report.html    bert/reports/records.py
tracker.*              bert/training/trackers/, where config.tracker is set
model/                 the newest finished export, in Hugging Face layout
cache/                 compiled programs
"""

import contextlib
import hashlib
import json
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from absl import logging
from jax.experimental import multihost_utils

from bert import architectures, files, json_files, surrogates
from bert.architectures import ModelConfig
from bert.errors import InputError, cannot_write
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.tokenizer import Tokenizer

CONFIG, CHECKPOINTS, MODEL = "config.json", "checkpoints", "model"
METRICS, BOARD, CACHE = "metrics.jsonl", "tensorboard", "cache"
# Between processes: paths (data_sha256 says whether the data are the same), and what changes no number.
_MAY_DIFFER = ("data", "validation", "allocator")
DATA, _TOKENIZER = "data_sha256", "tokenizer_sha256"  # checksums, which only the config.json of a run has
RECORDED = (DATA, _TOKENIZER, "encoder", "labels", "extra", "added_tokens")  # in config.json, but not set
_RESTORE = "restore it from a copy, or choose another folder"
_DAMAGED = f"the file was damaged or edited; {_RESTORE}"
_OBJECTIVES = ("nsp", "sop", "none")
LOCK = "lock"
_BEFORE_CONFIG = (CACHE, LOCK, "config.json.tmp")  # what a run leaves that was killed before it wrote its settings


@contextlib.contextmanager
def locked(workdir: pathlib.Path) -> Iterator[None]:
    """Creates the folder and keeps other runs out of it; process 0 holds the lock for all processes of the run.

    Raises InputError where another run is active there, or no such folder can be created.
    """
    if jax.process_index() != 0:
        yield
        return
    check_path(workdir)
    with contextlib.ExitStack() as stack:
        try:
            busy = f"{workdir}: another run is active in this folder; wait for it, or stop it"
            is_new = stack.enter_context(files.lock(workdir / LOCK, busy))
        except OSError as error:
            raise InputError(f"{workdir}: cannot be a run directory ({error.strerror}); choose another") from None
        try:
            yield
        finally:
            if is_new and not (workdir / CONFIG).exists():  # refused: leave no trace
                with contextlib.suppress(OSError):  # on Windows the lock stays, which is open; or it is not empty
                    (workdir / LOCK).unlink(missing_ok=True)
                    workdir.rmdir()


def check_path(folder: pathlib.Path) -> None:
    """Refuses a folder in which checkpoints would be lost, or cannot be written."""
    path = folder.absolute().as_posix()
    if surrogates.contains(path):  # JAX and Orbax take no bytes for a name
        raise InputError(f"{folder}: its name is not UTF-8; choose another folder")
    if "\\" in path:  # TensorStore reads it as "/", and writes to another folder
        raise InputError(f"{folder}: no checkpoint can be saved where the path has a backslash; choose another folder")


def steps(checkpoints: pathlib.Path) -> list[int]:
    """Steps of the checkpoints in a folder, the newest last. InputError where it is a file."""
    if checkpoints.exists() and not checkpoints.is_dir():
        raise InputError(f"{checkpoints}: is a file where a folder belongs; move it away")
    names = [entry.name for entry in checkpoints.iterdir() if entry.is_dir()] if checkpoints.is_dir() else []
    return sorted(int(name) for name in names if re.fullmatch("0|[1-9][0-9]{0,17}", name))


def has_checkpoints(workdir: pathlib.Path) -> bool:
    """Whether there is a finished checkpoint, or one that was set aside as damaged."""
    return any(steps(folder) for folder in (workdir / CHECKPOINTS, workdir / f"{CHECKPOINTS}.damaged"))


def newest_step(workdir: pathlib.Path) -> int:
    """Step of the newest checkpoint that is not empty, else 0."""
    folder = workdir / CHECKPOINTS
    return max((step for step in steps(folder) if (folder / str(step) / "meta").is_dir()), default=0)


def check(
    workdir: pathlib.Path,
    settings: Mapping[str, Any],
    *,
    may_change: tuple[str, ...],
    defaults: Mapping[str, Any] | None = None,
) -> bool:
    """Whether a run there resumes with these settings (True), or a new one can start (False); writes nothing.

    Args:
      settings: dotted name -> value that survives JSON; all of the run's settings and its data's checksum.
      may_change: settings, or sections with a dot behind them, that do not change what is trained.
      defaults: values of settings; one that is newer than the run had its default.

    Raises InputError where settings differ, naming each with both values, or the folder holds something else.
    """
    path = workdir / CONFIG
    if not path.exists():
        entries = workdir.iterdir() if workdir.exists() else ()
        unfinished = files.workspace_prefix(path)  # of the settings
        if any(e.name not in _BEFORE_CONFIG and not e.name.startswith(unfinished) for e in entries):
            raise InputError(f"{workdir}: holds files but no run ({CONFIG} is not there); choose another folder")
        return False
    before, now = read(workdir), _as_read(settings)
    before.pop(_TOKENIZER, None)
    if before.get("task") == now.get("task"):
        before = {name: value for name, value in _as_read(defaults or {}).items() if name in now} | before
    now = {name: _without_newer(value, before.get(name)) for name, value in now.items()}
    differing = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    free = {name for name in differing if name in may_change or f"{name.split('.')[0]}." in may_change}

    def listed(names: set[str]) -> str:
        return "; ".join(f"{name} was {before.get(name)!r}, is {now.get(name)!r}" for name in sorted(names))

    named = differing - free
    if named and not named & {*now, *RECORDED}:  # another recipe would have other values, too
        raise InputError(f"{path}: {min(named)} is no setting of this command; {_DAMAGED}")
    if named:
        # Derived values are reported only where no setting differs.
        shown = {name for name in named if not isinstance(now.get(name, before.get(name)), dict)} - {DATA}
        if named == {DATA}:
            what = "the data or the validation data have changed since this run was started"
            raise InputError(f"{path}: {what}; give the same, or choose another folder")
        what = f"was started with other settings: {listed({'task'} if 'task' in named else shown or free or named)}"
        raise InputError(f"{path}: this run {what}; give the same ones, or choose another folder")
    if free:
        logging.info("changed since the run was started: %s", listed(free))
    return True


def _without_newer(now: Any, before: Any) -> Any:
    """A derived object without the names that are newer than the run; the settings behind them are compared."""
    if not isinstance(now, dict) or not isinstance(before, dict):
        return now
    return {name: _without_newer(value, before[name]) for name, value in now.items() if name in before}


def write(workdir: pathlib.Path, settings: Mapping[str, Any], tokenizer: Tokenizer | None) -> None:
    """Saves the settings and, where there is one, the tokenizer; every process must call it, process 0 writes when all
    have checked."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices("run directory checked")
    if jax.process_index() == 0:
        values = _as_read(settings) | ({_TOKENIZER: tokenizer.fingerprint} if tokenizer else {})
        try:
            workdir.mkdir(parents=True, exist_ok=True)
            files.write(workdir / CONFIG, files.json_text(values, indent=2))
            if tokenizer:
                tokenizer.save(workdir)
        except OSError as error:
            raise cannot_write(workdir, error) from None


def agree(settings: Mapping[str, Any]) -> None:
    """Compares the settings of all processes before they are used; every process must call it.

    Raises InputError in all processes where some have other settings or data than process 0: they would train on a
    mixture, or wait for each other forever.
    """
    if jax.process_count() == 1:
        return
    settings = _as_read(settings)
    names = sorted(name for name in settings if name not in _MAY_DIFFER)
    names_PB = multihost_utils.process_allgather(_digest(names))
    if (names_PB != names_PB[0]).any():
        raise InputError("the processes were started with different config files or commands; start the same in each")
    digests_PSB = multihost_utils.process_allgather(np.stack([_digest(settings[name]) for name in names]))
    differs_PS = (digests_PSB != digests_PSB[0]).any(-1)
    if differs_PS.any():
        processes = ", ".join(map(str, np.flatnonzero(differs_PS.any(1))))
        differing = ", ".join(name for name, differs in zip(names, differs_PS.any(0), strict=True) if differs)
        what = f"not all processes have the settings and data of process 0 ({differing}; in process {processes})"
        raise InputError(f"{what}; start the same command in each, on the same data")


def _digest(value: Any) -> np.ndarray:
    """uint8 [8], of a value that survives JSON."""
    return np.frombuffer(hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()[:8], np.uint8)


def _as_read(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as they come back from the file: tuples become lists."""
    values: dict[str, Any] = json.loads(json.dumps(settings))
    return values


def read(workdir: pathlib.Path) -> dict[str, Any]:
    """The settings that a run was started with. InputError where there is no run, or a damaged file."""
    path = workdir / CONFIG
    try:
        settings = json_files.read_object(path, finite=False)  # a setting may be infinite
    except FileNotFoundError:
        if has_checkpoints(workdir):
            raise InputError(f"{path}: is missing, which says what the checkpoints are of; {_RESTORE}") from None
        raise InputError(f"{workdir}: no run here ({CONFIG} is not there); name the folder of a run") from None
    except InputError as error:
        raise InputError(f"{error}; {_RESTORE}") from None
    for name, kind in (("encoder", dict), ("labels", list), ("extra", dict), (DATA, str), (_TOKENIZER, str)):
        if name in settings and not isinstance(settings[name], kind):
            raise InputError(f"{path}: {name} is a {type(settings[name]).__name__}; {_DAMAGED}")
    for label in settings.get("labels", ()):
        if not isinstance(label, str):
            raise InputError(f"{path}: labels holds {label!r}, which is no text; {_DAMAGED}")
    return settings


def read_encoder(workdir: pathlib.Path) -> ModelConfig:
    """The encoder of a run. InputError where the settings describe none, or are damaged."""
    path, encoder = workdir / CONFIG, read(workdir).get("encoder")
    if encoder is None:
        raise InputError(f'{path}: has no encoder ("encoder"); name a run, or a model directory')
    return architectures.config_from_json(encoder, source=str(path))


def read_model_keys(workdir: pathlib.Path, step: int) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Names of the classes, and the further keys of a model directory with this run's weights of ``step``.

    Raises InputError where the settings are neither those of a pretraining run nor of a fine-tuning run.
    """
    settings, path = read(workdir), workdir / CONFIG
    if "labels" in settings and "extra" in settings:
        return tuple(settings["labels"]), settings["extra"]
    objective = settings.get("examples.objective")
    if objective not in _OBJECTIVES or "labels" in settings or "extra" in settings:
        what = 'neither the settings of pretraining ("examples.objective") nor of fine-tuning ("labels" and "extra")'
        raise InputError(f"{path}: has {what}; {_DAMAGED}")
    return (), {"pretraining": pretraining_keys(step, objective, settings.get("objective", "mlm"))}


def pretraining_keys(step: int, pairs: str, objective: str) -> dict[str, Any]:
    """What a pretrained model's config.json says of its training; the objective where it is not masked words."""
    return {"step": step, "objective": pairs} | ({} if objective == "mlm" else {"predicts": objective})


def read_tokenizer(workdir: pathlib.Path) -> Tokenizer | None:
    """The tokenizer of a run; None where its encoder reads no texts.

    Raises InputError where its files are missing, damaged, or those of another tokenizer.
    """
    settings = read(workdir)
    if "encoder" in settings and not architectures.has_tokenizer(read_encoder(workdir)):
        return None
    expected, tokenizer = settings.get(_TOKENIZER), load_tokenizer(workdir)
    if expected not in (None, tokenizer.fingerprint):
        what = "tokenizer.json, vocab.txt and tokenizer_config.json are not the tokenizer that the run was started with"
        raise InputError(f"{workdir}: {what}; one of them is missing or damaged: restore it from a copy")
    return tokenizer
