"""The arithmetic of gaps between steps, on a hand-made trace."""

import pytest

from bench.host_gap import COMPUTING, DISPATCH, FIRST_STEPS, READ, Event, gaps
from bert.errors import InputError


def trace(steps: int) -> tuple[list[Event], list[float]]:
    """Steps of 10 s: 1 s of dispatch, then 3 s beside the 6 s in which a read waits; of these the main thread computes
    0.25 s. The device pauses for 2 s, and computes in two threads."""
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
    found = gaps(events[::-1], marks)
    assert found.steps == 3
    assert found[1:] == pytest.approx((10, 1, 3, 0.25, 0.2))


def test_the_first_steps_do_not_count():
    """First steps of another kind, as they are while programs are compiled, change nothing."""
    events, marks = trace(FIRST_STEPS + 4)
    late = 10.0 * FIRST_STEPS
    slow = [Event(event.start, event.end, event.name) for event in events if event.start >= late]
    slow += [Event(i, i + 0.9, DISPATCH) for i in range(FIRST_STEPS)] + [Event(20, late - 1, READ)]
    assert gaps(slow, [0.0] * (2 * FIRST_STEPS) + marks[2 * FIRST_STEPS :]) == pytest.approx(gaps(events, marks))


def test_a_step_that_goes_on_when_the_next_is_dispatched_leaves_no_gap():
    """Computing across the borders of steps, and a program inside a longer one: no second counts twice."""
    events, marks = trace(FIRST_STEPS + 3)
    busy = Event(0, 10.0 * (FIRST_STEPS + 3), COMPUTING)
    assert gaps([*events, busy], marks).idle == pytest.approx(0)


@pytest.mark.parametrize("lacking", [DISPATCH, COMPUTING])
def test_a_trace_without_steps_or_without_a_cpu_is_refused(lacking):
    """A finished run, or one on a GPU: one line and what to do, where medians of nothing would be a traceback."""
    events, marks = trace(FIRST_STEPS + 3)
    with pytest.raises(InputError, match="give at least 7 steps, a new workdir, and a CPU"):
        gaps([event for event in events if event.name != lacking], marks)
