"""Run logging on process 0: metrics.jsonl, TensorBoard events, a progress bar or plain lines, and rates."""

import json
import math
import os
import pathlib
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax
from absl import logging
from tqdm import tqdm

from bert import files
from bert.errors import InputError, cannot_write, printable
from bert.extras import check_installed
from bert.progress import clock
from bert.training import run_directory

_SECONDS_TO_FLUSH = 120  # as in tensorboardX; a flush waits for the disk
_TERMINAL = sys.__stderr__  # the bar uses control characters, which `sys.stderr` may escape


class MetricsFile:
    """``metrics.jsonl``, a JSON object a line with ``step``, ``split`` and values; the same goes to TensorBoard.

    Lines after ``step``, where the run resumes, are dropped. Raises InputError where one of the two cannot be written,
    RunError when the disk is full, here or at any line.
    """

    def __init__(self, workdir: pathlib.Path, step: int):
        self._active = jax.process_index() == 0
        if not self._active:
            return
        self._path = path = workdir / run_directory.METRICS
        try:
            workdir.mkdir(parents=True, exist_ok=True)
            lines = _lines_until(path, step) if os.path.lexists(path) else []
            files.write(path, b"".join(lines).decode())
            self._file = path.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise cannot_write(path, error) from None
        board = workdir / run_directory.BOARD
        try:
            self._board = _Board(board, step + 1)
        except OSError as error:
            self._file.close()
            raise cannot_write(board, error) from None

    def write(self, step: int, split: str, values: dict[str, float | None]) -> None:
        """Appends one line; values that are undefined or not finite are null."""
        if not self._active:
            return
        values = {name: value if value is None or math.isfinite(value) else None for name, value in values.items()}
        try:
            self._file.write(json.dumps({"step": step, "split": split} | values, allow_nan=False) + "\n")
            self._file.flush()
            self._board.write(step, {f"{split}/{name}": value for name, value in values.items() if value is not None})
        except OSError as error:
            raise cannot_write(self._path, error) from None

    def close(self) -> None:
        """Raises RunError where what was written last does not fit on the disk."""
        if not self._active:
            return
        failed = None
        for file in (self._file, self._board):
            try:
                file.close()
            except OSError as error:
                failed = error
        if failed:
            raise cannot_write(self._path, failed)


class _Board:
    """TensorBoard's events, written in the calling thread, which sees the errors.

    SummaryWriter's thread ends on a full disk, with tracebacks; then its queue fills and blocks the run.
    """

    def __init__(self, directory: pathlib.Path, first_step: int):
        check_installed("tensorboardX", "tensorboardX", "train", "training")
        from tensorboardX import record_writer, summary  # slow to import, and only process 0 needs it
        from tensorboardX.proto import event_pb2

        directory.mkdir(parents=True, exist_ok=True)
        self._event, self._scalar = event_pb2.Event, summary.scalar
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}"
        self._file, self._flushed = record_writer.RecordWriter(str(directory / name)), time.monotonic()
        self._add(file_version="brain.Event:2")
        # TensorBoard drops earlier events of this step and later ones.
        self._add(step=first_step, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))

    def write(self, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            self._add(step=step, summary=self._scalar(name, value))
        if time.monotonic() - self._flushed > _SECONDS_TO_FLUSH:
            self._file.flush()
            self._flushed = time.monotonic()

    def _add(self, **fields: Any) -> None:
        self._file.write(self._event(wall_time=time.time(), **fields).SerializeToString())

    def close(self) -> None:
        self._file.close()


def read_log(path: pathlib.Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Each line of a ``metrics.jsonl`` and its object, None where it cannot be read; an incomplete last line is left
    out. Raises InputError where it is no plain file."""
    if not path.is_file():
        raise InputError(f"{path}: is no plain file; move it away")
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            row = json.loads(line.decode("utf-8-sig"))  # of bytes it would let unpaired surrogates pass
        except (ValueError, RecursionError):
            row = None
        is_ours = isinstance(row, dict) and type(row.get("step")) is int and isinstance(row.get("split"), str)
        yield line, row if is_ours else None


def _lines_until(path: pathlib.Path, step: int) -> list[bytes]:
    """Lines up to a step. Where one cannot be read, a warning says so, and the file stays as metrics.jsonl.damaged."""
    lines, damaged = [], []
    for number, (line, row) in enumerate(read_log(path), 1):
        if row is None:
            damaged.append(number)
        elif row["step"] <= step:
            lines.append(line + b"\n")
    if damaged:
        aside = files.free_name(path.with_name(f"{path.name}.damaged"))
        path.rename(aside)
        logging.warning("%s:%d: cannot be read and is left out; the file as it was is %s", path, damaged[0], aside)
    return lines


class Progress:
    """A bar on a terminal, plain lines elsewhere; of ``total`` steps, ``done`` before this process started."""

    def __init__(self, total: int, done: int, flops_per_token: float):
        self._total, self._flops_per_token = total, flops_per_token  # of a training step
        self.peak: float | None = None  # FLOP/s of all devices, where known
        self._on_terminal, self._active = sys.stderr.isatty(), jax.process_index() == 0
        off = not (self._active and self._on_terminal)
        self._bar = tqdm(total=total, initial=done, unit="step", disable=off, file=_TERMINAL)
        self.restart(done)

    def restart(self, step: int) -> None:
        """Restarts the clock, so that compiling, evaluating and saving do not count as training."""
        self._since, self._from_step, self._tokens = time.perf_counter(), step, 0.0

    def advance(self, tokens: float) -> None:
        """Counts one more step."""
        self._bar.update()
        self._tokens += tokens

    def rates(self, step: int) -> dict[str, Any]:
        """``tokens_per_second``, ``seconds_per_step`` and ``peak_share`` (0 to 1) since `restart`, which it calls."""
        seconds, steps = max(time.perf_counter() - self._since, 1e-9), step - self._from_step
        rate = self._tokens / seconds
        share = rate * self._flops_per_token / self.peak if self.peak else None
        self.restart(step)
        if not steps:  # the clock was restarted after this step
            return {"tokens_per_second": None, "seconds_per_step": None, "peak_share": None}
        return {"tokens_per_second": rate, "seconds_per_step": seconds / steps, "peak_share": share}

    def format_rates(self, step: int, rates: dict[str, Any]) -> dict[str, str]:
        """Tokens per second, share of the devices' peak and time left, as the progress shows them."""
        if rates["seconds_per_step"] is None:
            return {}
        share = rates["peak_share"]
        left = clock(rates["seconds_per_step"] * (self._total - step))
        words = {"tokens/s": f"{rates['tokens_per_second']:,.0f}", "left": left}
        return words if share is None else {"of peak": f"{share:.0%}"} | words

    def report(self, step: int, label: str, values: dict[str, Any]) -> None:
        """Prints the step, the label and the values in one line."""
        if not self._active:
            return
        shown = "  ".join(f"{name} {_short(value)}" for name, value in values.items() if value is not None)
        line = printable(f"step {step}/{self._total}  {label}  {shown}")
        if self._on_terminal:
            tqdm.write(line, file=_TERMINAL)
        else:
            logging.info("%s", line)

    def close(self) -> None:
        self._bar.close()


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 0.01 else f"{value:,.4f}" if abs(value) < 100 else f"{value:,.0f}"
    return str(value)
