"""Signals that C code raises in its own thread, such as SIGABRT and SIGBUS: one line instead of a dump."""

import ctypes
import os
import signal
from collections.abc import Callable
from typing import Any

_kept: dict[int, Any] = {}  # C calls them as long as the process lives


def on(name: str, act: Callable[[], None]) -> None:
    """Calls ``act`` in the thread that the signal strikes; if it returns, the signal has its usual effect.

    Python calls a handler of its own only when the call of C code returns, which never happens here. Without effect
    where the system lacks the signal, and on Windows.
    """
    number = getattr(signal, name, None)
    if number is None or os.name == "nt":
        return
    libc = ctypes.CDLL(None)

    def strike(_: int) -> None:
        libc.signal(int(number), None)  # the default
        act()
        getattr(libc, "raise")(int(number))  # takes effect when this returns

    _kept[number] = ctypes.CFUNCTYPE(None, ctypes.c_int)(strike)
    libc.signal(int(number), _kept[number])
