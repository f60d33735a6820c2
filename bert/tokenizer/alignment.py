"""Maps character spans of a text to the pieces of a tokenizer, and back.

Characters are code points; ends are exclusive. A span includes every piece that it overlaps, so a span that begins or
ends inside a piece is widened. Some characters are in no piece: an accent or vowel sign that the tokenizer strips stays
with its letter; blanks and others are included only between two pieces.
Axes: K piece.
"""

import unicodedata
from collections.abc import Sequence

import numpy as np


class Pieces:
    """Where the K pieces of one text stand in it, from ascending offsets; without the text, marks in none are lost."""

    def __init__(self, offsets: Sequence[tuple[int, int]], text: str = ""):
        offsets_K2 = np.array(offsets, np.int64).reshape(-1, 2)
        self.starts_K, self.ends_K = offsets_K2[:, 0], _behind_marks(offsets_K2, text)

    def __len__(self) -> int:
        return len(self.starts_K)

    def of_span(self, start: int, end: int) -> tuple[int, int] | None:
        """[first, last + 1) of the pieces that hold a character of the span; None where no piece does."""
        first = int(np.searchsorted(self.ends_K, start, side="right"))
        stop = int(np.searchsorted(self.starts_K, end, side="left"))
        return (first, stop) if first < stop else None

    def span_of(self, first: int, stop: int) -> tuple[int, int]:
        """[start, end) of the characters from the first piece to the last, ``stop`` exclusive."""
        return int(self.starts_K[first]), int(self.ends_K[stop - 1])

    def widening(self, start: int, end: int) -> tuple[int, int]:
        """Characters that a span gains before and behind when it goes to pieces and back; (0, 0) where it lies on
        their borders, blanks at its ends aside (those are lost, never gained)."""
        pieces = self.of_span(start, end)
        if pieces is None:
            return (0, 0)
        back = self.span_of(*pieces)
        return max(0, start - back[0]), max(0, back[1] - end)


def _behind_marks(offsets_K2: np.ndarray, text: str) -> np.ndarray:
    """int64 [K]: the pieces' ends, behind the marks that follow them and are in no piece."""
    ends_K = offsets_K2[:, 1].copy()
    if text.isascii():
        return ends_K
    limits_K = np.append(offsets_K2[1:, 0], len(text))[: len(ends_K)]
    for k in np.flatnonzero(ends_K < limits_K):
        for place in range(ends_K[k], limits_K[k]):
            if text[place].isspace():
                break
            if _is_mark(text[place]):  # perhaps behind a joiner
                ends_K[k] = place + 1
    return ends_K


def _is_mark(character: str) -> bool:
    """Whether a character is shown as part of the one before: accents, vowel signs, and what makes up some flags."""
    return unicodedata.category(character)[0] == "M" or "\U000e0020" <= character <= "\U000e007f"
