"""Runs a command of launch/ in a process of its own, as a user would, and reads what it logged."""

import os
import pathlib
import subprocess
import sys
from typing import Any

from bench import environments
from bert.errors import InputError, RunError
from bert.training import run_directory, tracking


def run(name: str, *words: str) -> None:
    """``bert NAME WORDS``, without its output; programs that an earlier run compiled are used again.

    Raises InputError or RunError, with the command's own line, where it ends with 2 or another code.
    """
    cache = {"JAX_COMPILATION_CACHE_DIR": str((environments.FOLDER / "cache").absolute())}
    command = [sys.executable, "-m", f"launch.{name}", *words]
    done = subprocess.run(
        command, env=cache | os.environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        lines = done.stderr.splitlines() or [f"launch.{name} ended with {done.returncode}"]
        raise (InputError if done.returncode == 2 else RunError)(lines[-1].removeprefix("error: "))


def log_of(workdir: str | pathlib.Path, split: str) -> list[dict[str, Any]]:
    """The lines of a run's log of a split."""
    rows = (row for _, row in tracking.read_log(pathlib.Path(workdir) / run_directory.METRICS) if row)
    return [row for row in rows if row["split"] == split]
