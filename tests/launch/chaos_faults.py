"""Commands that train in child processes, and faults that strike them at work, or their files between two starts."""

import atexit
import contextlib
import json
import os
import pathlib
import random
import re
import resource
import signal
import socket
import sys
import time
import types
from collections.abc import Callable, Sequence

from tests import xla_flags

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(pathlib.Path(__file__).resolve().parents[2] / ".jax_cache"))
os.environ["XLA_FLAGS"] = xla_flags.FAST  # compiling is most of a start

import jax
import orbax.checkpoint  # noqa: F401  (imported here, it need not be imported at each start)

from bert.store.prepare import prepare
from bert.training import run_directory
from launch import flags, pretrain
from tests.launch.conftest import write_text

PATIENCE = 900  # seconds for a start on a busy machine
LOST_AFTER = 15  # seconds, config.mesh.lost_after
QUICK = (
    *("--config.log_every=1", "--config.keep_checkpoints=3", "--config.allocator=system"),
    f"--config.mesh.lost_after={LOST_AFTER}",
)


def short(line: str, run: "Run") -> str:
    """The beginning of a message, as a cell of the table."""
    return line.replace(f"{run.folder}/", "").replace("|", "/")[:110]


class Wrong(Exception):
    """An answer that was not the right one."""


STARTED: list["Process"] = []


class Process:
    """A command in a child of this process, which has imported what it needs: a start takes a third of the time."""

    def __init__(self, module: types.ModuleType, words: Sequence[str], devices: int, output: pathlib.Path):
        self.output, self.code = output, None
        self.pid = os.fork()
        if self.pid == 0:
            _become(module, words, devices, output)
        STARTED.append(self)

    def ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code is not None

    def wait(self) -> int:
        wait_for(self.ended, f"the end of {self.output}")
        return self.code

    def kill(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def tail(self) -> str:
        return f"exit code {self.code}; ...{self.output.read_text(errors='replace')[-2000:]}"

    def said(self, kind: str) -> list[str]:
        return re.findall(
            rf"^(?:process \d+: )?((?:{kind}): .*)$", self.output.read_text(errors="replace"), re.MULTILINE
        )


def _become(module: types.ModuleType, words: Sequence[str], devices: int, output: pathlib.Path) -> None:
    code = 70
    try:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, 1)
        os.dup2(file, 2)
        jax.config.update("jax_num_cpu_devices", devices)
        sys.argv = list(words)
        flags.main(module.run)
    except SystemExit as error:
        code = error.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    finally:
        atexit._run_exitfuncs()
        sys.stderr.flush()
        os._exit(code)


def wait_for(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise Wrong(f"waited {PATIENCE} s for {what}")
        time.sleep(0.003)


Folders = tuple[pathlib.Path, pathlib.Path]  # for runs, for logs


class Run:
    """One run of a command, and what its faults did."""

    def __init__(
        self, name: str, command: types.ModuleType, words: Sequence[str], folders: Folders, rng: random.Random
    ):
        """``words``: settings, with {} for the number of steps."""
        self.name, self.command, self.words, self.rng = name, command, ("bert", *QUICK, *words), rng
        self.folder, self.logs = folders
        self.workdir, self.devices, self.steps, self.starts = self.folder / name, 2, 0, 0
        self.rows: list[tuple[str, str, int]] = []  # fault, what was seen, steps lost

    def start(self, processes: int = 1) -> list[Process]:
        where: list[tuple[str, ...]] = [()]
        if processes > 1:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                address = f"--coordinator=127.0.0.1:{free.getsockname()[1]}"
            where = [(address, f"--num_processes={processes}", f"--process_id={i}") for i in range(processes)]
        self.starts += 1
        words = [*(word.replace("{}", str(self.steps)) for word in self.words), f"--workdir={self.workdir}"]
        outputs = [self.logs / f"{self.name}-{self.starts}-{i}.log" for i in range(processes)]
        devices = self.devices // processes
        return [Process(self.command, (*words, *w), devices, o) for w, o in zip(where, outputs, strict=True)]

    def step(self) -> int:
        """The last step in the log."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            return json.loads((self.workdir / "metrics.jsonl").read_bytes().split(b"\n")[-2])["step"]
        return 0

    def newest(self) -> int:
        return run_directory.newest_step(self.workdir)

    def at_work(self, processes: list[Process]) -> None:
        """Waits until the run has gone on for some steps and two checkpoints."""
        begun, more = self.newest(), self.rng.randint(9, 14)
        wait_for(lambda: self.step() >= begun + more or processes[0].ended(), f"step {begun + more} of {self.name}")
        if processes[0].ended():
            raise Wrong(f"ended before its fault: {processes[0].tail()}")

    def note(self, fault: str, seen: str, lost: int = 0) -> None:
        self.rows.append((fault, seen, lost))
        print(f"| {self.name} | {fault} | {seen} | {lost} |", flush=True)


# --- at work ----------------------------------------------------------------------------------------------------


def killed(run: Run, processes: int, victims: Sequence[int], number: int, in_save: bool = False) -> None:
    """A signal to some processes of a run; the others end by themselves."""
    started = run.start(processes)
    run.at_work(started)
    if in_save:
        saving = lambda: any("tmp" in path.name for path in (run.workdir / "checkpoints").iterdir())  # noqa: E731
        wait_for(lambda: saving() or started[0].ended(), "a save")
    else:
        time.sleep(run.rng.uniform(0, 0.05))
    since = time.monotonic()
    for victim in victims:
        started[victim].kill(number)
    codes = [process.wait() for process in started]
    seconds, done = time.monotonic() - since, run.step()
    want = [-number if number == signal.SIGKILL else 128 + number] * processes
    if number == signal.SIGKILL:
        want = [-number if i in victims else 1 for i in range(processes)]
    name = signal.Signals(number).name
    where = f" of process {' and '.join(map(str, victims))} of {processes}" if processes > 1 else ""
    fault = f"{name}{where}{' in a save' if in_save else ''}"
    if codes != want:
        raise Wrong(f"{fault}: exit codes {codes}, not {want}: {[process.tail() for process in started]}")
    seen = f"exit {codes[0]}"
    if len(set(codes)) > 1:
        (other,) = (process for process in started if process.code == 1)
        if len(lines := other.said("error")) != 1 or f"process {victims[0]} is missing" not in lines[0] or seconds > 60:
            raise Wrong(f"{fault}: after {seconds:.0f} s {other.tail()}")
        seen = f"after {seconds:.0f} s: {lines[0].split(';')[0]}"
    run.note(fault, seen, done - run.newest())


def full_disk(run: Run) -> None:
    """No file may grow any more beyond some kilobytes: on the disk of a run, or by a limit of the system."""
    (process,) = run.start()
    run.at_work([process])
    where = run.folder / "filler"
    if os.path.ismount(run.folder):
        room = os.statvfs(run.folder)
        with contextlib.suppress(OSError):  # the run writes, too
            where.write_bytes(bytes(max(0, room.f_bavail * room.f_frsize - run.rng.randint(0, 100_000))))
    else:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (run.rng.randint(5_000, 40_000),) * 2)
    code = process.wait()
    where.unlink(missing_ok=True)
    lines = process.said("error")
    if code != 1 or len(lines) != 1 or "make room" not in lines[0]:
        raise Wrong(f"full disk: exit code {code}: {process.tail()}")
    run.note("full disk", f"exit 1: {short(lines[0], run)}", run.step() - run.newest())


# --- at rest ----------------------------------------------------------------------------------------------------


def harm(path: pathlib.Path, rng: random.Random) -> str:
    """Flips a bit of a file, cuts it, or deletes it."""
    content, kind = bytearray(path.read_bytes()), rng.choice(["flipped bit in", "truncated", "deleted"])
    if kind == "deleted":
        path.unlink()
    elif kind == "truncated":
        path.write_bytes(content[: rng.randrange(len(content))])
    else:
        bit = rng.randrange(8 * len(content))
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
    return kind


def files_in(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)


def damaged_checkpoint(run: Run) -> None:
    """One of its larger files; the run goes on from there, or from the checkpoint before it."""
    newest, done = run.newest(), run.step()
    folder = run.workdir / "checkpoints" / str(newest)
    path = run.rng.choice(sorted(files_in(folder), key=lambda path: path.stat().st_size)[-4:])
    fault = f"{harm(path, run.rng)} checkpoints/{newest}/{path.relative_to(folder).parts[0]}"
    (process,) = run.start()
    run.at_work([process])
    process.kill(signal.SIGKILL)
    process.wait()
    restored = int(re.search(r"step (\d+)/\d+  restored", process.output.read_text())[1])
    lines = process.said("warning")
    if restored < newest and not any(f"checkpoints/{newest} " in line for line in lines):
        raise Wrong(f"{fault}: not named: {process.tail()}")
    seen = short(lines[0], run) if lines else f"harmless: goes on from {restored}"
    run.note(fault, seen, done - restored)


def damaged_store(run: Run) -> None:
    """A file of the prepared text: refused by name, and prepared again."""
    folder = run.folder / "prepared"
    path = run.rng.choice([path for path in files_in(folder) if path.name != "vocab.txt"])
    fault = f"{harm(path, run.rng)} prepared/{path.name}"
    (process,) = run.start()
    before = run.newest()
    wait_for(lambda: process.ended() or run.newest() > before, "an answer")
    if not process.ended():  # bytes that nothing reads
        process.kill(signal.SIGKILL)
        process.wait()
        run.note(fault, "harmless", run.step() - run.newest())
    else:
        lines = process.said("error")
        named = lines and (path.name in lines[0] or str(folder) in lines[0])
        if process.code != 2 or len(lines) != 1 or not named or run.newest() != before:
            raise Wrong(f"{fault}: exit code {process.code}: {process.tail()}")
        run.note(fault, f"exit 2: {short(lines[0], run)}")
    again = os.fork()
    if not again:
        prepare(folder, write_text(run.folder), overwrite=True)
        os._exit(0)
    os.waitpid(again, 0)


def damaged_table(run: Run) -> None:
    """A letter of the examples: refused, for the run is of other ones."""
    path = run.folder / "train.csv"
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"movie", b"novie", 1))
    (process,) = run.start()
    if process.wait() != 2 or len(lines := process.said("error")) != 1 or "data" not in lines[0]:
        raise Wrong(f"changed table: {process.tail()}")
    path.write_bytes(whole)
    run.note("changed letter in train.csv", f"exit 2: {short(lines[0], run)}")


def other_devices(run: Run) -> None:
    """One process on another number of devices."""
    before, done = run.devices, run.step()
    run.devices = run.rng.choice([count for count in (1, 2, 4) if count != before])
    (process,) = run.start()
    run.at_work([process])
    process.kill(signal.SIGKILL)
    process.wait()
    restored = int(re.search(r"step (\d+)/\d+  restored", process.output.read_text())[1])
    run.note(f"restart on {run.devices} devices instead of {before}", f"goes on from {restored}", done - restored)


def both(count: int, victims: Sequence[int], number: int) -> Callable[[Run], None]:
    return lambda run: killed(run, count, victims, number)


FAULTS: dict[str, Callable[[Run], None]] = {
    "step": both(1, [0], signal.SIGKILL),
    "save": lambda run: killed(run, 1, [0], signal.SIGKILL, in_save=True),
    "checkpoint": damaged_checkpoint,
    "first of two": both(2, [0], signal.SIGKILL),
    "disk": full_disk,
    "data": lambda run: (damaged_store if run.command is pretrain else damaged_table)(run),
    "second of two": both(2, [1], signal.SIGKILL),
    "signal": both(1, [0], signal.SIGTERM),
    "all of two": both(2, [0, 1], signal.SIGKILL),
    "signal to one of two": both(2, [1], signal.SIGTERM),
}
