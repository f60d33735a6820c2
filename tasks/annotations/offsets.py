"""Units in which tools count offsets into a text, and their conversion to code points.

JavaScript counts UTF-16 units, of which an emoji has two. Some programs count bytes, or a line end CR LF as one.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

NAMES = {
    "code_points": "code points",
    "utf16": "UTF-16 units",
    "bytes": "bytes",
    "line_ends_as_one": "code points, with CR LF as one",
}


class Offsets(NamedTuple):
    """Offsets into one text. of_place: before each code point, and at the end. places: offset -> code point."""

    of_place: Sequence[int]
    places: Mapping[int, int]

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """[start, end) in code points; None where an offset is outside of the text, or inside of a character."""
        first, last = self.places.get(start), self.places.get(end)
        return None if first is None or last is None else (first, last)


@functools.lru_cache(maxsize=8)  # a text is asked for each of its spans
def offsets_of(text: str, unit: str) -> Offsets:
    """The offsets of a text in a unit of `NAMES`."""
    of_place = [0, *itertools.accumulate(_widths(text, unit))]
    # Of CR LF as one, the offset before LF is that before CR.
    return Offsets(of_place, {offset: place for place, offset in reversed(list(enumerate(of_place)))})


def differ(text: str, unit: str) -> bool:
    """Whether the unit's offsets into the text are not those of its code points."""
    return any(width != 1 for width in _widths(text, unit))


def _widths(text: str, unit: str) -> list[int]:
    if unit == "utf16":
        return [1 + (character > "\uffff") for character in text]
    if unit == "bytes":
        return [len(character.encode("utf-8", "surrogatepass")) for character in text]
    widths = [1] * len(text)
    if unit == "line_ends_as_one":
        for place in range(len(text) - 1):
            widths[place] -= text[place : place + 2] == "\r\n"
    return widths
