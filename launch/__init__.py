"""Commands: each file parses flags and calls the library."""

import sys
from types import TracebackType


def _without_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Ctrl-C while modules are still being imported, before `flags.main` can catch it."""
    if issubclass(kind, KeyboardInterrupt):
        print("error: stopped by the keyboard", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _without_traceback
