"""Commands: each file parses flags and calls the library."""

import os
import sys
from types import TracebackType
from typing import NoReturn

# XLA's lines for its developers, such as "Very slow compile?"; what concerns users is an exception, too. JAX reads it
# when it is imported.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def without_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A hook for exceptions that nothing catches: Ctrl-C is one line."""
    if issubclass(kind, KeyboardInterrupt):
        print("error: stopped by the keyboard", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def end_without_reader() -> NoReturn:
    """Ends the process where the reader of its output has ended, such as head: exit code 1, without a line."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at the end
    sys.exit(1)


if sys.argv[0] == "-m":  # `python -m launch.NAME` is importing its modules, and `flags.main` cannot catch Ctrl-C yet
    sys.excepthook = without_traceback
