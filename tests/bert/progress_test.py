"""Progress of long work: plain lines now and then where there is no terminal, a bar on one, nothing unless asked."""

import io
import re
import sys
import time

import pytest

from bert import progress


@pytest.fixture
def often(caplog, monkeypatch):
    """Plain lines come every 50 ms."""
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.05)
    caplog.set_level("INFO")


def terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "__stderr__", screen)
    return screen


def lines_at(monkeypatch, caplog, times, steps, **settings):
    """What a meter says at the last of the ``times``, of calls with ``steps`` at the others."""
    now = iter(times)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    caplog.set_level("INFO")
    meter = progress._Meter(**{"total": 3000, "unit": "text", "label": ""} | settings)
    for step in steps:
        meter.advance(step)
    meter.log()
    return caplog.messages[-1]


def test_a_plain_line_has_what_is_done_the_rate_and_the_time_left(monkeypatch, caplog):
    """The first 1,000 texts waited 60 seconds for the compiler, which tells nothing of the 500 that are left."""
    line = lines_at(monkeypatch, caplog, [0.0, 60.0, 70.0], [1000, 1500])
    assert line == "2,500 of 3,000 texts, 150/s, left 0:03"


def test_before_a_rate_is_known_the_line_says_how_long_it_has_taken(monkeypatch, caplog):
    assert lines_at(monkeypatch, caplog, [0.0, 65.0], []) == "0 of 3,000 texts, 1:05 so far"
    assert lines_at(monkeypatch, caplog, [0.0, 65.0], [], unit="batch") == "0 of 3,000 batches, 1:05 so far"


def test_slow_work_has_a_rate_of_two_digits(monkeypatch, caplog):
    assert lines_at(monkeypatch, caplog, [0.0, 0.0, 100.0], [1, 25]) == "26 of 3,000 texts, 0.25/s, left 3:18:16"


@pytest.mark.parametrize(("total", "of_all"), [(None, ""), (40_000_000, " of 40.0")])
def test_bytes_are_shown_in_megabytes(monkeypatch, caplog, total, of_all):
    steps = {"total": total, "unit": "B", "label": "tokens"}
    line = lines_at(monkeypatch, caplog, [0.0, 0.0, 10.0], [0, 20_000_000], **steps)
    assert line == f"tokens: 20.0{of_all} MB, 2.00 MB/s" + ", left 0:10" * (total is not None)


@pytest.mark.usefixtures("often")
def test_lines_come_while_nothing_is_counted(caplog, capfd):
    """The compiler or a reader may have the process for minutes."""
    with progress.progress(10, "text"):
        time.sleep(0.2)
    assert len(caplog.messages) >= 2
    assert set(caplog.messages) == {"0 of 10 texts, 0:00 so far"}
    assert capfd.readouterr() == ("", "")
    with progress.waiting("reading a.csv"):
        time.sleep(0.2)
    assert caplog.messages[-1] == "reading a.csv: 0:00 so far"
    count = len(caplog.messages)
    time.sleep(0.1)
    assert len(caplog.messages) == count  # none after the end


@pytest.mark.usefixtures("often")
def test_steps_are_counted_one_after_the_other(caplog):
    with progress.step_progress() as show:
        for step in ("vocabulary", "tokens"):
            for done in (1_000_000, 2_000_000):
                show(step, done, None)
                time.sleep(0.1)
    shown = [re.match(r"(\w+): (.\..) MB", line).groups() for line in caplog.messages]
    assert list(dict.fromkeys(shown)) == [(s, d) for s in ("vocabulary", "tokens") for d in ("1.0", "2.0")]


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("shown", [True, False])
def test_a_bar_on_a_terminal(monkeypatch, caplog, shown):
    screen = terminal(monkeypatch)
    with progress.progress(10, "text", shown=shown) as done:
        done(10)
        time.sleep(0.1)
    assert ("10/10" in screen.getvalue()) == shown
    assert caplog.messages == []


def test_each_step_has_its_bar(monkeypatch):
    screen = terminal(monkeypatch)
    with progress.step_progress() as show:
        show("vocabulary", 3_000_000, None)
        show("tokens", 1_000_000, 4_000_000)
        show("tokens", 4_000_000, 4_000_000)
    assert re.search("vocabulary: 3.00MB.*tokens: 100%.*4.00M/4.00M", screen.getvalue(), re.DOTALL)
