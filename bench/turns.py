"""Processes that time steps on request, so that implementations take turns on one machine.

A process prints a JSON line after its first step. For each number that it then reads from standard input, it runs that
many steps and prints how long they took. `Peer` is the other end.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def serve(
    step: Callable[[], Any], finish: Callable[[], Any], versions: Mapping[str, Any], memory: Callable[[], int]
) -> None:
    """Runs steps on request until standard input ends.

    Args:
      step: starts one step. finish: waits for all steps that were started.
      versions: name, versions and device of this implementation. memory: peak bytes so far.
    """
    started = time.perf_counter()
    step()
    finish()
    first = time.perf_counter() - started
    print(json.dumps({**versions, "first_step_s": round(first, 2), "start_s": round(since_start(), 2)}), flush=True)
    for line in sys.stdin:
        started = time.perf_counter()
        for _ in range(int(line)):
            step()
        finish()
        print(json.dumps({"seconds": time.perf_counter() - started, "peak_bytes": memory()}), flush=True)


def since_start() -> float:
    """Seconds since the start of this process, imports included (Linux)."""
    with open("/proc/self/stat") as stat, open("/proc/uptime") as uptime:
        ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
        return float(uptime.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")


def resident() -> int:
    """Peak resident bytes of this process (Linux); ru_maxrss would start with the peak of the parent process."""
    with open("/proc/self/status") as status:
        return 1024 * int(next(line for line in status if line.startswith("VmHWM")).split()[1])


class Peer:
    """An implementation in its own process.

    Args:
      name: its name in tables. command: starts the process, which calls `serve`.
    """

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None):
        self.name, self.seconds, self.peak_bytes = name, list[float](), 0
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )
        self.versions = self._read()

    def run(self, steps: int) -> None:
        """Times a block of steps."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the process has ended; `_read` reports that
            print(steps, file=self._process.stdin, flush=True)
        block = self._read()
        self.seconds.append(block["seconds"] / steps)
        self.peak_bytes = block["peak_bytes"]

    def stop(self) -> int:
        """Ends the process; its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        code = self._process.wait()
        self._process.stdout.close()
        return code

    @property
    def median(self) -> float:
        """Seconds per step."""
        return statistics.median(self.seconds)

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"{self.name} ended with exit code {self.stop()} before it printed a result")
