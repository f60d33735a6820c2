"""Checkpoints of the training state: saved in the background, restored on any mesh. The only importer of Orbax.

A checkpoint is complete or absent: Orbax writes under a temporary name and renames. A complete one whose files were
damaged later is found when it is read; it is set aside, and the one before is used.
"""

import contextlib
import os
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from absl import logging
from jax.experimental import multihost_utils
from orbax.checkpoint import checkpoint_managers

from bert.errors import InputError, RunError


class Checkpoints:
    """The checkpoints of one run, ``directory/STEP/``.

    Args:
      directory: made if missing.
      keep: this many newest ones stay (at least 1).
    """

    def __init__(self, directory: pathlib.Path, *, keep: int = 2):
        self.directory = pathlib.Path(directory).absolute()
        self._manager = ocp.CheckpointManager(
            self.directory,
            item_handlers={"state": ocp.StandardCheckpointHandler(), "meta": ocp.JsonCheckpointHandler()},
            options=ocp.CheckpointManagerOptions(
                cleanup_tmp_directories=True,
                preservation_policy=checkpoint_managers.LatestN(keep),
            ),
        )

    def save(self, step: int, state: Any, meta: dict[str, Any]) -> None:
        """Starts saving; returns when the arrays are copied, before the files are written.

        Args:
          step: number of finished optimizer steps.
          state: the training state, a tree of arrays.
          meta: what else a restart needs; must survive JSON.
        """
        if step in self._manager.all_steps():
            return
        args = ocp.args.Composite(state=ocp.args.StandardSave(state), meta=ocp.args.JsonSave(meta))
        self._manager.save(step, args=args, force=True)

    def restore(self, target: Any) -> tuple[int, Any, dict[str, Any]] | None:
        """Step, state and meta of the newest checkpoint that can be read; None where there is none.

        Args:
          target: tree of ShapeDtypeStruct with the shardings to restore to (any mesh).

        Raises:
          RunError: when there are checkpoints and none can be read.
        """
        args = ocp.args.Composite(state=ocp.args.StandardRestore(target), meta=ocp.args.JsonRestore())
        unreadable: dict[int, str] = {}
        for step in sorted(self._manager.all_steps(), reverse=True):
            restored, problem = None, ""
            try:
                with _without_late_complaints():
                    _refuse_other_shapes(self.directory / str(step), target)
                    restored = self._manager.restore(step, args=args)
            except InputError:
                raise
            except Exception as error:  # whatever a damaged file makes Orbax and TensorStore raise
                _raise_unless_damaged(error, self.directory / str(step))
                problem = _first_line(error)
            if _in_all_processes(restored is not None) and restored is not None:
                # Only now: where nothing can be read, everything stays as it is.
                for other, why in unreadable.items():
                    logging.warning("checkpoint %d cannot be read and is set aside: %s", other, why)
                    self._set_aside(other)
                return step, restored["state"], restored["meta"]
            unreadable[step] = problem or "another process cannot read it"
        if unreadable:
            told = "; ".join(f"{step}: {why}" for step, why in unreadable.items())
            raise RunError(f"{self.directory}: no checkpoint can be read ({told}); start anew in another folder")
        return None

    def _set_aside(self, step: int) -> None:
        aside = self.directory.with_name(self.directory.name + ".damaged")
        if jax.process_index() == 0:
            aside.mkdir(exist_ok=True)
            place = aside / str(step)
            while os.path.lexists(place):  # an earlier one of this step stays
                place = place.with_name(f"{place.name}-again")
            (self.directory / str(step)).rename(place)
        if jax.process_count() > 1:
            multihost_utils.sync_global_devices(f"checkpoint {step} set aside")
        self._manager.reload()

    def preempted(self, step: int) -> bool:
        """Several processes: has the scheduler asked any of them to stop? True at the same step in all."""
        return self._manager.reached_preemption(step)

    def close(self) -> None:
        """Waits until everything is on disk."""
        self._manager.wait_until_finished()
        self._manager.close()


def _first_line(error: Exception) -> str:
    """The beginning of a message, without the objects that Python prints into it."""
    line = (str(error).strip().splitlines() or [""])[0]
    return re.split(r"[<\[{]", line)[0].strip(" :,")[:120] or type(error).__name__


@contextlib.contextmanager
def _without_late_complaints() -> Iterator[None]:
    """One unreadable array ends Orbax's event loop; each of the other reads then complains that it is closed.

    Those complaints, dozens of tracebacks from TensorStore's threads, come after the one error that tells something.
    They are dropped, also after a failure, for they may come late.
    """
    before = sys.unraisablehook

    def hook(complaint: Any) -> None:
        unfinished = getattr(complaint.object, "__name__", "").startswith("_read_array")
        if not unfinished and str(complaint.exc_value) != "Event loop is closed":
            before(complaint)

    sys.unraisablehook = hook
    yield
    sys.unraisablehook = before


def _in_all_processes(value: bool) -> bool:
    if jax.process_count() == 1:
        return value
    return bool(np.all(multihost_utils.process_allgather(np.array(value))))


def _raise_unless_damaged(error: Exception, step_directory: pathlib.Path) -> None:
    """Raises where an older checkpoint would be no help: no memory, no permission."""
    if isinstance(error, (MemoryError, PermissionError)) or any(
        word in str(error) for word in ("PERMISSION_DENIED", "RESOURCE_EXHAUSTED")
    ):
        raise RunError(f"{step_directory}: {_first_line(error)}; the checkpoint is left as it is") from error


def _refuse_other_shapes(step_directory: pathlib.Path, target: Any) -> None:
    """Raises InputError where the checkpoint's readable metadata are those of another model or optimizer."""
    try:
        saved = ocp.PyTreeCheckpointer().metadata(step_directory / "state").item_metadata.tree
        shapes = _shapes(saved)
    except Exception:  # damaged; restoring will tell
        return
    if shapes and shapes != _shapes(target):
        raise InputError(
            f"{step_directory}: saved by a run with other parameters or another optimizer; choose another folder, "
            "or the settings that it was started with"
        )


def _shapes(tree: Any) -> list[tuple[int, ...]]:
    """Shapes of all arrays, in order of size; paths are spelled differently in files and in memory."""
    return sorted(tuple(leaf.shape) for leaf in jax.tree.leaves(tree) if hasattr(leaf, "shape"))


def newest_params(directory: pathlib.Path) -> tuple[int, dict[str, Any]]:
    """Step and parameters (NumPy arrays) of the newest complete checkpoint in ``directory``.

    Raises:
      InputError: where there is none, or it cannot be read.
    """
    directory = pathlib.Path(directory).absolute()
    steps = [int(entry.name) for entry in directory.glob("*") if entry.name.isdigit()]
    if not steps:
        raise InputError(f"{directory}: no finished checkpoint here")
    path = directory / str(max(steps)) / "state"
    checkpointer = ocp.PyTreeCheckpointer()
    try:
        item = {"params": checkpointer.metadata(path).item_metadata.tree["params"]}
        as_numpy = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), item)
        empty = jax.tree.map(lambda _: 0, item)
        args = ocp.args.PyTreeRestore(item=empty, partial_restore=True, restore_args=as_numpy)
        return max(steps), checkpointer.restore(path, args=args)["params"]
    except Exception as error:  # whatever a damaged file makes Orbax and TensorStore raise
        raise InputError(f"{path.parent}: cannot be read ({_first_line(error)})") from error
