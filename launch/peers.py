"""Several processes that train together: what ends one of them when another is lost, for which it would wait for ever.

JAX's coordination service, in process 0, notices which process is lost, and aborts the others with a stack trace of
C++. Here they end with one line and exit code 1 instead.
"""

import contextlib
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from typing import Any

from bert.training import watchdog
from launch import console, native_signals

_FATAL = b"distributed service detected fatal errors"  # in the line that JAX prints before it aborts the process
_LOST = re.compile(r"^(\d+)$|Task (\d+) heartbeat", re.MULTILINE)  # in what it prints then
_OF_XLA = re.compile("[A-Z_]+: ")  # how its errors begin, which are of several types: with a status code
_RESUME = "start the same command again in all processes, and the run goes on from its newest checkpoint"
_SECONDS_TO_LEAVE = 5  # until all processes with the same error have printed it
_SECONDS_TO_ANSWER = 10  # until all processes that wait for each other, or for a lost one, have noticed it


class _State:
    lost_after = 0  # seconds; 0: this is no process of several
    code: int | None = None  # of an error that ends this process


def join(where: Mapping[str, Any], lost_after: int) -> None:
    """Connects this process with the others; a process without a sign of life for ``lost_after`` seconds is lost."""
    import jax

    jax.distributed.initialize(**where, heartbeat_timeout_seconds=lost_after)
    if jax.process_count() > 1:
        _State.lost_after = lost_after
        _catch_abort()


def watching(stuck_after: int) -> contextlib.AbstractContextManager[None]:
    """Ends this process of several with a line where nothing was finished for ``stuck_after`` seconds."""
    if not _State.lost_after:
        return contextlib.nullcontext()
    return watchdog.watching(stuck_after, lambda: _end_stuck(stuck_after))


def leave(code: int, error: Exception | None = None) -> None:
    """Ends this process of several, which an error ends, at once: the others would wait for it for minutes.

    Of an ``error`` without a message of its own, the traceback is printed. In a process alone, nothing happens.
    """
    if not _State.lost_after:
        return
    wait_for_abort(error)
    _State.code = code
    if error is not None:
        traceback.print_exception(error)
    sys.stdout.flush()
    time.sleep(_SECONDS_TO_LEAVE)
    os._exit(code)


def wait_for_abort(error: BaseException | None) -> None:
    """Waits, after an error of XLA, for `on_abort`: most often another process is lost, which it names."""
    if _State.lost_after and _OF_XLA.match(str(error)):
        time.sleep(_State.lost_after + _SECONDS_TO_ANSWER)


def _catch_abort() -> None:
    """Passes on what C++ code prints to standard error, up to JAX's fatal line; `abort` then prints a line of ours."""
    errors, (reading, writing) = os.dup(2), os.pipe()
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1, encoding=sys.stderr.encoding)
    console.plain_output()
    console.plain_logging()
    os.dup2(writing, 2)
    os.close(writing)
    fatal = bytearray()

    def on_abort() -> None:  # in a thread of C++
        time.sleep(0.5)  # `_forward` reads the rest
        if _State.code is not None:
            os._exit(_State.code)
        if fatal:
            import jax

            lost = {number or task for number, task in _LOST.findall(fatal.decode(errors="replace"))}
            # Where process 0 is lost, nobody says so.
            lost = lost or ({"0"} if jax.process_index() else set())
            others = f"process {', '.join(sorted(lost, key=int))}" if lost else "another process"
            missing = f"{others} is missing: it has ended, or gave no sign of life for"
            _say(f"{missing} {_State.lost_after} seconds; this one had finished {watchdog.last_phase()}")
            os._exit(1)

    threading.Thread(target=_forward, args=(reading, errors, fatal), name="errors", daemon=True).start()
    native_signals.on("SIGABRT", on_abort)


def _forward(reading: int, errors: int, fatal: bytearray) -> None:
    """Writes to ``errors`` what it reads, up to the line of `_FATAL`; that line and all behind it go into ``fatal``.

    Where nothing can be written, it reads on, for those that write into the pipe would wait else.
    """
    before = b""  # the last bytes written, in which `_FATAL` may begin
    while block := os.read(reading, 1 << 16):
        if fatal:
            fatal.extend(block)
            continue
        text = before + block
        at = text.find(_FATAL)
        begin = len(text) if at < 0 else max(len(before), text.rfind(b"\n", 0, at) + 1)
        with contextlib.suppress(OSError):
            os.write(errors, text[len(before) : begin])
        fatal.extend(text[begin:])
        before = text[-len(_FATAL) + 1 :]


def _end_stuck(seconds: int) -> None:
    """Ends this process, and says where each of the others stands."""
    from jax._src import distributed  # as multihost_utils of JAX does

    state: Any = distributed.global_state
    try:
        try:
            state.client.key_value_set(f"stuck/{state.process_id}", watchdog.last_phase(), allow_overwrite=True)
            time.sleep(_SECONDS_TO_ANSWER)
            answers = state.client.key_value_dir_get("stuck/")
        except RuntimeError:  # of JAX: process 0 has ended, or its service does not answer
            where = f"this process had finished {watchdog.last_phase()}, process 0 has not answered"
        else:
            phases = {int(name.rpartition("/")[2]): f"had finished {phase}" for name, phase in answers}
            numbers = range(state.num_processes)
            where = ", ".join(f"process {i} {phases.get(i, 'has not answered')}" for i in numbers)
        _State.code = 1
        slow = "if it was at work, such as compiling, raise --config.mesh.stuck_after"
        _say(f"nothing was finished for {seconds} seconds: {where}; {slow}")
        time.sleep(_SECONDS_TO_LEAVE)
    finally:
        os._exit(1)


def _say(what: str) -> None:
    sys.stdout.flush()
    print(f"error: {what}; {_RESUME}", file=sys.stderr, flush=True)
