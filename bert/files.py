"""Atomic replacement of files and folders: they appear under their names only when complete. Locks.

An output is written in a workspace next to its target, a new folder .NAME.unfinished-RANDOM that has

  mark   names the target; the writer holds a lock on it
  new    the output
  old    the folder that it replaces, from the first of two renames on

A workspace is deleted only if its mark names the target and its writer is gone; other folders are never touched. After
a kill at any moment, the whole older or newer output is there under its name, or as ``old``, which
`recover_interrupted_replace` renames back.
"""

import contextlib
import errno
import glob
import json
import os
import pathlib
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import filelock
from absl import logging

from bert import surrogates
from bert.errors import InputError, RunError, cannot_write

Finished = Callable[[pathlib.Path], bool]


@contextlib.contextmanager
def lock(path: pathlib.Path, busy: str) -> Iterator[bool]:
    """Holds a lock on a file until the block or the process ends; yields whether the file is new.

    ``busy``: the message where another process holds it. Raises OSError where it cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not os.path.lexists(path)
    if not is_new and not stat.S_ISREG(path.lstat().st_mode):
        raise InputError(f"{path}: is not a plain file, so it cannot serve as a lock; move it away")
    try:
        held = _file_lock(path).acquire()
    except filelock.Timeout:
        raise InputError(busy) from None
    with held:
        yield is_new


def _file_lock(path: pathlib.Path, **options: Any) -> filelock.BaseFileLock:
    """A lock of the operating system on a file, which keeps its text; it ends with its holder, however that ends.

    Taking it raises `filelock.Timeout` where another holds it, another OSError where the file system has no locks.
    """
    return filelock.FileLock(path, blocking=False, preserve_lock_file=True, **options)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON with a line end. Unpaired surrogates, which a file name may hold and UTF-8 cannot, are escaped."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return (json.dumps(value, indent=indent) if surrogates.contains(text) else text) + "\n"


def write(path: pathlib.Path, text: str | Iterable[str]) -> None:
    """Writes a text file (UTF-8) that has its name only when it is complete; makes its folder. OSError where it cannot.

    The target of a link is replaced, and keeps its mode and owner. Pipes and devices are written into, each of several
    texts when it is there, and so is a file in a folder where no other can be created.
    """
    contents, before = (part.encode() for part in ([text] if isinstance(text, str) else text)), None
    with contextlib.suppress(FileNotFoundError):
        before = os.stat(path)
    if fd := standard_stream(path):
        sys.stdout.flush()  # /dev/stdout may be a file that holds what was printed before
        _write_each(os.dup(fd), contents)
    elif before and not stat.S_ISREG(before.st_mode):
        _write_each(path, contents)
    else:
        _replace(pathlib.Path(os.path.realpath(path)), b"".join(contents), before)


def _write_each(path: pathlib.Path | int, contents: Iterable[bytes]) -> None:
    with open(path, "wb") as stream:
        for content in contents:
            stream.write(content)
            stream.flush()


def standard_stream(path: pathlib.Path) -> int | None:
    """1 or 2 where this is the process's standard output or error, which may be a file; else None."""
    try:
        return next((fd for fd in (1, 2) if os.path.samestat(os.fstat(fd), os.stat(path))), None)
    except OSError:  # there is no such file, or the stream is closed
        return None


def _replace(target: pathlib.Path, content: bytes, before: os.stat_result | None) -> None:
    try:
        with _workspace(target) as place:
            with open(place / "new", "xb") as file:
                if before and hasattr(os, "fchown"):  # first, for others may not read what is written
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                    os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode))
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(place / "new", target)  # closed, for Windows
    except OSError as error:  # a read-only or sticky folder, another's file, a file that is mounted by itself
        if not before or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY):
            raise
        with open(target, "r+b") as file:
            file.write(content)
            file.truncate()


@contextlib.contextmanager
def replacing_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A path to write a file at, which becomes ``path`` at the end, and is deleted where anything fails.

    The target of a link is replaced, and keeps its mode. Raises InputError where something else than a file stands
    there or none can be written, RunError on a full disk.
    """
    target = pathlib.Path(os.path.realpath(path))
    try:
        if os.path.lexists(target) and not target.is_file():
            raise InputError(f"{path}: is no plain file; choose another name")
        with _workspace(target) as place:
            yield place / "new"
            with open(place / "new", "r+b") as file:
                os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, place / "new")
            os.replace(place / "new", target)
    except OSError as error:
        raise cannot_write(path, error) from None


def free_name(path: pathlib.Path) -> pathlib.Path:
    """The path, or a free one beside it where it exists."""
    while os.path.lexists(path):
        path = path.with_name(f"{path.name}-again")
    return path


def names_in(folder: pathlib.Path) -> set[str]:
    """Names of what is in a folder, and of what is in the folders there, such as "a" and "b/c"; empty: no folder."""
    entries = list(folder.iterdir()) if folder.is_dir() else []
    inner = [path for entry in entries if entry.is_dir() and not entry.is_symlink() for path in entry.iterdir()]
    outer = {path.parent for path in inner}
    return {path.relative_to(folder).as_posix() for path in (*inner, *entries) if path not in outer}


def check_replaceable(target: pathlib.Path, ours: Collection[str]) -> None:
    """Raises InputError for a file, a folder with anything but files ``ours``, and a place where none can be made.

    ``ours``: as of `names_in`.
    """
    try:
        if os.path.lexists(target) and not target.is_dir():
            what = "link to itself" if target.is_symlink() else "file"
            raise InputError(f"{target}: is a {what}; choose a directory")
        if os.path.ismount(target):  # it could be neither renamed nor removed
            raise InputError(f"{target}: is a mount point, which cannot be replaced; choose a directory inside it")
        paths = {name: target / name for name in names_in(target)}
        others = sorted(n for n, p in paths.items() if n not in ours or not (p.is_symlink() or p.is_file()))
        if others:
            what = f"holds other files ({', '.join(others[:3])})"
            raise InputError(f"{target}: {what}; choose a new or an empty directory")
        # Only trying shows what a file system permits: a folder is created where `replacing` will, and removed.
        beside = next((parent for parent in target.parents if parent.exists()), target)
        pathlib.Path(tempfile.mkdtemp(dir=beside)).rmdir()
    except OSError as error:
        raise _cannot_be_made(target, error) from None


def _cannot_be_made(target: pathlib.Path, error: OSError) -> InputError:
    return InputError(f"{target}: cannot be made or replaced ({error.strerror}); choose another directory")


@contextlib.contextmanager
def replacing(target: pathlib.Path, *, finished: Finished | None = None, busy: str = "") -> Iterator[pathlib.Path]:
    """An empty folder to write into, which becomes ``target`` at the end, and is deleted where anything fails.

    ``finished``: whether a folder that could not be put in place (RunError) is complete; the next call yields it.
    ``busy``: the message for a second writer; where it is empty there may be several, and the last one wins.
    Errors from within name the target instead of the workspace.
    """
    new = None
    try:
        with _workspace(target, finished, busy) as place:
            (place / "new").mkdir(exist_ok=True)
            new = place / "new"
            yield new
            _put_in_place(new, target)
    except InputError as error:
        raise InputError(str(error).replace(str(new), str(target)) if new else str(error)) from None
    except BrokenPipeError:  # of our standard output
        raise
    except OSError as error:
        if new is None:
            raise _cannot_be_made(target, error) from None
        why = error.strerror or error
        if finished and finished(new):
            way_out = "rename it by hand, or mend that and run again: no work will be repeated"
            raise RunError(f"{new}: finished, but it cannot replace {target} ({why}); {way_out}") from error
        raise cannot_write(target, error) from None


def _put_in_place(new: pathlib.Path, target: pathlib.Path) -> None:
    old = new.with_name("old")
    if target.exists():
        for path in (target, *(entry for entry in target.iterdir() if not entry.is_symlink())):
            if (new / path.relative_to(target)).exists():
                shutil.copymode(path, new / path.relative_to(target))
        target.rename(old)
    try:
        new.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise


def recover_interrupted_replace(target: pathlib.Path, needed: Collection[str], *, clear: bool = False) -> None:
    """Restores an older folder with the names ``needed`` where a process was killed between the two renames.

    ``clear``: deletes what else killed processes left, except new folders with these names.
    """
    killed = f"{target}: a process was killed while it replaced this"
    for place, is_left in _workspaces(target):
        old, new = (all((place / part / name).is_file() for name in needed) for part in ("old", "new"))
        deadline = time.monotonic() + 1
        while old and not is_left and not target.exists() and time.monotonic() < deadline:
            time.sleep(0.01)  # an active process is between the renames for a moment only
        if old and is_left and not target.exists():
            try:
                (place / "old").rename(target)
            except OSError as error:
                why = f"{killed}, and {place / 'old'} cannot be renamed back ({error.strerror})"
                raise InputError(f"{why}; do that by hand") from error
            logging.warning("%s; the older directory is restored", killed)
        if clear and is_left and not new:
            _clear(place, target)


def workspace_prefix(target: pathlib.Path) -> str:
    """The beginning of its workspaces' names."""
    return f".{target.name[:40]}.unfinished-"


def _mark(target: pathlib.Path) -> bytes:
    """The content of the marks in its workspaces."""
    return b"bert-jax is writing " + os.fsencode(target.name) + b"\n"


@contextlib.contextmanager
def _workspace(target: pathlib.Path, finished: Finished | None = None, busy: str = "") -> Iterator[pathlib.Path]:
    """A new workspace, with the ``finished`` folder of a killed process where there is one; all others are cleared."""
    absent = [parent for parent in target.parents if not parent.exists()]  # the nearest first
    place = target.with_name(workspace_prefix(target) + secrets.token_hex(8))
    # Locked before it has its text; and all who may see it may lock it, to find out whether the writer is gone.
    lock = _file_lock(place / "mark", mode=0o666, on_acquired=lambda mark: os.write(mark, _mark(target)))
    try:
        if absent:
            target.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir()
        try:
            lock.acquire()
        except OSError:  # there are file systems without locks
            (place / "mark").write_bytes(_mark(target))
        try:
            for other, is_left in _workspaces(target, but=place):
                if busy and not is_left:
                    raise InputError(busy)
                if is_left and finished and finished(other / "new") and not (place / "new").exists():
                    (other / "new").rename(place / "new")
                if is_left:
                    _clear(other, target)
            yield place
        finally:
            stays = finished is not None and finished(place / "new")
            if not stays:
                _clear(place, target)
            lock.release()
            if not stays:  # Windows deletes no file that is open
                _clear(place, target)
    finally:
        for folder in (place, *absent):
            with contextlib.suppress(OSError):  # not empty, or gone already
                folder.rmdir()


def _workspaces(target: pathlib.Path, but: pathlib.Path | None = None) -> Iterator[tuple[pathlib.Path, bool]]:
    """The workspaces of a target, and whether the writer is gone; then it is locked until the next iteration."""
    for place in sorted(target.parent.glob(f"{glob.escape(workspace_prefix(target))}*")):
        mark, lock = place / "mark", None
        try:
            if place == but or place.is_symlink() or mark.read_bytes() != _mark(target):
                continue
            lock = _file_lock(mark).acquire()
        except filelock.Timeout:
            is_left = False
        except OSError as error:
            # On Windows, a lock keeps others from reading. Elsewhere it is unknown whether the writer is gone: there
            # are no locks, or the mark is another user's. Where nothing can be changed, what tries to will say so.
            if error.errno != errno.EROFS and (os.name, error.errno) != ("nt", errno.EACCES):
                continue
            is_left = error.errno == errno.EROFS
        else:
            is_left = True
        with lock or contextlib.nullcontext():
            yield place, is_left
        with contextlib.suppress(OSError):  # gone already
            if lock and os.listdir(place) == ["mark"]:  # Windows deletes no file that is open
                shutil.rmtree(place, ignore_errors=True)


def _clear(place: pathlib.Path, target: pathlib.Path) -> None:
    """Deletes a workspace, its mark last, unless it holds the only folder; the next writer retries what fails."""
    if target.exists() or not (place / "old").exists():
        for part in ("new", "old", ""):
            shutil.rmtree(place / part, ignore_errors=True)
