"""Several processes of one command on this machine: how they end. Training is in pretrain_test.py."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from bert.errors import InputError, RunError
from launch import local_processes

# JAX warns of a fork where it runs; the launcher has started none.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]
# A process that says that it has begun, and does what it is told: to end when two have begun, to wait, to save when it
# is stopped.
PROCESS = """
import os, pathlib, signal, sys, time
kind, place = sys.argv[1:]
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143) if kind == "saves" else None)
print(f"the last line of {kind}", flush=True)
pathlib.Path(place, f"{os.getpid()}").touch()
while (kind == "dies" or kind.isdecimal()) and len(os.listdir(place)) < 2:
    time.sleep(0.02)
if kind == "dies":
    os.kill(os.getpid(), signal.SIGKILL)
if kind.isdecimal():
    sys.exit(int(kind))
time.sleep(60)
"""


def commands(*kinds, place) -> list[list[str]]:
    return [[sys.executable, "-c", PROCESS, kind, str(place)] for kind in kinds]


def begun(place: pathlib.Path, count: int) -> list[int]:
    """The numbers of the processes, once all have begun."""
    deadline = time.monotonic() + 60
    while len(list(place.iterdir())) < count:
        assert time.monotonic() < deadline, f"{count} processes have not begun within 60 seconds"
        time.sleep(0.02)
    return [int(path.name) for path in place.iterdir()]


def is_alive(number: int) -> bool:
    try:
        return "\nState:\tZ" not in pathlib.Path(f"/proc/{number}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the second one where it ends meanwhile
        return False


@pytest.mark.parametrize("code", [0, 2])
def test_an_exit_code_of_all_is_that_of_the_command(code, tmp_path, capfd):
    """Only the lines of the first one are shown."""
    assert local_processes.run_together(commands(str(code), str(code), place=tmp_path), os.environ) == code
    assert capfd.readouterr() == (f"the last line of {code}\n", "")


@pytest.mark.parametrize(("kind", "said"), [("dies", "process 1 was killed by SIGKILL"), ("1", "process 1 .*code 1")])
def test_one_that_ends_early_ends_the_others(kind, said, tmp_path, capfd, monkeypatch):
    """Its last lines are shown; nothing is left behind."""
    monkeypatch.setattr(local_processes, "_SECONDS_TO_END", 0.5)
    before = time.monotonic()
    with pytest.raises(RunError, match=said):
        local_processes.run_together(commands("waits", kind, place=tmp_path), os.environ)
    assert capfd.readouterr() == ("the last line of waits\n", f"the last line of {kind}\n")
    assert not any(map(is_alive, begun(tmp_path, 2)))
    assert time.monotonic() < before + 30  # the other one waits for 60


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_passed_on_as_the_one_that_saves(number, tmp_path):
    """Also to processes that were started by this one as a program; the exit code is that of the signal."""
    words = commands("saves", "saves", place=tmp_path)
    code = f"import os, sys; from launch import local_processes as l; sys.exit(l.run_together({words!r}, os.environ))"
    with subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT, stdout=subprocess.DEVNULL) as program:
        begun(tmp_path, 2)
        program.send_signal(number)
        assert program.wait(timeout=60) == 128 + number


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no signal for the death of a parent")
def test_a_killed_program_leaves_no_process(tmp_path):
    words = commands("waits", "waits", place=tmp_path)
    code = f"import os; from launch import local_processes; local_processes.run_together({words!r}, os.environ)"
    with subprocess.Popen([sys.executable, "-c", code], cwd=CHECKOUT, stdout=subprocess.DEVNULL) as program:
        numbers = begun(tmp_path, 2)
        program.kill()
    deadline = time.monotonic() + 30
    while any(map(is_alive, numbers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, numbers))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--processes=2"], "the command is missing; .*pretrain, finetune"),
        (["--processes=2", "predict", "--model=m"], "'predict' is no command that trains; .*pretrain"),
        (["--processes", "2", "pretrian", "--config=x"], "'pretrian' is no command that trains"),
        (["--processes=0", "pretrain"], "--processes=0: .*at least 1"),
        (["pretrain", "--config=x"], "--processes is missing"),
    ],
)
def test_bad_words_are_refused(words, said):
    with pytest.raises(InputError, match=said):
        local_processes.run(["local-processes", *words])
