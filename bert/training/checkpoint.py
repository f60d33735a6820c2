"""Checkpoints of the training state: saved in the background, restored on any mesh. The only importer of Orbax.

A checkpoint is complete or absent: Orbax writes under a temporary name and renames. A complete one whose files were
damaged later is found when it is read; it is set aside, and the one before is used.
"""

import pathlib
import shutil
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
        if keep < 1:
            raise InputError(f"keep_checkpoints is {keep}; at least 1 must stay to go on from")
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
        steps = sorted(self._manager.all_steps(), reverse=True)
        for step in steps:
            try:
                restored = self._manager.restore(step, args=args)
            except Exception as error:  # whatever a damaged file makes Orbax and TensorStore raise
                if _other_shape(self.directory / str(step), target):
                    raise InputError(
                        f"{self.directory / str(step)}: saved by a run with other parameters; "
                        "give another --workdir, or the configuration that it was started with"
                    ) from error
                logging.warning("checkpoint %d cannot be read and is set aside: %s", step, _first_line(error))
                self._set_aside(step)
                continue
            return step, restored["state"], restored["meta"]
        if steps:
            raise RunError(
                f"{self.directory}: none of the checkpoints {steps} can be read; start anew in another --workdir"
            )
        return None

    def _set_aside(self, step: int) -> None:
        aside = self.directory.with_name(self.directory.name + ".damaged")
        if jax.process_index() == 0:
            aside.mkdir(exist_ok=True)
            shutil.rmtree(aside / str(step), ignore_errors=True)
            (self.directory / str(step)).rename(aside / str(step))
        if jax.process_count() > 1:
            multihost_utils.sync_global_devices(f"checkpoint {step} set aside")
        self._manager.reload()

    def preempted(self, step: int) -> bool:
        """Several processes: has the scheduler asked any of them to stop? True at the same step in all."""
        return jax.process_count() > 1 and self._manager.reached_preemption(step)

    def close(self) -> None:
        """Waits until everything is on disk."""
        self._manager.wait_until_finished()
        self._manager.close()


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _saved_shapes(step_directory: pathlib.Path) -> Any:
    return ocp.PyTreeCheckpointer().metadata(step_directory / "state").item_metadata


def _shapes(tree: Any) -> dict[str, tuple[int, ...]]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): tuple(leaf.shape) for path, leaf in leaves}


def _other_shape(step_directory: pathlib.Path, target: Any) -> bool:
    """Was this checkpoint saved by a model of other sizes (readable names and shapes, but not the target's)?"""
    try:
        saved = _shapes(_saved_shapes(step_directory).tree["params"])
    except Exception:
        return False
    return saved != _shapes(target.params)


def newest_params(directory: pathlib.Path) -> tuple[int, dict[str, Any]]:
    """Step and parameters (NumPy arrays) of the newest complete checkpoint in ``directory``.

    Raises:
      InputError: where there is none.
    """
    directory = pathlib.Path(directory).absolute()
    steps = [int(entry.name) for entry in directory.glob("*") if entry.name.isdigit()]
    if not steps:
        raise InputError(f"{directory}: no finished checkpoint here")
    path = directory / str(max(steps)) / "state"
    checkpointer = ocp.PyTreeCheckpointer()
    item = {"params": checkpointer.metadata(path).item_metadata.tree["params"]}
    as_numpy = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), item)
    args = ocp.args.PyTreeRestore(item=jax.tree.map(lambda _: 0, item), partial_restore=True, restore_args=as_numpy)
    return max(steps), checkpointer.restore(path, args=args)["params"]
