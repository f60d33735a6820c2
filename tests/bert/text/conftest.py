"""The small vocabularies that the tests of this folder share."""

import pytest

# Composed and decomposed characters are written as escapes, for they look alike.
ENTRIES = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] hello world ! ' , . [ ] mask un ##aff ##able naive na\u00efve cafe one two line note "
    "book notebook \u4e2d \u56fd han ##gul \uac00 \u1100\u1161 A a ##b lush ##i a\u0301 \u00e1 ##\u0301 new york ##s s don "
    "t E e ##1 hacia hac\u00eda 9 / 7 1992"
).split(" ")


@pytest.fixture(scope="session")
def entries() -> list[str]:
    """55 entries with cased and uncased, composed and decomposed forms side by side; "hello" has id 5."""
    return list(ENTRIES)
