"""Drops the messages that Orbax's threads print after the first error.

An array that cannot be read or written ends Orbax's event loop. Then each of the other arrays reports that the loop is
closed: dozens of tracebacks from TensorStore's threads and from asyncio, some of them much later.
"""

import logging
import sys
from typing import Any


def drop() -> None:
    """From now on, to the end of the process; a second call changes nothing."""
    before = sys.unraisablehook
    if getattr(before, "drops_late_complaints", False):
        return

    def hook(complaint: Any) -> None:
        code = getattr(complaint.object, "cr_code", None)
        of_orbax = code is not None and "orbax" in code.co_filename
        if not of_orbax and str(complaint.exc_value) != "Event loop is closed":
            before(complaint)

    hook.drops_late_complaints = True  # type: ignore[attr-defined]
    sys.unraisablehook = hook
    logging.getLogger("asyncio").addFilter(_is_no_late_complaint)


def _is_no_late_complaint(record: logging.LogRecord) -> bool:
    return "exception was never retrieved" not in record.getMessage()
