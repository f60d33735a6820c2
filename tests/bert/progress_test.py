"""Progress of long work: plain lines now and then where there is no terminal, a bar on one, nothing unless asked."""

import io
import sys

import pytest

from bert import progress


def test_plain_lines(caplog, capfd, monkeypatch):
    clock = iter([0.0, 4.0, 11.0, 12.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    caplog.set_level("INFO")
    with progress.progress(3000, "text") as done:
        for _ in range(3):
            done(1000)
    assert caplog.messages == ["2,000 of 3,000 texts, 182/s"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shown", [True, False])
def test_a_bar_on_a_terminal(monkeypatch, shown):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "__stderr__", screen)
    with progress.progress(10, "text", shown=shown) as done:
        done(10)
    assert ("10/10" in screen.getvalue()) == shown
