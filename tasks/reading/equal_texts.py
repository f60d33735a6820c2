"""Texts that stand in a file more than once: which rows share one, so that a split keeps them in one part.

Two texts are equal where they differ at most in letter case, in the number and kind of blanks, or in how an accented
letter is composed; the texts of a pair may stand in either order. A text that is found in both parts of a split is
scored as if it were new, though the model has seen it.
"""

import unicodedata
from collections.abc import Hashable, Iterable, Sequence

import numpy as np


def key_of(texts: Iterable[str]) -> Hashable:
    """The same for equal texts: of one text, or of the two of a pair."""
    return tuple(sorted(unicodedata.normalize("NFC", " ".join(text.split()).casefold()) for text in texts))


def first_of_equal(keys: Iterable[Hashable]) -> np.ndarray:
    """int64 [N]: for each row the index of the first one with the same key; its own where there is none before."""
    first: dict[Hashable, int] = {}
    return np.array([first.setdefault(key, i) for i, key in enumerate(keys)], np.int64)


def count_shared(train: Iterable[Hashable], validation: Sequence[Hashable]) -> int:
    """How many of the validation part's keys the training part holds, too."""
    known = set(train)
    return sum(key in known for key in validation)
