"""Timing in turns: what is timed, the processes that run steps on request, and the table."""

import subprocess
import sys

import pytest

from bench import gpu
from bench.turns import Peer
from bench.work import Work

# Its clock counts steps: every step takes one second, whatever the machine does.
SERVED = """
import time
from bench import turns
done = []
time.perf_counter = lambda: float(len(done))
turns.serve(lambda: done.append(1), lambda: None, {"name": "counter", "device": "NVIDIA A100"}, lambda: len(done))
"""


@pytest.mark.parametrize(
    ("size", "length", "mflops"), [("base", 128, 546), ("base", 512, 588), ("large", 128, 1880), ("large", 512, 1992)]
)
def test_arithmetic_of_a_token(size, length, mflops):
    """The published counts for the pretraining step, forward and backward, to one per cent."""
    assert Work(size, 4, length).flops / (4 * length) / 1e6 == pytest.approx(mflops, rel=0.01)


def test_the_peak_of_a_process_is_its_own():
    """A parent that holds 400 MB starts a child that needs a tenth of that."""
    held = b"x" * 400_000_000
    program = "from bench import turns; print(turns.resident())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 0 < int(done.stdout) < len(held) / 2


def test_a_process_times_as_many_steps_as_requested():
    """The first step, which compiles, is not timed."""
    peer = Peer("counter", [sys.executable, "-c", SERVED])
    for steps in (3, 5):
        peer.run(steps)
    peer.stop()
    assert (peer.peak_bytes, peer.seconds, peer.versions["first_step_s"]) == (1 + 3 + 5, [1.0, 1.0], 1.0)
    row = gpu.measurements(Work("tiny", 8, 64), peer)
    assert row["of_peak"] == pytest.approx(row["tflops"] / 312)
    assert "| tiny | 64 | 8 | counter |" in gpu.table([row, {**row, "error": "no memory"}])


def test_a_process_that_has_ended_is_named():
    """Before its first step, and between two blocks."""
    with pytest.raises(RuntimeError, match="broken ended with exit code 1"):
        Peer("broken", [sys.executable, "-c", "raise SystemExit(1)"])
    peer = Peer("gone", [sys.executable, "-c", "print('{}')"])
    peer._process.wait()
    with pytest.raises(RuntimeError, match="gone ended with exit code 0"):
        peer.run(1)


@pytest.mark.slow
def test_our_step_runs():
    """The smallest size on a batch of two rows."""
    flags = ["--size=tiny", "--batch=2", "--length=32", "--dropout=0.0"]
    peer = Peer("ours", [sys.executable, "-m", "bench.ours", *flags])
    peer.run(2)
    peer.stop()
    assert len(peer.seconds) == 1
    assert peer.versions["jax"]
