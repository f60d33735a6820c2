"""A directory that is replaced as a whole: written beside its place, then renamed, an older one deleted last.

Beside NAME stand, while it is written, .NAME.unfinished (the new one) and, for the moment between two renames,
.NAME.replaced (the older one). A kill at any time leaves a whole directory under NAME or .NAME.replaced; `restore`
brings the latter back.
"""

import contextlib
import pathlib
import shutil
import tempfile
from collections.abc import Collection, Iterator

from absl import logging

from bert.errors import InputError


def check_replaceable(target: pathlib.Path, ours: Collection[str]) -> None:
    """Refuses a file, a directory that holds other names than ``ours``, and a place where none can be made.

    Raises:
      InputError: nobody's files are deleted.
    """
    try:
        if target.exists() and not target.is_dir():
            raise InputError(f"{target}: is a file; choose a directory")
        others = sorted(entry.name for entry in target.iterdir() if entry.name not in ours) if target.exists() else []
        if others:
            shown = ", ".join(others[:3])
            raise InputError(f"{target}: holds other files ({shown}); choose a new or an empty directory")
        # What a file system lets one do is known when it is done: a directory is made where `replacing` will, and goes.
        beside = next((parent for parent in target.parents if parent.exists()), target)
        pathlib.Path(tempfile.mkdtemp(dir=beside)).rmdir()
    except OSError as error:
        raise _cannot_be_made(target, error) from None


def _cannot_be_made(target: pathlib.Path, error: OSError) -> InputError:
    return InputError(f"{target}: cannot be made or replaced ({error.strerror}); choose another directory")


def restore(target: pathlib.Path, needed: Collection[str]) -> None:
    """Brings back the older directory where a process was killed between the two renames.

    Args:
      needed: names without which a directory is not whole.

    Raises:
      InputError: the file system does not let it.
    """
    older = _older(target)
    try:
        killed = not target.exists() and all((older / name).is_file() for name in needed)
    except OSError:  # no such place can be; whoever reads or writes there says so
        return
    if killed:
        try:
            older.rename(target)
        except OSError as error:
            raise InputError(
                f"{target}: a process was killed while it replaced this directory, and {older.name} beside it cannot "
                f"be renamed back ({error.strerror}); do that by hand"
            ) from error
        logging.warning("%s: a process was killed while it replaced this directory; the older one is back", target)


@contextlib.contextmanager
def replacing(target: pathlib.Path) -> Iterator[pathlib.Path]:
    """An empty directory to write into; it becomes ``target`` at the end, or goes where anything fails.

    Raises:
      InputError: it cannot be made or written (a full disk, say); one that is raised within names the directory by the
        name that it was to get.
    """
    new = target.with_name(f".{target.name}.unfinished")  # a killed process leaves it; the next one clears it away
    shutil.rmtree(new, ignore_errors=True)
    absent = [parent for parent in target.parents if not parent.exists()]  # the nearest first
    try:
        new.mkdir(parents=True)
    except OSError as error:
        raise _cannot_be_made(target, error) from None
    try:
        yield new
        _put_in_place(new, target)
    except BaseException as error:
        shutil.rmtree(new, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty, or gone already
            for parent in absent:
                parent.rmdir()
        if isinstance(error, OSError):
            why = error.strerror or error
            raise InputError(f"{target}: cannot be written ({why}); make room, or choose another directory") from None
        if isinstance(error, InputError):
            raise InputError(str(error).replace(str(new), str(target))) from None
        raise


def _put_in_place(new: pathlib.Path, target: pathlib.Path) -> None:
    if not target.exists():
        new.rename(target)
        return
    older = _older(target)
    shutil.rmtree(older, ignore_errors=True)
    target.rename(older)
    try:
        new.rename(target)
    except BaseException:
        if not target.exists():  # unless a reader has restored it already
            older.rename(target)
        raise
    shutil.rmtree(older, ignore_errors=True)


def _older(target: pathlib.Path) -> pathlib.Path:
    return target.with_name(f".{target.name}.replaced")
