"""Runs tasks in several processes; returns results in order, with a bounded number of tasks in flight."""

import collections
import concurrent.futures
import concurrent.futures.process
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bert.errors import RunError


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ordered_map(
    function: Callable[[Any], Any], tasks: Iterable[Any],
    *, workers: int, setup: Callable[..., None], setup_arguments: tuple[Any, ...],
) -> Iterator[Any]:  # fmt: skip
    """Results of `function(task)` in the order of the tasks, whatever the number of workers (1: this process).

    At most three tasks a worker are under way, so memory does not grow with the number of tasks. Processes are
    spawned, not forked: threads of this process (JAX, tokenizers) would not survive a fork. ``setup`` is called once in
    each. Raises RunError where one was killed from outside, most often for want of memory.
    """
    if workers <= 1:
        setup(*setup_arguments)
        yield from map(function, tasks)
        return
    workers = min(workers, 61) if os.name == "nt" else workers  # more are refused there
    waiting: collections.deque[concurrent.futures.Future[Any]] = collections.deque()
    spawn = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(workers, spawn, _start, (setup, setup_arguments))
    try:
        for task in tasks:
            waiting.append(pool.submit(function, task))
            if len(waiting) >= 3 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except concurrent.futures.process.BrokenProcessPool:
        why = f"one of {workers} worker processes was killed, most often for want of memory"
        raise RunError(f"{why}; set workers to 1, or fewer than now") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _start(setup: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the first process, which stops the others
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one core a worker
    threading.Thread(target=_end_with_parent, daemon=True).start()
    setup(*arguments)


def _end_with_parent() -> None:
    """A first process that is killed outright cannot stop its workers, which would wait for tasks for ever."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
