"""Measures the work of the host between two steps of a real pretraining run on a CPU, and how long the device is idle.

python -m bench.host_gap --config=configs/pretrain.py:mini --config.data=prepared/ --workdir=DIR
    --config.batch_size=32 --config.total_steps=60 --config.optimizer.warmup_steps=6 --config.log_every=5

The flags are those of bert pretrain. Evaluations and saves are not part of a step, so set them to happen only at the
end. JAX's profiler traces the run, and a markdown table goes to standard output.
"""

import itertools
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest import mock

import jax

from bert.errors import InputError
from bert.training import train
from launch import flags, pretrain

DISPATCH, READ, COMPUTING = "dispatch of a step", "read of a step", "computing"
# Threads in which XLA runs programs on a CPU. All their time counts, even when they wait for each other within a step.
THREADS = ("tf_XLAPjRtCpuClient", "tf_XLAEigen")
FIRST_STEPS = 5  # not counted: they compile programs and measure the matrix peak


class Event(NamedTuple):
    """In seconds from the start of the trace."""

    start: float
    end: float
    name: str


class Gaps(NamedTuple):
    """Medians over the steps in seconds, and the share of the time in which no step computes.

    step: from one dispatch to the next. dispatch: the call that starts a step. between: from the return of that call to
    the next one, without the wait for the metrics of the step before. host: CPU time of the main thread in between,
    reading metrics included; a smaller value than ``between`` means that it waited for a core or for Python's lock.
    """

    steps: int
    step: float
    dispatch: float
    between: float
    host: float
    idle: float


def run(argv: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        marks: list[float] = []
        # The loop has no hook for this: wrapping its two compiled functions keeps the measured code as it is.
        with mock.patch.object(train, "make_train_step", traced(train.make_train_step, folder, marks)):
            pretrain.run(argv)
        jax.profiler.stop_trace()
        measured = gaps(events_of(pathlib.Path(folder)), marks)
    print("\n| steps | a step, ms | its dispatch, ms | between dispatches, ms | host's work there, ms | device idle |")
    print("|---|---|---|---|---|---|")
    times = " | ".join(f"{1e3 * seconds:.2f}" for seconds in measured[1:5])
    print(f"| {measured.steps} | {times} | {measured.idle:.2%} |")


def traced(make: Callable[..., Any], folder: str, marks: list[float]) -> Callable[..., Any]:
    """A ``make_train_step`` that starts a trace and annotates the two functions that it returns.

    The trace cannot start earlier: the profiler initialises JAX, and bert pretrain must choose the allocator first.

    Args:
      marks: gets the CPU seconds of the main thread at the start and at the end of each dispatch.
    """

    def make_traced(*args: Any) -> tuple[Any, Any]:
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # tracing every Python call would slow down the run
        jax.profiler.start_trace(folder, profiler_options=options)
        step, read = make(*args)

        def marked(*inputs: Any) -> Any:
            marks.append(time.thread_time())
            with jax.profiler.TraceAnnotation(DISPATCH):
                outputs = step(*inputs)
            marks.append(time.thread_time())
            return outputs

        return marked, jax.profiler.annotate_function(read, name=READ)

    return make_traced


def events_of(folder: pathlib.Path) -> list[Event]:
    """Dispatches, reads and computations in the trace in ``folder``."""
    (path,) = folder.rglob("*.xplane.pb")
    events = []
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        for line in plane.lines:
            computes = line.name.startswith(THREADS)
            for event in line.events:
                if computes or event.name in (DISPATCH, READ):
                    name = COMPUTING if computes else event.name
                    events.append(Event(event.start_ns / 1e9, event.end_ns / 1e9, name))
    return events


def gaps(events: Sequence[Event], marks: Sequence[float]) -> Gaps:
    """Gaps between the steps after the first ones; ``marks``: see `traced`."""
    events = sorted(events)
    dispatches = [event for event in events if event.name == DISPATCH][FIRST_STEPS:]
    steps = list(itertools.pairwise(dispatches))
    if not steps or not any(event.name == COMPUTING for event in events):
        raise InputError(
            f"the trace has {len(steps)} steps after the first {FIRST_STEPS}, or no computation on a CPU; "
            f"give at least {FIRST_STEPS + 2} steps, a new workdir, and a CPU"
        )
    reads = [event for event in events if event.name == READ]
    between = []
    for step, following in steps:
        waited = sum(read.end - read.start for read in reads if step.end <= read.start < following.start)
        between.append(following.start - step.end - waited)
    host = [start - end for end, start in zip(marks[1::2], marks[2::2], strict=False)][FIRST_STEPS:]
    start, stop = dispatches[0].start, dispatches[-1].start
    busy, until = 0.0, start
    for event in events:
        if event.name == COMPUTING and until < event.end:
            busy += max(0.0, min(event.end, stop) - max(event.start, until))
            until = event.end
    return Gaps(
        steps=len(steps),
        step=statistics.median(following.start - step.start for step, following in steps),
        dispatch=statistics.median(step.end - step.start for step, _ in steps),
        between=statistics.median(between),
        host=statistics.median(host),
        idle=1 - busy / (stop - start),
    )


if __name__ == "__main__":
    flags.main(run)
