"""Commands: each file parses flags and calls the library."""

import sys
from types import TracebackType


def _without_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        print("error: stopped by the keyboard", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


if sys.argv[0] == "-m":  # `python -m launch.NAME` is importing its modules, and `flags.main` cannot catch Ctrl-C yet
    sys.excepthook = _without_traceback
