"""Processes that wait for one that is lost, or for each other: one line, and exit code 1."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import pytest

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
