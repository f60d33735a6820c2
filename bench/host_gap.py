"""What the host does between two steps of a real pretraining run on a CPU, and how long no step computes.

python -m bench.host_gap --config=configs/pretrain.py:mini --config.data=prepared/ --workdir=DIR
    --config.batch_size=32 --config.total_steps=60 --config.optimizer.warmup_steps=6 --config.log_every=5

The flags are those of launch.pretrain; evaluations and saves are not part of a step, so there should be none before the
end. The run is traced by JAX's profiler, and a markdown table goes to standard output.
"""

import itertools
import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax

from bert.errors import InputError
from bert.training import train
from launch import flags, pretrain

DISPATCH, READ, COMPUTING = "dispatch of a step", "read of a step", "computing"
# Threads in which XLA runs programs on a CPU. Whatever they do counts, waiting for each other within a step too.
THREADS = ("tf_XLAPjRtCpuClient", "tf_XLAEigen")
FIRST_STEPS = 5  # are not counted: they compile, and measure the matrix peak


class Event(NamedTuple):
    """In seconds from the start of the trace."""

    start: float
    end: float
    name: str


class Gaps(NamedTuple):
    """Medians over the steps, in seconds, and the share of the time in which no step computed.

    step: from one dispatch to the next. dispatch: the call that starts a step. between: from its return to the next
    one, without reading the values of the step before, which waits for it. host: what the main thread computed in
    between, that reading included; where it is less, a core or Python's lock was waited for.
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
        train.make_train_step = traced(train.make_train_step, folder, marks)
        pretrain.run(argv)
        jax.profiler.stop_trace()
        found = gaps(events_of(pathlib.Path(folder)), marks)
    print("\n| steps | a step, ms | its dispatch, ms | between dispatches, ms | host's work there, ms | device idle |")
    print("|---|---|---|---|---|---|")
    times = " | ".join(f"{1e3 * seconds:.2f}" for seconds in found[1:5])
    print(f"| {found.steps} | {times} | {found.idle:.2%} |")


def traced(make: Callable, folder: str, marks: list[float]) -> Callable:
    """``make_train_step`` that starts a trace, in which its two functions are seen.

    Not earlier: the profiler starts JAX, and launch.pretrain decides before that how memory is kept.

    Args:
      marks: to which the main thread's seconds of computing are added at the start and at the end of each dispatch.
    """

    def made(*given):
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # it would trace every call, and so slow down what is measured
        jax.profiler.start_trace(folder, profiler_options=options)
        step, read = make(*given)

        def marked(*inputs):
            marks.append(time.thread_time())
            with jax.profiler.TraceAnnotation(DISPATCH):
                outputs = step(*inputs)
            marks.append(time.thread_time())
            return outputs

        return marked, jax.profiler.annotate_function(read, name=READ)

    return made


def events_of(folder: pathlib.Path) -> list[Event]:
    """The dispatches, reads and computations in the trace that was written there."""
    (path,) = folder.rglob("*.xplane.pb")
    found = []
    for plane in jax.profiler.ProfileData.from_file(str(path)).planes:
        for line in plane.lines:
            computes = line.name.startswith(THREADS)
            for event in line.events:
                if computes or event.name in (DISPATCH, READ):
                    name = COMPUTING if computes else event.name
                    found.append(Event(event.start_ns / 1e9, event.end_ns / 1e9, name))
    return found


def gaps(events: Sequence[Event], marks: Sequence[float]) -> Gaps:
    """Of the steps behind the first ones, from the first dispatch to the last; ``marks``: see `traced`."""
    events = sorted(events)
    dispatches = [event for event in events if event.name == DISPATCH][FIRST_STEPS:]
    steps = list(itertools.pairwise(dispatches))
    if not steps or not any(event.name == COMPUTING for event in events):
        raise InputError(
            f"the trace has {len(steps)} steps behind the first {FIRST_STEPS}, or nothing that a CPU computes; "
            f"give at least {FIRST_STEPS + 2} steps, a new workdir, and a CPU"
        )
    reads = [event for event in events if event.name == READ]
    between = []
    for one, following in steps:
        waited = sum(read.end - read.start for read in reads if one.end <= read.start < following.start)
        between.append(following.start - one.end - waited)
    host = [start - end for end, start in zip(marks[1::2], marks[2::2], strict=False)][FIRST_STEPS:]
    start, stop = dispatches[0].start, dispatches[-1].start
    busy, until = 0.0, start
    for event in events:
        if event.name == COMPUTING and until < event.end:
            busy += max(0.0, min(event.end, stop) - max(event.start, until))
            until = event.end
    return Gaps(
        steps=len(steps),
        step=statistics.median(following.start - one.start for one, following in steps),
        dispatch=statistics.median(one.end - one.start for one, _ in steps),
        between=statistics.median(between),
        host=statistics.median(host),
        idle=1 - busy / (stop - start),
    )


if __name__ == "__main__":
    flags.main(run)
