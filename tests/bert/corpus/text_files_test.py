"""Lines of files: their ends, how much a packed one unpacks to, encodings of two bytes a character."""

import gzip
import itertools
import os

import pytest

from bert.corpus import text_files
from bert.errors import InputError


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_lines_with_their_own_ends_are_the_text(tmp_path, monkeypatch, block):
    """In blocks of any size; each line has one end, and they are those that are translated otherwise."""
    monkeypatch.setattr(text_files, "BLOCK", block)
    path = tmp_path / "a.txt"
    for parts in itertools.product(["a", "\r", "\n"], repeat=5):
        path.write_bytes("".join(parts).encode())
        lines = list(text_files.read_lines(path, "utf-8", False))
        assert "".join(lines) == "".join(parts)
        plain = [line.removesuffix("\r\n").removesuffix("\n").removesuffix("\r") for line in lines]
        assert plain == [line.removesuffix("\n") for line in text_files.read_lines(path, "utf-8")]


def test_what_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path, monkeypatch):
    """After a bounded part of it; text is not."""
    monkeypatch.setattr(text_files, "MOST_UNPACKED", 1 << 20)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"good,1\nbad,0\n" * 400_000))
    given: list[int] = []
    with pytest.raises(InputError, match=r"a\.csv\.gz: .* 100 times"):
        given.extend(map(len, text_files.read_lines(path, "utf-8")))
    assert sum(given) < 101 * path.stat().st_size + text_files.BLOCK
    path.write_bytes(gzip.compress("".join(f"line {i * i % 9973}\n" for i in range(200_000)).encode()))
    assert sum(1 for _ in text_files.read_lines(path, "utf-8")) == 200_000


@pytest.mark.parametrize("text", ["text,label\ngood,1\n", "text,label\ngr\u00fcn,1\n", "\u5f88\u597d,1\n\u574f,0\n"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32-le", "utf-32-be", "utf-32"])
def test_encodings_of_two_bytes_are_known_by_them(tmp_path, text, encoding):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    assert text_files.wide_encoding(path) == encoding
    for other in ("utf-8", "cp1252"):
        path.write_bytes(text.encode(other, "replace"))
        assert text_files.wide_encoding(path) == ""


@pytest.mark.parametrize("encoding", ["cp1252", "iso8859-1", "utf-16"])
def test_utf8_with_its_mark_is_read_as_nothing_else(tmp_path, encoding):
    """Its letters would be two others each. The encoding that the message names reads them."""
    path = tmp_path / "a.csv"
    path.write_bytes("gr\u00fcn\n".encode("utf-8-sig"))
    with pytest.raises(InputError, match=r"a\.csv: .*BOM.* 'a\.csv=utf-8'"):
        list(text_files.read_lines(path, encoding))
    assert list(text_files.read_lines(path, text_files.encoding_of(path, "a.csv=utf-8"))) == ["gr\u00fcn\n"]


def test_a_pipe_is_refused_before_it_is_opened(tmp_path):
    """A named one without a writer would wait without end, and no pipe can be read twice."""
    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(InputError, match=r"a\.txt: .*pipe"):
        list(text_files.read_lines(tmp_path / "a.txt", "utf-8"))
