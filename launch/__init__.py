"""Commands: each file parses flags and calls the library."""

import sys
from types import TracebackType


def without_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A hook for exceptions that nothing catches: Ctrl-C is one line."""
    if issubclass(kind, KeyboardInterrupt):
        print("error: stopped by the keyboard", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


if sys.argv[0] == "-m":  # `python -m launch.NAME` is importing its modules, and `flags.main` cannot catch Ctrl-C yet
    sys.excepthook = without_traceback
