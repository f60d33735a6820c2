"""Processes that wait for one that is lost, or for each other: one line, and exit code 1."""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from jax._src import distributed

from bert.errors import RunError
from launch import flags, peers

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
# Two processes that gather numbers from each other, until the first of them waits in another place than the second.
GATHERS = """
import sys, time
import numpy as np
from bert.training import watchdog
from launch import flags, peers

def run(argv):
    number, address, until, stuck_after = int(argv[1]), argv[2], int(argv[3]), int(argv[4])
    peers.join({"coordinator_address": address, "num_processes": 2, "process_id": number}, 5)
    from jax.experimental import multihost_utils
    with peers.watching(stuck_after):
        for step in range(1, 10_000):
            if number == 0 and step == until:
                time.sleep(1000)
            multihost_utils.process_allgather(np.zeros(1))
            watchdog.note(f"step {step}, training")
            print(step, flush=True)

flags.main(run)
"""


def start(until: int, stuck_after: int) -> list[subprocess.Popen]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return [
        subprocess.Popen(
            [sys.executable, "-c", GATHERS, str(i), address, str(until), str(stuck_after)],
            **{"cwd": CHECKOUT, "env": environment, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE},
        )
        for i in range(2)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_the_other_process_ends_with_a_line_where_one_was_killed(victim):
    both = start(until=0, stuck_after=1000)
    other = both[1 - victim]
    assert any(line == "20\n" for line in other.stdout)
    both[victim].send_signal(signal.SIGKILL)
    killed = time.monotonic()
    _, said = other.communicate(timeout=300)
    assert other.returncode == 1, said
    assert time.monotonic() - killed < 60
    assert len(said.splitlines()) == 1, said
    line = said
    assert line.startswith(f"error: process {victim} is missing"), line
    assert ", training; " in line
    assert "same command" in line
    both[victim].communicate()


@pytest.mark.slow
def test_processes_that_live_but_do_not_go_on_say_where_they_are():
    both = start(until=7, stuck_after=15)
    said = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [1, 1], said
    for text in said:
        assert "error: nothing was finished for 15 seconds" in text
        assert "process 0 had finished step 6, training" in text
        assert "process 1 had finished step 6, training" in text


def test_what_is_printed_is_passed_on_at_once_up_to_the_fatal_line():
    """Also an unfinished line, and where the words of the fatal line come in two parts."""
    (reading, writing), (shown, errors), fatal = os.pipe(), os.pipe(), bytearray()
    thread = threading.Thread(target=peers._forward, args=(reading, errors, fatal))
    thread.start()
    os.write(writing, b"a bar 10%")
    assert os.read(shown, 100) == b"a bar 10%"
    os.write(writing, b"\nF0 distributed service det")
    assert os.read(shown, 100) == b"\nF0 distributed service det"
    os.write(writing, b"ected fatal errors:\n")
    os.write(writing, b"Task 1 heartbeat timeout\n")
    os.close(writing)
    thread.join()
    os.close(errors)
    assert os.read(shown, 100) == b""
    assert fatal == b"ected fatal errors:\nTask 1 heartbeat timeout\n"


def test_what_cannot_be_passed_on_is_read_all_the_same():
    """Else those that print more than the pipe holds would wait."""
    (reading, writing), (shown, errors) = os.pipe(), os.pipe()
    os.close(shown)
    thread = threading.Thread(target=peers._forward, args=(reading, errors, bytearray()), daemon=True)
    thread.start()
    os.set_blocking(writing, False)
    deadline, left = time.monotonic() + 30, 1 << 20
    while left and time.monotonic() < deadline:
        try:
            left -= os.write(writing, bytes(min(left, 1 << 12)))
        except BlockingIOError:
            time.sleep(0.01)
    assert not left
    os.close(writing)
    thread.join()
    os.close(errors)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ([("stuck/0", "step 6")], r"process 0 had finished step 6, process 1 has not answered; "),
        (None, r"this process had finished .*, process 0 has not answered; "),
    ],
)
def test_a_process_that_hangs_ends_where_others_do_not_answer(answers, said, monkeypatch, capsys):
    class Client:
        def key_value_set(self, *_, **__):
            if answers is None:
                raise RuntimeError("UNAVAILABLE: connection refused")

        def key_value_dir_get(self, _):
            return answers

    codes = []
    monkeypatch.setattr(distributed, "global_state", SimpleNamespace(client=Client(), process_id=1, num_processes=2))
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(peers, "_SECONDS_TO_ANSWER", 0)
    monkeypatch.setattr(peers, "_SECONDS_TO_LEAVE", 0)
    monkeypatch.setattr(peers._State, "code", None)
    peers._end_stuck(15)
    assert codes == [1]
    line = capsys.readouterr().err
    assert re.match(f"error: nothing was finished for 15 seconds: {said}", line)
    assert "raise --config.mesh.stuck_after; start the same" in line


def test_an_error_that_a_lost_process_caused_waits_until_that_one_is_named(monkeypatch, capsys):
    def run(_):
        try:
            raise RuntimeError("UNAVAILABLE: a heartbeat of task 1")
        except RuntimeError as error:
            raise RunError("a checkpoint cannot be finished") from error

    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(peers._State, "lost_after", 30)
    monkeypatch.setattr(peers, "leave", lambda code: waits.append(-code))
    with pytest.raises(SystemExit):
        flags.main(run)
    assert waits == [30 + peers._SECONDS_TO_ANSWER, -1]
    assert capsys.readouterr().err == "error: a checkpoint cannot be finished\n"


def test_a_process_that_is_sent_sigabrt_ends():
    """`abort` ends the process itself when the handler returns; `kill -ABRT` does not."""
    code = "import os, time; from launch import peers; peers._catch_abort(); os.kill(os.getpid(), 6); time.sleep(30)"
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGABRT, "")
