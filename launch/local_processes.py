"""Starts several processes of one training command on the CPU of this machine, for learning and tests.

bert local-processes --processes=2 pretrain --config=pretrain:mini --config.data=prepared/mine --workdir=runs/mine
bert local-processes --processes=2 --devices=2 pretrain --config=pretrain:mini --config.data=prepared/mine
    --config.mesh.mode=fsdp --workdir=runs/mine
bert local-processes --processes=4 finetune --config=table --config.data=my.csv --config.text=review
    --config.label=stars --config.init_from=DIR --workdir=runs/reviews

They train together as the processes of a cluster do, and their results are those of one process up to rounding: to the
last digit, if --processes=1 starts it with as many devices. The lines are those of process 0. If a process ends early,
the others are ended and its last lines are shown, with exit code 1. SIGTERM and Ctrl-C save first; a second Ctrl-C does
not wait. To train fast, start one process: it uses all devices of a machine.
"""

import ctypes
import os
import pathlib
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

import bert
from bert.errors import InputError, RunError
from launch import flags

OPTIONS = {
    "processes": "how many processes to start; each has an equal part of the cores",
    "devices": "how many devices each of them has, simulated on its cores (1 unless given)",
}
TRAINING = ("pretrain", "finetune")
_SECONDS_TO_END = 20  # of the other processes, when one has ended early
_LAST_LINES = 20
_PR_SET_PDEATHSIG = 1  # prctl.h of Linux
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows SIGTERM ends a process at once


def run(argv: list[str]) -> None:
    separate = [f"--{name}" for name in OPTIONS]  # their value may be the word behind them
    begins = (i for i, word in enumerate(argv) if i and word[:1] != "-" and argv[i - 1] not in separate)
    at = next(begins, len(argv))
    _, options = flags.parse(argv[:at], __doc__, OPTIONS, ("processes",), arguments="a command that trains, as alone")
    count, devices = options.whole_number("processes", 1), options.whole_number("devices", 1)
    if argv[at : at + 1] not in [[name] for name in TRAINING]:
        what = f"{argv[at]!r} is no command that trains" if argv[at:] else "the command is missing"
        raise InputError(f"{what}; name one of {', '.join(TRAINING)} behind the options")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    home = str(pathlib.Path(bert.__file__).parents[1])
    # XLA sums a product in as many parts as a process has threads: the same number, however the devices are divided.
    usual = {"JAX_PLATFORMS": "cpu", "NPROC": str(count * devices)}
    environment = usual | os.environ | {"JAX_NUM_CPU_DEVICES": str(devices)}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-P", "-m", "bert", *argv[at:], f"--coordinator={address}", f"--num_processes={count}"]
    sys.exit(run_together([[*command, f"--process_id={i}"] for i in range(count)], environment))


def run_together(commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> int:
    """Runs each command in a process of its own until all have ended; the exit code, where all of them have the same.

    The first one writes to standard output and error, as this process does; RunError where another code than that of
    the others, or a signal, has ended one.
    """
    received: list[int] = []
    processes, outputs = list[subprocess.Popen[bytes]](), list[IO[bytes] | None]()

    def pass_on(number: int, _: object) -> None:
        again = number == signal.SIGINT and number in received
        received.append(number)
        for process in processes:  # SIGTERM, for with several processes it is the signal that saves
            _send(process, _KILL if again else signal.SIGTERM)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for i, cores in enumerate(_shares(len(commands))):
            outputs.append(tempfile.TemporaryFile() if i else None)  # noqa: SIM115
            processes.append(
                subprocess.Popen(
                    commands[i],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=outputs[i],
                    stderr=outputs[i],
                    start_new_session=True,  # the terminal sends Ctrl-C to this process alone, which passes it on
                    preexec_fn=_in_child(cores) if platform.system() == "Linux" else None,
                )
            )
        first = _wait(processes)
    finally:
        for process in processes:
            _send(process, _KILL)
            process.wait()
        for number, handler in before.items():
            signal.signal(number, handler)
    last_lines = list[str]()
    if output := outputs[first]:
        output.seek(0)
        last_lines = output.read().decode(errors="replace").splitlines()[-_LAST_LINES:]
    for output in filter(None, outputs):
        output.close()
    codes = {process.returncode for process in processes}
    if len(codes) == 1 and min(codes) >= 0:
        return 128 + received[0] if received and codes != {0} else codes.pop()
    if received:
        raise RunError(f"stopped by {signal.Signals(received[0]).name}, before all processes had saved")
    for line in last_lines:
        print(line, file=sys.stderr)
    code = processes[first].returncode
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    raise RunError(f"process {first} {how}; the others were ended; start the same command again to go on")


def _wait(processes: Sequence["subprocess.Popen[bytes]"]) -> int:
    """Waits until all have ended, or one has with an error, and the others some time later; the first of these."""
    first, deadline = -1, 0.0
    while None in (codes := [process.poll() for process in processes]):
        failed = [i for i, code in enumerate(codes) if code]
        if failed and first < 0:
            first, deadline = failed[0], time.monotonic() + _SECONDS_TO_END
        if failed and time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return first if first >= 0 else next((i for i, code in enumerate(codes) if code), 0)


def _shares(count: int) -> Iterator[set[int]]:
    """The cores of each process: equal parts of those of this one, or all where there are too few."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    each = len(cores) // count
    for i in range(count):
        yield set(cores[i * each : (i + 1) * each]) if each else set(cores)


def _in_child(cores: set[int]) -> Callable[[], None]:
    """What a new process does first: it keeps to its cores, and ends when this one is killed."""
    prctl = ctypes.CDLL(None).prctl

    def begin() -> None:
        os.sched_setaffinity(0, cores)
        prctl(_PR_SET_PDEATHSIG, _KILL)

    return begin


def _send(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Sends a signal to a process and those that it started, unless it has ended."""
    if process.poll() is None:
        if hasattr(os, "killpg") and number == _KILL:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)


if __name__ == "__main__":
    flags.main(run)
