"""Which bytes of which files are read for one part of a corpus.

The files are put one behind the other, and their bytes cut into equal ranges. A document belongs to the range in which
it begins; files that cannot be cut (packed ones, those that are one document) belong to the range of their first byte.
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple


class Range(NamedTuple):
    """Bytes of a file: those from ``start`` to before ``end``."""

    start: int
    end: int
    size: int  # of the whole file

    def of(self, count: int) -> range:
        """The same share of ``count`` things, such as rows; those of all ranges of a file are all of them."""
        size = max(self.size, 1)
        return range(-(-count * self.start // size), -(-count * self.end // size) if self.size else count)

    def rest(self) -> "Range":
        """What comes behind it in the file."""
        return Range(self.end, self.size, self.size)


def whole(size: int) -> Range:
    return Range(0, size, size)


def of_part(sizes: Iterable[int], part: tuple[int, int]) -> list[Range | None]:
    """The range of each file that is read for ``part``: (2, 3) is the second of three. None: the file is left out."""
    number, count = part
    sizes = list(sizes)
    starts = [0, *itertools.accumulate(sizes)]
    low, high = (starts[-1] * n // count for n in (number - 1, number))
    if number == count:
        high += 1  # files without bytes at the end
    ranges: list[Range | None] = []
    for start, size in zip(starts, sizes, strict=False):
        begin, end = max(low - start, 0), min(high - start, size)
        is_here = begin < end or (not size and low <= start < high)
        ranges.append(Range(begin, end, size) if is_here else None)
    return ranges
