"""Progress of long work: a bar on a terminal, a plain line every ten seconds elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

from absl import logging
from tqdm import tqdm

SECONDS_BETWEEN_LINES = 10.0


@contextlib.contextmanager
def progress(total: int, unit: str, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of units that were done since the last call; they are ``total`` in the end."""
    on_terminal = sys.stderr.isatty()
    started = line_at = time.monotonic()
    done = 0

    def advance(count: int) -> None:
        nonlocal done, line_at
        done += count
        bar.update(count)
        now = time.monotonic()
        if shown and not on_terminal and now - line_at >= SECONDS_BETWEEN_LINES:
            line_at = now
            rate = done / (now - started)
            logging.info("%s of %s %ss, %.0f/s", f"{done:,}", f"{total:,}", unit, rate)

    # The bar uses control characters, which `sys.stderr` may escape.
    with tqdm(total=total, unit=unit, disable=not (shown and on_terminal), file=sys.__stderr__) as bar:
        yield advance
