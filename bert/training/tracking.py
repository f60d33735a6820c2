"""What a run tells: metrics.jsonl, TensorBoard events, a progress bar or plain lines, and its rate.

Only process 0 writes.
"""

import json
import math
import pathlib
import sys
import time
from typing import Any

import jax
from absl import logging
from tqdm import tqdm

from bert import files
from bert.errors import printable
from bert.training import run_directory

_TERMINAL = sys.__stderr__  # the bar steers it; `sys.stderr` may escape what does


class MetricsFile:
    """``metrics.jsonl``: one JSON object a line with ``step``, ``split`` and values; and the same to TensorBoard.

    Args:
      workdir: the run directory, made if missing.
      step: the step the run goes on from; later lines, from a run that was killed, are dropped.
    """

    def __init__(self, workdir: pathlib.Path, step: int):
        self._active = jax.process_index() == 0
        if not self._active:
            return
        from tensorboardX import SummaryWriter  # slow to import, and only process 0 needs it

        workdir.mkdir(parents=True, exist_ok=True)
        path = workdir / run_directory.METRICS
        kept = _lines_until(path, step) if path.exists() else []
        files.write(path, "".join(kept))
        self._file = path.open("a", encoding="utf-8")
        self._board = SummaryWriter(str(workdir / run_directory.BOARD), purge_step=step + 1)

    def write(self, step: int, split: str, values: dict[str, float | None]) -> None:
        """Appends one line; values that are undefined or not finite are null."""
        if not self._active:
            return
        values = {name: value if value is None or math.isfinite(value) else None for name, value in values.items()}
        self._file.write(json.dumps({"step": step, "split": split} | values, allow_nan=False) + "\n")
        self._file.flush()
        for name, value in values.items():
            if value is not None:
                self._board.add_scalar(f"{split}/{name}", value, step)

    def close(self) -> None:
        if self._active:
            self._file.close()
            self._board.close()


def _lines_until(path: pathlib.Path, step: int) -> list[str]:
    """Lines up to a step; a last line cut short by a kill is dropped."""
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        try:
            if json.loads(line)["step"] <= step and line.endswith("\n"):
                kept.append(line)
        except json.JSONDecodeError:
            continue
    return kept


class Progress:
    """A bar on a terminal, and one plain line a report elsewhere (no carriage returns in log files).

    Args:
      total: steps of the whole run.
      done: steps finished before this process started.
      flops_per_token: arithmetic of one token in a training step, in FLOP.

    ``peak``: FLOP/s of all devices, None where unknown or not yet known.
    """

    def __init__(self, total: int, done: int, flops_per_token: float):
        self._total, self._flops_per_token = total, flops_per_token
        self.peak: float | None = None
        self._on_terminal = sys.stderr.isatty()
        self._active = jax.process_index() == 0
        self._bar = tqdm(
            total=total, initial=done, unit="step", disable=not (self._active and self._on_terminal), file=_TERMINAL
        )
        self.restart(done)

    def restart(self, step: int) -> None:
        """Starts the clock anew, so that compiling, evaluating and saving do not count as training."""
        self._since, self._from_step, self._tokens = time.perf_counter(), step, 0.0

    def advance(self) -> None:
        self._bar.update()

    def add_tokens(self, tokens: float) -> None:
        self._tokens += tokens

    def rates(self, step: int) -> dict[str, Any]:
        """``tokens_per_second``, ``seconds_per_step`` and ``peak_share`` (0 to 1) since the clock was started.

        Starts it anew.
        """
        seconds, steps = max(time.perf_counter() - self._since, 1e-9), step - self._from_step
        rate = self._tokens / seconds
        share = rate * self._flops_per_token / self.peak if self.peak else None
        self.restart(step)
        if not steps:  # nothing was timed: the clock was started after this very step
            return {"tokens_per_second": None, "seconds_per_step": None, "peak_share": None}
        return {"tokens_per_second": rate, "seconds_per_step": seconds / steps, "peak_share": share}

    def told(self, step: int, rates: dict[str, Any]) -> dict[str, str]:
        """The rates in words: tokens/s, share of the devices' peak, time left."""
        if rates["seconds_per_step"] is None:
            return {}
        share = rates["peak_share"]
        left = round(rates["seconds_per_step"] * (self._total - step))
        hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
        clock = f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
        words = {"tokens/s": f"{rates['tokens_per_second']:,.0f}", "left": clock}
        return words if share is None else {"of peak": f"{share:.0%}"} | words

    def report(self, step: int, label: str, values: dict[str, Any]) -> None:
        """One line for people: the step, the label and the values."""
        if not self._active:
            return
        told = "  ".join(f"{name} {_short(value)}" for name, value in values.items() if value is not None)
        line = printable(f"step {step}/{self._total}  {label}  {told}")
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
