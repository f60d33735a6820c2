"""`TableCell`, a value and its place in a file. `TableCell.error` words every message about a bad value.

A message is "FILE:LINE: column: value rule; way out", such as "my.csv:3: stars: 'many' is no number; write one".
For files without lines, it begins with "FILE: row N: column: ".
"""

from typing import Any, NamedTuple

from bert import surrogates
from bert.errors import InputError

SHOWN = 60  # characters of a value in a message
NO_LABEL = (-1, -100)  # numbers in place of a label, as in the tests of GLUE, and as the losses of PyTorch leave it out


def short(value: Any) -> str:
    """A value as messages show it: on one line, and truncated."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."


def check_characters(name: str, place: str) -> None:
    """Refuses an unpaired surrogate in the name of a class or tag: no file could hold it."""
    if surrogates.contains(name):
        raise InputError(f"{place}: {short(name)} has an unpaired surrogate; write the whole character")


class TableCell(NamedTuple):
    """A value and its place, "FILE:LINE: column" or the like."""

    place: str
    value: Any

    def error(self, rule: str) -> InputError:
        """The exception to raise; ``rule`` says what is wrong and the way out: "is no number; write one"."""
        return InputError(f"{self.place}: {short(self.value)} {rule}")

    def part(self, value: Any) -> "TableCell":
        """A value inside of this one, at the same place."""
        return TableCell(self.place, value)
