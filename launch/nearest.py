"""The nearest of the known names to a mistyped one, for messages."""

import difflib
from collections.abc import Sequence


def nearest(name: str, known: Sequence[str], prefix: str = "", otherwise: str | None = None) -> str:
    """The end of a message about an unknown name: the nearest known one, else ``otherwise``, else all of them."""
    last_parts = {full.rsplit(".", 1)[-1]: full for full in known}
    close = difflib.get_close_matches(name, known, 1, 0.6) or [
        last_parts[match] for match in difflib.get_close_matches(name.rsplit(".", 1)[-1], list(last_parts), 1, 0.6)
    ]
    if close:
        return f"; did you mean {prefix}{close[0]}?"
    return otherwise or f"; known: {', '.join(prefix + other for other in known)}"
