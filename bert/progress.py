"""Progress of long work on standard error: a bar on a terminal, a plain line every ten seconds elsewhere."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from absl import logging
from tqdm import tqdm

SECONDS_BETWEEN_LINES = 10.0


def clock(seconds: float) -> str:
    """A duration as hours, minutes and seconds: "0:09", "2:00:05"."""
    left = round(seconds)
    hours, minutes, seconds = left // 3600, left // 60 % 60, left % 60
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


@contextlib.contextmanager
def progress(total: int | None, unit: str, *, label: str = "", shown: bool = True) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of units that were done since the last call; they are ``total`` in the end.

    Args:
      total: None where it is not known; then the time left is not shown.
      unit: what is counted, in the singular; "B" for bytes, which are shown in megabytes.
      label: what is done, in front of each line.
    """
    meter = _Meter(total, unit, label)
    on_terminal = sys.stderr.isatty()
    # The bar uses control characters, which `sys.stderr` may escape.
    with (
        tqdm(
            total=total, unit=unit, unit_scale=unit == "B", desc=label or None, leave=None,
            disable=not (shown and on_terminal), file=sys.__stderr__,
        ) as bar,
        _each_interval(meter.log, shown and not on_terminal),
    ):  # fmt: skip

        def advance(count: int) -> None:
            meter.advance(count)
            bar.update(count)

        yield advance


@contextlib.contextmanager
def step_progress() -> Iterator[Callable[[str, int, int | None], None]]:
    """A function to call with the name of a step, the bytes that it has done so far, and all of them where known."""
    current, before = "", 0
    advance: Callable[[int], None]
    with contextlib.ExitStack() as stack:

        def show(step: str, done: int, total: int | None) -> None:
            nonlocal current, before, advance
            if step != current:
                stack.close()
                current, before, advance = step, 0, stack.enter_context(progress(total, "B", label=step))
            advance(done - before)
            before = done

        yield show


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Work whose parts cannot be counted, such as "reading a.csv": a line every ten seconds says that it goes on."""
    started = time.monotonic()
    with _each_interval(lambda: logging.info("%s: %s so far", what, clock(time.monotonic() - started)), True):
        yield


class _Meter:
    """Counts units. The first ones wait for the compiler, so the rate is that of those behind them."""

    def __init__(self, total: int | None, unit: str, label: str):
        self._total, self._unit, self._label = total, unit, label
        self._started = time.monotonic()
        self._first: tuple[int, float] | None = None  # the units of the first call, and when it came
        self._done = 0

    def advance(self, count: int) -> None:
        self._done += count
        if self._first is None:
            self._first = count, time.monotonic()

    def log(self) -> None:
        now = time.monotonic()
        text = self._counted(self._done, *(() if self._total is None else (self._total,)))
        before, since = self._first or (0, now)
        if self._done > before and now > since:
            rate = (self._done - before) / (now - since)
            text += (
                f", {rate / 1e6:,.2f} MB/s" if self._unit == "B" else f", {rate:{',.0f' if rate >= 10 else '.2g'}}/s"
            )
            if self._total is not None:
                text += f", left {clock(max(0, self._total - self._done) / rate)}"
        else:
            text += f", {clock(now - self._started)} so far"
        logging.info("%s%s", f"{self._label}: " if self._label else "", text)

    def _counted(self, *numbers: int) -> str:
        """ "20.0 of 120.0 MB", or "2,000 of 3,000 texts"."""
        if self._unit == "B":
            return " of ".join(f"{number / 1e6:,.1f}" for number in numbers) + " MB"
        ending = "es" if self._unit.endswith("ch") else "s"
        return " of ".join(f"{number:,}" for number in numbers) + f" {self._unit}{ending}"


@contextlib.contextmanager
def _each_interval(say: Callable[[], None], active: bool) -> Iterator[None]:
    """Calls a function every ten seconds, from a thread: also while the compiler or a reader has the process."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(SECONDS_BETWEEN_LINES):
            say()

    thread = threading.Thread(target=run, name="progress", daemon=True)
    if active:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if active:
            thread.join()
