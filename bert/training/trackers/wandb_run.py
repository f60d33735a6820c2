"""Weights & Biases. Project, mode and address are those of its environment variables (WANDB_PROJECT, WANDB_MODE, ...).

Sent are the metrics, the settings, the name of the run directory, and what wandb measures itself (use of the machine,
versions of packages); no code, no output of the run, no model.
"""

import pathlib
import secrets
from collections.abc import Mapping
from typing import Any

import wandb

from bert.training.trackers.follower import Record

_LONGEST_NAME = 128  # characters


def start(record: Record, workdir: pathlib.Path, settings: Mapping[str, Any]) -> "WandbRun":
    if not record.id:
        record.id = secrets.token_hex(4)
        record.save()
    run = wandb.init(
        id=record.id,
        name=str(workdir)[-_LONGEST_NAME:],
        resume="allow",
        dir=str(workdir),
        settings=wandb.Settings(console="off", disable_git=True, save_code=False, disable_code=True, silent=True),
    )
    run.config.update(dict(settings), allow_val_change=True)
    # wandb's own step counts calls, so that those for training and evaluation at the same step are both kept.
    run.define_metric("*", step_metric="step")
    return WandbRun(run)


class WandbRun:
    """See `follower.Tracker`."""

    def __init__(self, run: Any):
        self._run = run

    def log(self, step: int, split: str, values: Mapping[str, float]) -> None:
        self._run.log({"step": step, **{f"{split}/{name}": value for name, value in values.items()}})

    def close(self, outcome: str) -> None:
        self._run.finish(exit_code=int(outcome != "finished"))
