"""Trackers get each line of metrics.jsonl once, in order; whatever they do, the run goes on."""

import json
import logging
import signal
import subprocess
import sys
import threading
import time

import pytest

from bert.errors import InputError
from bert.training import trackers, tracking
from bert.training.trackers import follower

MODULE = "tests.bert.training.trackers.recording"
SETTINGS = {"model.num_layers": 2, "encoder": {"dtype": {"of_heads": "float32"}}, "probes": ["a [MASK]"]}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run directory with its settings; the tracker "recording" is known."""
    monkeypatch.setitem(trackers.SERVICES, "recording", ("recording", MODULE))
    monkeypatch.setattr(follower, "SECONDS_BETWEEN_LOOKS", 0.01)
    (tmp_path / "config.json").write_text(json.dumps(SETTINGS))
    return tmp_path


def train(run, steps, resumed_at=0):
    """What `fit` writes: two lines a step, some of them with values that are undefined."""
    metrics = tracking.MetricsFile(run, resumed_at)
    for step in range(resumed_at + 1, steps + 1):
        metrics.write(step, "train", {"loss": step / 7, "f1": None})
        metrics.write(step, "validation", {"loss": float("nan"), "accuracy": step / 9})
    metrics.close()


def wanted(steps):
    each = ((step, [("train", {"loss": step / 7}), ("validation", {"accuracy": step / 9})]) for step in steps)
    return [{"step": step, "split": split, "values": values} for step, lines in each for split, values in lines]


def recorded(run):
    return [json.loads(line) for line in (run / "recorded.jsonl").read_text().splitlines()]


def follow_to_end(run, outcome="finished"):
    ended = threading.Event()
    ended.set()
    follower.follow("recording", MODULE, run, ended, [outcome])


def test_each_line_is_sent_and_the_settings_have_dotted_names(run):
    train(run, 3)
    follow_to_end(run)
    first, *lines, last = recorded(run)
    assert first["settings"] == {
        "model.num_layers": 2,
        "encoder.dtype.of_heads": "float32",
        "probes": ["a [MASK]"],
    }
    assert lines == wanted([1, 2, 3])
    assert last == {"close": "finished"}


def test_a_resumed_run_goes_on_in_the_same_tracked_run_without_a_step_twice(run):
    """It was killed at step 5, and repeats what came after its checkpoint of step 3."""
    train(run, 5)
    follow_to_end(run, "stopped")
    train(run, 7, resumed_at=3)
    follow_to_end(run)
    rows = recorded(run)
    assert [(row["start"], row["new"]) for row in rows if "start" in row] == [("first", True), ("first", False)]
    assert [row for row in rows if "step" in row] == wanted(range(1, 8))


def test_lines_that_are_written_meanwhile_are_sent_also_where_a_resumed_run_replaces_the_file(run):
    ended, outcome = threading.Event(), ["finished"]
    train(run, 4)
    thread = threading.Thread(target=follower.follow, args=("recording", MODULE, run, ended, outcome))
    thread.start()
    while not (run / "recorded.jsonl").exists() or len(recorded(run)) < 9:
        time.sleep(0.01)
    train(run, 6, resumed_at=2)
    ended.set()
    thread.join()
    assert [row for row in recorded(run) if "step" in row] == wanted(range(1, 7))


def test_what_fails_is_said_once_and_sent_later(run, capsys):
    train(run, 3)
    (run / "failures").write_text("3")
    follow_to_end(run)
    assert [row for row in recorded(run) if "step" in row] == wanted([1, 2, 3])
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("warning: recording: no route to host; the run goes on")


def test_the_process_sends_all_before_the_run_ends(run):
    with trackers.following("recording", run):
        train(run, 3)
    assert [row for row in recorded(run) if "step" in row] == wanted([1, 2, 3])
    assert recorded(run)[-1] == {"close": "finished"}


@pytest.mark.parametrize(("error", "outcome"), [(SystemExit(143), "stopped"), (ValueError("bad"), "failed")])
def test_the_tracker_learns_how_the_run_ended(run, error, outcome):
    def fail():
        with trackers.following("recording", run):
            train(run, 1)
            raise error

    with pytest.raises(type(error)):
        fail()
    assert recorded(run)[-1] == {"close": outcome}


def test_a_tracker_that_hangs_is_ended_with_a_warning(run, monkeypatch, caplog):
    monkeypatch.setattr(trackers, "SECONDS_TO_START", 0)
    monkeypatch.setattr(trackers, "SECONDS_AT_END", 1)
    (run / "hangs").touch()
    started = time.monotonic()
    with trackers.following("recording", run):
        train(run, 1)
    assert time.monotonic() - started < 10
    assert [r.levelno for r in caplog.records] == [logging.WARNING]
    assert "recording: has not received all metrics" in caplog.text
    (run / "hangs").unlink()
    follow_to_end(run)  # the lock and the lines are free again
    assert [row for row in recorded(run) if "step" in row] == wanted([1])


def test_a_short_run_waits_for_a_tracker_that_starts_slowly(run, monkeypatch):
    """As MLflow does with a new database. Half a minute counts from then on."""
    monkeypatch.setattr(trackers, "SECONDS_AT_END", 0)
    (run / "is slow").touch()
    with trackers.following("recording", run):
        train(run, 3)
    assert [row for row in recorded(run) if "step" in row] == wanted([1, 2, 3])


@pytest.mark.parametrize(("seconds", "code"), [(60, 0), (0, 1)])
def test_the_process_ends_in_time_by_itself(run, seconds, code):
    """The first contact may take so many seconds, also after the end of the run."""
    train(run, 2)
    (run / "is slow").touch()
    program = (
        f"import pathlib; from bert.training.trackers import follower; follower.SECONDS_AT_END = 0.5; "
        f"follower.SECONDS_TO_START = {seconds}; follower.main('recording', '{MODULE}', pathlib.Path({str(run)!r}))"
    )
    assert subprocess.run([sys.executable, "-c", program], input="finished", text=True).returncode == code
    assert (run / "recorded.jsonl").exists() == (code == 0)


def test_a_tracker_that_cannot_be_imported_ends_no_run(run, monkeypatch, caplog):
    monkeypatch.setitem(trackers.SERVICES, "recording", ("recording", "tests.no_such_module"))
    monkeypatch.setattr(trackers, "SECONDS_TO_START", 0)
    monkeypatch.setattr(trackers, "SECONDS_AT_END", 3)
    with trackers.following("recording", run):
        train(run, 1)
    assert "has not received all metrics" in caplog.text


def test_a_run_that_is_killed_leaves_a_process_that_sends_what_is_there_and_ends(run):
    train(run, 2)
    program = (
        "import os, pathlib, signal; from bert.training import trackers; "
        f"trackers.SERVICES['recording'] = ('recording', '{MODULE}'); "
        f"run = trackers.following('recording', pathlib.Path({str(run)!r})); run.__enter__(); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    for _ in range(600):
        if (run / "recorded.jsonl").exists() and recorded(run)[-1] == {"close": "stopped"}:
            break
        time.sleep(0.05)
    assert recorded(run)[1:] == [*wanted([1, 2]), {"close": "stopped"}]


def test_no_tracker_starts_nothing(run):
    with trackers.following("", run):
        train(run, 1)
    assert sorted(path.name for path in run.iterdir()) == ["config.json", "metrics.jsonl", "tensorboard"]


def test_settings_that_cannot_be_followed_are_refused(monkeypatch):
    trackers.check("")
    with pytest.raises(InputError, match=r"^config.tracker is 'wandbb'; .*did you mean 'wandb'"):
        trackers.check("wandbb")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"^config.tracker=mlflow needs the package mlflow-skinny: pip install"):
        trackers.check("mlflow")
