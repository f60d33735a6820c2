"""Checkpoints of the training state: saved in the background, restored on any mesh. The only importer of Orbax.

A checkpoint is complete or absent: Orbax writes under a temporary name and renames. Later damage is detected on
reading, by a digest of every array (checkpoint_meta.py). A damaged checkpoint is set aside, and the one before is used.
"""

import gc
import os
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from absl import logging
from etils import epath
from jax.experimental import multihost_utils
from orbax.checkpoint import checkpoint_managers

from bert import files
from bert.errors import InputError, RunError, cannot_write
from bert.training import array_digests, checkpoint_meta, late_complaints, run_directory


class _Path(type(epath.Path())):  # type: ignore[misc]
    """A path for Orbax, whose `glob` takes no character of the path itself for a pattern."""

    def glob(self, pattern: str) -> Iterator["_Path"]:
        return map(_Path, pathlib.Path(self).glob(pattern))


class Checkpoints:
    """The checkpoints of one run, ``directory/STEP/``; the ``keep`` newest stay."""

    def __init__(self, directory: pathlib.Path, *, keep: int = 2):
        late_complaints.drop()
        run_directory.check_path(directory)
        self.directory = pathlib.Path(directory).absolute()
        self._manager = ocp.CheckpointManager(
            _Path(self.directory),
            item_handlers={"state": ocp.StandardCheckpointHandler(), "meta": ocp.JsonCheckpointHandler()},
            options=ocp.CheckpointManagerOptions(
                cleanup_tmp_directories=True, preservation_policy=checkpoint_managers.LatestN(keep)
            ),
        )

    def save(self, step: int, state: Any, meta: dict[str, Any]) -> None:
        """Starts saving; returns when the arrays are copied, before the files are written.

        ``step`` counts finished optimizer steps; ``meta``, what else a restart needs, must survive JSON. Raises
        RunError where this checkpoint or the one before could not be written, such as on a full disk.
        """
        if step in self._manager.all_steps():
            return
        whole = checkpoint_meta.complete(meta, state)
        args = ocp.args.Composite(state=ocp.args.StandardSave(state), meta=ocp.args.JsonSave(whole))
        self._write(lambda: self._manager.save(step, args=args, force=True))

    def restore(self, target: Any) -> tuple[int, Any, dict[str, Any]] | None:
        """Step, state and meta of the newest readable checkpoint; None where there is no checkpoint.

        ``target`` is a tree of ShapeDtypeStruct with the shardings to restore to (any mesh). Raises RunError where none
        of the checkpoints can be read.
        """
        unreadable: dict[int, str] = {}
        for step in sorted(self._manager.all_steps(), reverse=True):
            restored, problem = None, ""
            try:
                restored = self._read(step, target)
            except InputError:
                raise
            except Exception as error:  # damaged files make Orbax and TensorStore raise anything
                _raise_unless_damaged(error, self.directory / str(step))
                problem = _first_line(error)
            if _in_all_processes(restored is not None) and restored is not None:
                state, meta = restored
                # All processes compute the digests, so only when none of them has failed.
                problem = checkpoint_meta.damage(array_digests.of_devices(state) if meta.arrays else {}, meta.arrays)
                if not problem:
                    # Only now: where nothing can be read, everything stays as it is.
                    for other, why in unreadable.items():
                        logging.warning("%s cannot be read and is set aside: %s", self.directory / str(other), why)
                        self._set_aside(other)
                    return step, state, meta.content
            unreadable[step] = problem or "another process cannot read it"
        if unreadable:
            why = _listed(unreadable)
            raise RunError(f"{self.directory}: no checkpoint can be read ({why}); start anew in another folder")
        return None

    def _read(self, step: int, target: Any) -> tuple[Any, checkpoint_meta.Meta]:
        """State and meta of one checkpoint; a damaged file may raise anything."""
        meta = checkpoint_meta.read(self.directory / str(step))
        _refuse_other_shapes(self.directory / str(step), meta, target)
        args = ocp.args.Composite(state=ocp.args.StandardRestore(target))
        return self._manager.restore(step, args=args)["state"], meta

    def _set_aside(self, step: int) -> None:
        aside = self.directory.with_name(self.directory.name + ".damaged")
        if jax.process_index() == 0:
            try:
                aside.mkdir(exist_ok=True)
                (self.directory / str(step)).rename(files.free_name(aside / str(step)))
            except OSError as error:
                raise cannot_write(aside, error) from None
        if jax.process_count() > 1:
            multihost_utils.sync_global_devices(f"checkpoint {step} set aside")
        self._manager.reload()

    def preempted(self, step: int) -> bool:
        """Whether any of several processes received the signal to stop; True at the same step in all."""
        return bool(self._manager.reached_preemption(step))

    def close(self) -> None:
        """Waits until everything is on disk. RunError where the last checkpoint could not be written."""
        self._write(self._manager.wait_until_finished)
        self._write(self._manager.close)

    def _write(self, work: Callable[[], object]) -> None:
        """Calls what writes files, or waits for them; RunError where the system refuses, or another process is lost."""
        why = ""
        try:
            work()
        except Exception as error:  # of a thread of Orbax: what the system refused, as TensorStore words it
            if isinstance(error, TimeoutError) and error.errno is None:  # it waited for other processes
                what = "a checkpoint cannot be finished, for another process has ended or does not answer"
                way_out = "start the same command again in all processes"
                raise RunError(f"{self.directory}: {what}; {self._last()}; {way_out}") from error.__cause__
            if not isinstance(error, OSError) and not re.search("os_error_code|RESOURCE_EXHAUSTED", str(error)):
                raise
            code = re.search(r"os_error_code='(\d+)'", str(error))
            why = os.strerror(int(code[1])) if code else getattr(error, "strerror", None) or _first_line(error)
        if why:  # outside of `except`, which keeps Orbax's tasks alive: they would print at the end of the process
            gc.collect()
            what = f"a checkpoint cannot be written ({why}); {self._last()}"
            raise RunError(f"{self.directory}: {what}; make room, then run the same command again")

    def _last(self) -> str:
        newest = run_directory.steps(self.directory)[-1:]
        return f"checkpoint {newest[0]} is whole" if newest else "none is finished"


def _listed(unreadable: dict[int, str]) -> str:
    return "; ".join(f"{step}: {why}" for step, why in unreadable.items())


def _first_line(error: Exception) -> str:
    """The beginning of a message, without the objects that Python prints into it."""
    line = (str(error).strip().splitlines() or [""])[0]
    return re.split(r"[<\[{]", line)[0].strip(" :,")[:120] or type(error).__name__


def _in_all_processes(value: bool) -> bool:
    if jax.process_count() == 1:
        return value
    return bool(np.all(multihost_utils.process_allgather(np.array(value))))


def _raise_unless_damaged(error: Exception, step_directory: pathlib.Path) -> None:
    """Raises RunError where an older checkpoint would not help: no memory, no permission."""
    refused = re.search("PERMISSION_DENIED|RESOURCE_EXHAUSTED", str(error))
    if refused or isinstance(error, MemoryError | PermissionError):
        raise RunError(f"{step_directory}: {_first_line(error)}; the checkpoint is left as it is") from error


def _refuse_other_shapes(step_directory: pathlib.Path, meta: checkpoint_meta.Meta, target: Any) -> None:
    """Raises InputError where the checkpoint is one of another model or optimizer."""
    if meta.arrays is not None:
        other = {name: array["shape"] for name, array in meta.arrays.items()} != array_digests.shapes(target)
    else:
        try:
            saved = _shapes(ocp.PyTreeCheckpointer().metadata(_Path(step_directory / "state")).item_metadata.tree)
        except Exception:  # damaged, which restoring reports
            return
        other = bool(saved) and saved != _shapes(target)
    if other:
        what = f"{step_directory}: saved by a run with other parameters or another optimizer"
        raise InputError(f"{what}; choose another folder, or the settings that it was started with")


def _shapes(tree: Any) -> list[tuple[int, ...]]:
    """Shapes of all arrays, in order of size; paths are spelled differently in files and in memory."""
    return sorted(tuple(leaf.shape) for leaf in jax.tree.leaves(tree) if hasattr(leaf, "shape"))


def best_step(directory: pathlib.Path) -> int | None:
    """Step of the best evaluation by the newest readable checkpoint; None where none was chosen."""
    newest = checkpoint_meta.newest(directory)
    best = newest[1].content.get("best") if newest else None
    return best["step"] if best and best.get("step", -1) >= 0 else None


def newest_params(directory: pathlib.Path, only: int | None = None) -> tuple[int, dict[str, Any]]:
    """Step and parameters (NumPy arrays) of the newest whole checkpoint in a folder, or of the step ``only``.

    A damaged one stays, with a warning, for a run may be active there. InputError where there is none.
    """
    late_complaints.drop()
    directory = pathlib.Path(directory).absolute()
    unreadable: dict[int, str] = {}
    for step in [step for step in run_directory.steps(directory)[::-1] if only in (None, step)]:
        try:
            params = _read_params(directory / str(step))
        except MemoryError:
            raise
        except Exception as error:  # damaged files make Orbax and TensorStore raise anything
            if not (directory / str(step)).exists():  # an active run has saved newer ones meanwhile, and deleted it
                return newest_params(directory, only)
            unreadable[step] = _first_line(error)
            continue
        for other, why in unreadable.items():
            logging.warning("%s cannot be read (%s); the one of step %d is used", directory / str(other), why, step)
        return step, params
    if unreadable:
        raise InputError(f"{directory}: no checkpoint can be read ({_listed(unreadable)}); name another model")
    if only is not None:
        raise InputError(f"{directory}: holds steps {', '.join(map(str, run_directory.steps(directory)))}, not {only}")
    raise InputError(f"{directory}: no finished checkpoint here; let its run reach one, or name another model")


def _read_params(step_directory: pathlib.Path) -> dict[str, Any]:
    """The parameters of one checkpoint (NumPy arrays), or their average where it holds one (`step.AveragedState`).

    A damaged file may raise anything.
    """
    meta, path = checkpoint_meta.read(step_directory), _Path(step_directory / "state")
    checkpointer = ocp.PyTreeCheckpointer()
    described = checkpointer.metadata(path).item_metadata
    if described is None:
        raise ValueError("its state/_METADATA cannot be read")
    name = "average" if "average" in described.tree else "params"
    item = {name: described.tree[name]}
    as_numpy = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), item)
    empty = jax.tree.map(lambda _: 0, item)
    args = ocp.args.PyTreeRestore(item=empty, partial_restore=True, restore_args=as_numpy)
    params: dict[str, Any] = checkpointer.restore(path, args=args)[name]
    digests = array_digests.of_host({name: params}) if meta.arrays else {}
    lost = [array for array in meta.arrays or () if array.startswith(f"{name}/") and array not in digests]
    if problem := checkpoint_meta.damage(digests, meta.arrays) or (lost and f"array {lost[0]} is missing"):
        raise ValueError(problem)
    return params
