"""The thread that acts when nothing gets finished."""

import threading
import time

import pytest

from bert.training import watchdog


@pytest.mark.slow
def test_it_acts_when_nothing_is_finished_and_not_before():
    acted = threading.Event()
    with watchdog.watching(6, acted.set):
        for number in range(20):  # longer than it waits
            watchdog.note(f"step {number}, training")
            time.sleep(0.5)
            watchdog.note()
        assert not acted.is_set()
        assert watchdog.last_phase() == "step 19, training"
        assert acted.wait(30)
    again = threading.Event()
    with watchdog.watching(1, again.set):
        pass
    assert not again.wait(1.5)  # over in time
