"""The arithmetic of gaps between steps, on a hand-made trace."""

import pytest

from bench.host_gap import COMPUTING, DISPATCH, FIRST_STEPS, READ, Event, gaps
from bert.errors import InputError


def trace(steps: int) -> tuple[list[Event], list[float]]:
    """Steps of 10 s: 1 s of dispatch, 6 s of waiting for a read, 3 s of other work, of which 0.25 s on the CPU. The
    device computes in two threads and is idle for 2 s."""
    events, marks = [], []
    for i in range(steps):
        at = 10.0 * i
        events += [Event(at, at + 1, DISPATCH), Event(at + 3.5, at + 9.5, READ)]
        events += [
            Event(at + 2, at + 8, COMPUTING),
            Event(at + 4, at + 10, COMPUTING),
            Event(at + 5, at + 6, COMPUTING),
        ]
        marks += [1.25 * i, 1.25 * i + 1]
    return events, marks


def test_gaps_of_a_regular_run():
    events, marks = trace(FIRST_STEPS + 4)
    measured = gaps(events[::-1], marks)
    assert measured.steps == 3
    assert measured[1:] == pytest.approx((10, 1, 3, 0.25, 0.2))


def test_the_first_steps_do_not_count():
    """Slow first steps, as during compilation, change nothing."""
    events, marks = trace(FIRST_STEPS + 4)
    late = 10.0 * FIRST_STEPS
    slow = [Event(event.start, event.end, event.name) for event in events if event.start >= late]
    slow += [Event(i, i + 0.9, DISPATCH) for i in range(FIRST_STEPS)] + [Event(20, late - 1, READ)]
    assert gaps(slow, [0.0] * (2 * FIRST_STEPS) + marks[2 * FIRST_STEPS :]) == pytest.approx(gaps(events, marks))


def test_a_step_that_overlaps_the_next_dispatch_leaves_no_gap():
    """Overlapping computations count once."""
    events, marks = trace(FIRST_STEPS + 3)
    busy = Event(0, 10.0 * (FIRST_STEPS + 3), COMPUTING)
    assert gaps([*events, busy], marks).idle == pytest.approx(0)


@pytest.mark.parametrize("lacking", [DISPATCH, COMPUTING])
def test_a_trace_without_steps_or_without_a_cpu_is_refused(lacking):
    """A finished run, or one on a GPU."""
    events, marks = trace(FIRST_STEPS + 3)
    with pytest.raises(InputError, match="at least 7 steps"):
        gaps([event for event in events if event.name != lacking], marks)
