"""The small vocabulary and the small texts that the tests of this folder share."""

import pytest

from tests.bert.builders import SPECIAL, WORDS

# Look-alikes are written as escapes: composed and decomposed characters are different entries.
ENTRIES = """
    [PAD] [UNK] [CLS] [SEP] [MASK] hello world ! ' , . [ ] mask un ##aff ##able naive na\u00efve cafe one two line note
    book notebook \u4e2d \u56fd han ##gul \uac00 \u1100\u1161 A a ##b lush ##i a\u0301 \u00e1 ##\u0301 new york ##s s
    don t E e ##1 hacia hac\u00eda 9 / 7 1992
"""


@pytest.fixture(scope="session")
def entries() -> list[str]:
    """55 entries with cased and uncased, composed and decomposed forms side by side; "hello" has id 5."""
    return ENTRIES.split()


@pytest.fixture
def write(tmp_path):
    """write("a/b.txt", content) -> path of a new file below the test's folder; texts become UTF-8 as they are."""

    def one(name: str, content: str | bytes):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return one


@pytest.fixture
def vocab(write):
    return str(write("vocab/vocab.txt", "\n".join([*SPECIAL, *WORDS, "."])))
