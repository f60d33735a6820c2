"""Windows as far as Linux can play it: `pretend`, in a fresh process, before the code of this project is imported.

Our files see an `os`, `signal`, `select` and `platform` that lack what Windows lacks, and cannot import modules that it
does not have. No file is renamed or deleted while this process has it open or mapped, no file is renamed over another,
a locked file cannot be read, and files are never opened in the encoding of the system. Other packages are left alone,
for they have code of their own for Windows: neither that nor the system itself is played.
"""

import builtins
import errno
import os
import pathlib
import platform
import select
import signal
import stat
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

CHECKOUT = pathlib.Path(__file__).resolve().parents[1]
OURS = tuple(str(CHECKOUT / name) + os.sep for name in ("bert", "launch", "tasks", "configs"))
ABSENT = ("fcntl", "resource", "termios", "pwd", "grp", "pty", "tty", "curses", "readline", "syslog", "posix")
# What the documentation of Python does not mark as "Availability: Unix".
_OS = """
DirEntry F_OK O_APPEND O_CREAT O_EXCL O_RDONLY O_RDWR O_TRUNC O_WRONLY PathLike R_OK SEEK_CUR SEEK_END SEEK_SET W_OK
X_OK _exit abort access altsep chdir chmod close cpu_count curdir devnull dup dup2 environ error extsep fdopen fsdecode
fsencode fspath fstat fsync ftruncate get_terminal_size getcwd getenv getlogin getpid getppid isatty kill linesep link
listdir lseek lstat makedirs mkdir open pardir path pathsep pipe putenv read readlink remove removedirs rename renames
replace rmdir scandir sep stat stat_result strerror symlink system times truncate umask unlink unsetenv urandom utime
waitpid walk write
"""
PRESENT = {
    "os": set(_OS.split()),
    "signal": {"SIGABRT", "SIGINT", "SIGTERM", "SIG_DFL", "SIG_IGN", "Signals", "getsignal", "raise_signal", "signal"},
    "select": {"select"},
    "platform": set(dir(platform)),
}
REAL = {module.__name__: module for module in (os, signal, select, platform)}
REPLACED = {"os": {"name": "nt"}, "platform": {"system": lambda: "Windows"}}


class _Lacking(types.ModuleType):
    """A module without what Windows does not have."""

    def __getattr__(self, name: str) -> Any:
        module = self.__name__
        if name in REPLACED.get(module, ()):
            return REPLACED[module][name]
        if name in PRESENT[module] or name.startswith("__"):
            return getattr(REAL[module], name)
        raise AttributeError(f"Windows has no {module}.{name}")


def pretend() -> None:
    warnings.filterwarnings("error", category=EncodingWarning, module=r"(bert|launch|tasks|configs)\b")
    usual, lacking = builtins.__import__, {name: _Lacking(name) for name in REAL}

    def imported(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if (globals or {}).get("__file__", "").startswith(OURS):
            if name in ABSENT:
                raise ModuleNotFoundError(f"Windows has no {name}")
            if name in lacking:
                return lacking[name]
        return usual(name, globals, locals, fromlist, level)

    builtins.__import__ = imported
    os.rename = _refusing_what_exists(os.rename)
    sys.addaudithook(_watch)


def _refusing_what_exists(rename: Callable[..., None]) -> Callable[..., None]:
    def new(source: Any, target: Any, **where: Any) -> None:
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "Windows renames nothing over another", str(target))
        rename(source, target, **where)

    return new


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event in ("os.remove", "os.rmdir", "os.rename"):
        paths, folders = (arguments[:2], arguments[2:]) if event == "os.rename" else (arguments[:1], arguments[1:])
        for path, folder in zip(paths, folders, strict=True):
            place = os.path.join("" if folder == -1 else os.readlink(f"/proc/self/fd/{folder}"), os.fsdecode(path))
            _refuse_in_use(os.path.abspath(place))
    elif event == "open" and arguments[1] and "r" in arguments[1] and isinstance(arguments[0], str | os.PathLike):
        _refuse_locked(os.fspath(arguments[0]))


def _refuse_in_use(place: str) -> None:
    used = {line.split(None, 5)[5].rstrip("\n") for line in _lines("/proc/self/maps") if "/" in line}
    for number in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISREG(os.stat(f"/proc/self/fd/{number}").st_mode):
                used.add(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:  # closed meanwhile
            continue
    for file in used:
        if file == place or file.startswith(place + os.sep):
            raise PermissionError(errno.EACCES, "Windows does not move what is in use", file)


def _refuse_locked(path: str) -> None:
    if os.path.basename(path) in ("mark", "lock", "tracker.lock") and os.path.exists(path):
        inode = f":{os.stat(path).st_ino} "
        if any("FLOCK" in line and inode in line for line in _lines("/proc/locks")):
            raise PermissionError(errno.EACCES, "Windows does not read what is locked", path)


def _lines(path: str) -> list[str]:
    descriptor = os.open(path, os.O_RDONLY)
    with os.fdopen(descriptor, encoding="utf-8", errors="surrogateescape") as file:
        return list(file)
