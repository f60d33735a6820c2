"""Errors that are shown as one line: the two exceptions, checks of settings, and escaping of foreign text."""

import difflib
import errno
import numbers
import operator
import os
import reprlib
import unicodedata
from collections.abc import Callable, Collection, Iterable
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxlevel = 1  # what is nested deeper could make a line of any length
_JOINERS = "\u200c\u200d"  # within words of Persian and Hindi, and within emoji


class InputError(ValueError):
    """Bad input, in one line: where, which value, which rule, and the way out. Commands exit with code 2."""


class RunError(RuntimeError):
    """A run that cannot go on, in one line with the way out. Commands exit with code 1."""


def check_choice(name: str, value: Any, allowed: Collection[str], *, hint: str = "") -> None:
    """Raises InputError where a setting is none of the values allowed; the message suggests the nearest one."""
    if value not in allowed:
        near = difflib.get_close_matches(str(value), allowed, n=1)
        guess = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"{name} is {value!r:.100}; it must be one of {', '.join(allowed)}{guess}{hint}")


def check_range(
    name: str,
    value: Any,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    whole: bool = False,
    hint: str = "",
) -> None:
    """Raises InputError where a setting is no number within the bounds (NaN is within none), or not whole.

    ``hint`` ends the message, such as "; BERT uses 0.15".
    """
    bounds: dict[str, tuple[Callable[[Any, Any], bool], float | None]] = {
        "at least": (operator.ge, at_least),
        "above": (operator.gt, above),
        "at most": (operator.le, at_most),
        "below": (operator.lt, below),
    }
    bounds = {words: bound for words, bound in bounds.items() if bound[1] is not None}
    kind = numbers.Integral if whole else numbers.Real
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if not fits or not all(compare(value, limit) for compare, limit in bounds.values()):
        rule = " and ".join(f"{words} {limit:,}" for words, (_, limit) in bounds.items())
        what = "a whole number, " if whole else "" if fits else "a number, "
        raise InputError(f"{name} is {value!r:.100}; it must be {what}{rule}{hint}")


def printable(text: str, *, lines: bool = False) -> str:
    """The text as one line that a terminal shows as it is: line ends, escape codes and the like are spelled out.

    Names come from whoever made a file: one with a line end in it could pass for a line of ours. ``lines``: the text
    is several lines, whose ends (and tabs) stay.
    """
    harmless = _JOINERS + "\n\t" * lines
    return "".join(c if c in harmless or not _steers(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def _steers(character: str) -> bool:
    """Whether it is a control or format character, an unpaired surrogate, or the end of a line or paragraph."""
    return not character.isprintable() and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def short_repr(value: Any) -> str:
    """The `repr` of a value from a file: a line without control characters, cut where long."""
    return _SHORT.repr(value)


def short_text(text: str) -> str:
    """The same of a text, without quotes around it."""
    return short_repr(text)[1:-1]


def listed(names: Iterable[str], most: int = 20) -> str:
    """The first ``most`` names with commas between them, long ones cut, and how many more there are."""
    short = [name if len(name) <= 100 else f"{name[:100]}..." for name in names]
    return ", ".join(short[:most]) + (f" and {len(short) - most:,} more" if len(short) > most else "")


def cannot_write(path: str | os.PathLike[str], error: OSError) -> InputError | RunError:
    """The exception to raise where a file or folder could not be written: RunError on a full disk, else InputError."""
    why = f"{path}: cannot be written ({error.strerror or error})"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return RunError(f"{why}; make room, then run the same command again")
    return InputError(f"{why}; move away what stands there, or choose another folder")
