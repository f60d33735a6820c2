"""Finds rows with equal texts, so that a split keeps them in one part.

Otherwise, a model would be scored on texts that it was trained on. Two texts are equal if they differ only in letter
case, in the number and kind of blanks, or in the composition of accented letters. The two texts of a pair may be
swapped.
"""

import unicodedata
from collections.abc import Hashable, Iterable, Sequence

import numpy as np


def key_of(texts: Iterable[str]) -> Hashable:
    """A key that is the same for equal texts, or pairs of texts."""
    return tuple(sorted(unicodedata.normalize("NFC", " ".join(text.split()).casefold()) for text in texts))


def first_of_equal(keys: Iterable[Hashable]) -> np.ndarray:
    """int64 [N]: for each row the index of the first one with the same key; its own where there is none before."""
    first: dict[Hashable, int] = {}
    return np.array([first.setdefault(key, i) for i, key in enumerate(keys)], np.int64)


def count_shared(train: Iterable[Hashable], validation: Sequence[Hashable]) -> int:
    """The number of validation keys that are also in the training part."""
    known = set(train)
    return sum(key in known for key in validation)
