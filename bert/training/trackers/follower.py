"""The process beside a run: sends new lines of metrics.jsonl to a tracker until the run has ended.

    python -m bert.training.trackers.follower wandb bert.training.trackers.wandb_run RUN

It reads from standard input how the run ended ("finished", "stopped" or "failed"); where the input ends without a word,
the run was killed. What cannot be sent is tried again, in order. RUN/tracker.json has the id of the tracked run and the
last step of each split, so a resumed run goes on in the same one and sends no line twice.
"""

import importlib
import itertools
import json
import os
import pathlib
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, cast

from bert import files
from bert.errors import InputError, printable
from bert.training.trackers import RECORD, SECONDS_AT_END, SECONDS_TO_START

SECONDS_BETWEEN_LOOKS = 1.0
LONGEST_PAUSE = 60.0  # seconds between two attempts, while the run goes on


class Tracker(Protocol):
    """A tracked run. Any method may raise; it is called again then."""

    def log(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """Adds metrics; those that are undefined are not among them."""

    def close(self, outcome: str) -> None:
        """Ends the tracked run: "finished", "stopped" or "failed"."""


class Service(Protocol):
    """What a file of a tracker holds."""

    def start(self, record: "Record", workdir: pathlib.Path, settings: Mapping[str, Any]) -> Tracker:
        """The tracked run of ``record.id``; a new one where that is "", which gets its id.

        ``settings``: dotted name -> value of config.json.
        """


class Record:
    """The part of tracker.json on one tracker."""

    def __init__(self, path: pathlib.Path, service: str):
        self._path, self._service = path, service
        try:
            self._all = json.loads(path.read_text(encoding="utf-8"))
            entry = self._all.get(service, {})
            self.id: str = entry.get("id", "")
            self.sent: dict[str, int] = entry.get("sent", {})  # split -> step of the last line that was sent
        except FileNotFoundError:
            self._all, self.id, self.sent = {}, "", {}

    def save(self) -> None:
        self._all[self._service] = {"id": self.id, "sent": self.sent}
        files.write(self._path, files.json_text(self._all, indent=2))


class Log:
    """metrics.jsonl while it is written. A resumed run replaces the file by one without the steps that it repeats."""

    def __init__(self, path: pathlib.Path):
        self._path, self._file, self.read = path, -1, 0  # which file it is, and its lines that were read

    def new_rows(self) -> Iterator[dict[str, Any]]:
        """The lines behind those that were ``read``; an incomplete last line waits."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            if self._file != (number := os.fstat(file.fileno()).st_ino):
                self._file, self.read = number, 0
            for line in itertools.islice(file, self.read, None):
                if not line.endswith(b"\n"):
                    return
                yield json.loads(line)


def follow(
    service: str,
    module: str,
    workdir: pathlib.Path,
    ended: threading.Event,
    outcome: list[str],
    tried: threading.Event | None = None,
) -> None:
    """Sends lines until ``ended`` is set and none is left, then ends the tracked run with the ``outcome``.

    Sets ``tried`` after the first contact with the tracker, whether it was there or not.
    """
    record: Record | None = None
    tracker: Tracker | None = None
    log, pause, closed = Log(workdir / "metrics.jsonl"), SECONDS_BETWEEN_LOOKS, False
    while not closed:
        last = ended.is_set()
        try:
            record = record or Record(workdir / RECORD, service)
            tracker = tracker or _tracked(module, record, workdir, tried)
            for row in log.new_rows():
                _send(tracker, record, row)
                log.read += 1
            if last:
                tracker.close(outcome[0] if outcome else "stopped")
                closed = True
            pause = SECONDS_BETWEEN_LOOKS
        except Exception as error:
            if pause == SECONDS_BETWEEN_LOOKS:  # said once, until something was sent again
                text = printable(" ".join(str(error).split()))[:300]
                way_out = "the run goes on, and what was not sent is tried again"
                print(f"warning: {service}: {text or type(error).__name__}; {way_out}", flush=True)
            pause = min(2 * pause, LONGEST_PAUSE)
            if last:
                time.sleep(min(pause, SECONDS_AT_END / 10))
        ended.wait(pause)


def _tracked(module: str, record: Record, workdir: pathlib.Path, tried: threading.Event | None) -> Tracker:
    try:
        return cast(Service, importlib.import_module(module)).start(record, workdir, _settings(workdir))
    finally:
        if tried:
            tried.set()


def _send(tracker: Tracker, record: Record, row: dict[str, Any]) -> None:
    step, split = row["step"], row["split"]
    if step <= record.sent.get(split, -1):
        return
    tracker.log(
        step, split, {name: row[name] for name in row if name not in ("step", "split") and row[name] is not None}
    )
    record.sent[split] = step
    record.save()


def _settings(workdir: pathlib.Path) -> dict[str, Any]:
    values = json.loads((workdir / "config.json").read_text(encoding="utf-8"))
    flat: dict[str, Any] = {}

    def add(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                add(f"{name}.{key}", inner)
        else:
            flat[name] = value

    for name, value in values.items():
        add(name, value)
    return flat


def main(service: str, module: str, workdir: pathlib.Path) -> None:
    """Follows the run until the end of standard input, and half a minute longer at most; the first contact may take
    two minutes, of a short run too."""
    for number in (signal.SIGINT, signal.SIGTERM):  # for the run, which tells when it ends
        signal.signal(number, signal.SIG_IGN)
    ended, tried, outcome, started = threading.Event(), threading.Event(), list[str](), time.monotonic()

    def wait_for_end() -> None:
        outcome.extend(filter(None, [sys.stdin.read()]))
        ended.set()
        tried.wait(max(0, SECONDS_TO_START - (time.monotonic() - started)))
        time.sleep(SECONDS_AT_END)
        os._exit(1)  # also where the package hangs

    threading.Thread(target=wait_for_end, daemon=True).start()
    while True:
        try:  # a run that was killed may have left such a process, which still sends
            with files.lock(workdir / "tracker.lock", "busy"):
                follow(service, module, workdir, ended, outcome, tried)
                break
        except InputError:
            time.sleep(SECONDS_BETWEEN_LOOKS)
    sys.stdout.flush()
    os._exit(0)  # the package's own ends of the process could wait for the network


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]))
