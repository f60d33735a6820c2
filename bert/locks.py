"""One writer at a time: an exclusive lock on a file, let go when the process ends, however it ends."""

import contextlib
import fcntl
import pathlib
from collections.abc import Iterator

from bert.errors import InputError


@contextlib.contextmanager
def held(path: pathlib.Path, busy: str) -> Iterator[None]:
    """Holds the lock for as long as the block runs; the file stays.

    Raises:
      InputError: another process holds it; its text is ``busy``.
      OSError: the file or its folder cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(busy) from None
        yield
