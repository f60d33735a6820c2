"""A short `make chaos`: no fault loses anything, and each is answered as it should be."""

import pathlib
import subprocess
import sys

import pytest

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.alone
def test_runs_survive_some_faults():
    command = [sys.executable, "-m", "tests.launch.chaos", "--pretraining=8", "--finetuning=4"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("bit-equal") == 2
