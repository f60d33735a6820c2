"""The two exceptions that reach a person as one line instead of a traceback, and what becomes of a failed write."""

import errno
import os


class InputError(ValueError):
    """Bad input, told in one line: where, which value, which rule, and the way out.

    Commands print it as ``error: ...`` and exit with code 2.
    """


class RunError(RuntimeError):
    """A run that cannot go on (such as a loss that stays non-finite), told in one line with the way out.

    Commands print it as ``error: ...`` and exit with code 1.
    """


DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def cannot_write(path: str | os.PathLike, error: OSError) -> InputError | RunError:
    """The exception to raise where a file or folder could not be written: RunError on a full disk, else InputError."""
    why = f"{path}: cannot be written ({error.strerror or error})"
    if error.errno in DISK_FULL:
        return RunError(f"{why}; make room, then run the same command again")
    return InputError(f"{why}; move away what stands there, or choose another folder")
