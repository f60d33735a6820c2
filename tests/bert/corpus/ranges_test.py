import random
import re

import pytest

from bert.corpus import corpus, ranges, text_files
from bert.corpus.corpus import Corpus
from bert.errors import InputError


def test_the_parts_of_files_are_all_of_them_and_do_not_overlap():
    """Bytes, and the rows that they stand for; files without bytes belong to one part, too."""
    rng = random.Random(0)
    for _ in range(200):
        sizes = rng.choices([0, 1, 7, 100, 1001], k=rng.randint(1, 6))
        count = rng.randint(1, 9)
        parts = [ranges.of_part(sizes, (number, count)) for number in range(1, count + 1)]
        for size, found in zip(sizes, zip(*parts, strict=True), strict=True):
            here = [one for one in found if one]
            assert [byte for one in here for byte in range(one.start, one.end)] == list(range(size))
            assert [row for one in here for row in one.of(13)] == list(range(13))
            assert sum(one.start == 0 for one in here) == 1


def test_what_is_wrong_in_a_part_of_a_file_is_told_with_its_place(write, monkeypatch):
    """Of text the byte and the line of the file; of jsonl, a line of the part."""
    monkeypatch.setattr(text_files, "BLOCK", 256)
    monkeypatch.setattr(corpus, "SAMPLE_CHARS", 10)
    monkeypatch.setattr(corpus, "OWN_LAYOUT_CHARS", 5)
    text, row = b"A keeper and a lamp.\n\n" * 99, b'{"text": "a"}\n' * 99
    for path, said in (
        (write("a.txt", text + b"caf\xe9\n" + text), f"byte {len(text) + 3} (line 199): 0xE9"),
        (write("a.jsonl", row + b"{\n" + row), ", from byte 938 on, line 33: not JSON"),
    ):
        for number in (1, 3):
            assert list(Corpus(str(path), part=(number, 3)).sections())
        with pytest.raises(InputError, match=re.escape(said)):
            list(Corpus(str(path), part=(2, 3)).sections())
