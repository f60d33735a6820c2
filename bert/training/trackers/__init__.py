"""Experiment trackers: a process beside the run sends the lines of its metrics.jsonl to Weights & Biases or MLflow.

Neither the network nor the package of a tracker can end the run or delay it for long: the run starts the process
(follower.py), and when it ends, it gives the process half a minute to send what is left; and two minutes from the start
of the run for its first contact, because MLflow may make a new database there. A tracker is a file here with a function
``start`` (see `follower.Service`), and a line in `SERVICES`.
"""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

from absl import logging

import bert
from bert import extras
from bert.errors import check_choice

# Name of the setting, of the module to import and of the extra -> package to install, and our file.
SERVICES = {
    "wandb": ("wandb", "bert.training.trackers.wandb_run"),
    "mlflow": ("mlflow-skinny", "bert.training.trackers.mlflow_run"),
}
RECORD = "tracker.json"  # in the run directory: the id of the tracked run, and up to which step it has the metrics
LOG = "tracker.log"  # what the tracker's package printed
SECONDS_TO_START, SECONDS_AT_END = 120, 30
SECONDS_IN_SILENCE = 3  # at the end, before a line says why the run waits


def check(service: str) -> None:
    """Raises InputError for an unknown tracker, or one whose package is not installed; "" is none."""
    check_choice("config.tracker", service, ("", *SERVICES))
    if service:
        extras.check_installed(service, SERVICES[service][0], service, f"config.tracker={service}")


@contextlib.contextmanager
def following(service: str, workdir: pathlib.Path) -> Iterator[None]:
    """Sends the metrics of the run that is trained inside to a tracker; to none where ``service`` is ""."""
    if not service:
        yield
        return
    try:
        process, started = _start(service, workdir), time.monotonic()
    except OSError as error:
        logging.warning("%s: cannot be started (%s); the run goes on without it", service, error.strerror)
        yield
        return
    outcome = "failed"
    try:
        yield
        outcome = "finished"
    except (SystemExit, KeyboardInterrupt):
        outcome = "stopped"
        raise
    finally:
        seconds = SECONDS_AT_END + max(0, SECONDS_TO_START - (time.monotonic() - started))
        _end(process, service, outcome, workdir / LOG, seconds)


def _start(service: str, workdir: pathlib.Path) -> subprocess.Popen[str]:
    library = str(pathlib.Path(bert.__file__).parents[1])
    path = os.pathsep.join(filter(None, (library, os.environ.get("PYTHONPATH"))))
    with (workdir / LOG).open("a", encoding="utf-8") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "bert.training.trackers.follower", service, SERVICES[service][1], str(workdir)],
            env=os.environ | {"PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=2,  # its messages; standard output may be the output of a command
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C is for the run
        )


def _end(process: subprocess.Popen[str], service: str, outcome: str, log: pathlib.Path, seconds: float) -> None:
    """Tells the process how the run ended, and waits for it, but not for long."""
    try:
        try:
            process.communicate(outcome, timeout=min(SECONDS_IN_SILENCE, seconds))
        except subprocess.TimeoutExpired:
            logging.info("%s: sends what is left, for %.0f seconds at most", service, seconds)
            process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        if os.name == "nt":
            process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with the processes that the package has started
        process.communicate()
    except OSError:  # it has ended before
        process.wait()
    if process.returncode:
        again = "the same command sends them when it is run again"
        logging.warning("%s: has not received all metrics, see %s; %s", service, log, again)
