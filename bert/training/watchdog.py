"""How far this process has come, and a thread that acts when nothing more gets finished.

Processes that train together wait for each other in every step: for ever, if one hangs or is elsewhere in the program.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator


class _Progress:
    count = 0  # batches and phases so far
    phase = "nothing yet"  # the last one


def note(phase: str = "") -> None:
    """Something was finished: a phase, such as "step 12, an evaluation", or a part of one."""
    _Progress.count += 1
    _Progress.phase = phase or _Progress.phase


def last_phase() -> str:
    """The phase that was finished last."""
    return _Progress.phase


@contextlib.contextmanager
def watching(seconds: int, act: Callable[[], None]) -> Iterator[None]:
    """Calls ``act`` in a thread where nothing was finished for so long.

    Time in which the process itself is stopped, or the machine sleeps, does not count.
    """
    over = threading.Event()

    def watch() -> None:
        seen, waited = -1, 0
        while waited < seconds:
            if over.wait(1):
                return
            waited = waited + 1 if _Progress.count == seen else 0
            seen = _Progress.count
        act()

    threading.Thread(target=watch, name="watchdog", daemon=True).start()
    try:
        yield
    finally:
        over.set()
