"""Vectors of the texts of a file: a row for each, in the file's order; whole files or none."""

import json
import pathlib

import numpy as np
import pyarrow.parquet
import pytest

from tasks import text_vectors
from tests.bert.refusals import refused


class Lengths:
    """In the place of an embedder: the number of characters of each text, and a 1; blocks of two."""

    width = 2

    def blocks(self, texts, done):
        block = []
        for text in texts:
            block.append([len(text), 1])
            if len(block) == 2:
                yield np.array(block, np.float32)
                done(2)
                block = []
        if block:
            yield np.array(block, np.float32)
            done(1)


def written(path, texts):
    counts = []
    text_vectors.write(path, texts, Lengths(), counts.append)
    assert sum(counts) == texts.count
    return path


@pytest.fixture
def lines(tmp_path) -> pathlib.Path:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\r\nbcd\n \nefgh, i")
    return path


def test_a_line_a_text(tmp_path, lines):
    """Blank lines, too, so that row i belongs to line i; they are counted."""
    texts = text_vectors.read(str(lines))
    assert (texts.count, texts.empty) == (4, 1)
    assert "1 of them empty" in str(texts)
    found = np.load(written(tmp_path / "a.npy", texts), mmap_mode="r")
    assert (found.dtype, found.shape) == (np.float32, (4, 2))
    assert found[:, 0].tolist() == [1, 3, 1, 7]
    table = pyarrow.parquet.read_table(written(tmp_path / "a.parquet", texts))
    assert table.column_names == ["line", "embedding"]
    assert table["line"].to_pylist() == [1, 2, 3, 4]
    np.testing.assert_array_equal(np.stack(table["embedding"].to_numpy()), found)


def test_a_table_keeps_its_other_columns(tmp_path):
    """Numbers stay numbers; values of several kinds become their JSON; a missing text is an empty one."""
    rows = [
        {"id": 7, "said": "one", "note": "x\ud800"},
        {"id": 8, "said": None, "note": [1]},
        {"id": 9, "said": "four"},
    ]
    source = tmp_path / "a.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts = text_vectors.read(str(source), "said")
    table = pyarrow.parquet.read_table(written(tmp_path / "a.parquet", texts))
    assert table.drop_columns("embedding").to_pydict() == {"id": [7, 8, 9], "note": ["x\ufffd", "[1]", None]}
    assert [vector[0] for vector in table["embedding"].to_pylist()] == [3, 0, 4]


def test_what_cannot_be_read_or_written_is_refused(tmp_path, lines):
    table = tmp_path / "a.csv"
    table.write_text("id,text,embedding\n1,a,b\n")
    with refused("a.csv", "'said'", "set text"):
        text_vectors.read(str(table), "said")
    with refused("a.csv", "'embedding'", "rename"):
        written(tmp_path / "a.parquet", text_vectors.read(str(table)))
    with refused("out.csv", ".npy, .parquet"):
        written(tmp_path / "out.csv", text_vectors.read(str(table)))
    (tmp_path / "empty.txt").touch()
    with refused("empty.txt", "no line"):
        text_vectors.read(str(tmp_path / "empty.txt"))
    (tmp_path / "cr.txt").write_bytes(b"one\rstill one\ntwo\n")
    with refused("cr.txt:1", "carriage return"):
        text_vectors.read(str(tmp_path / "cr.txt"))
    loud = lines.rename(tmp_path / "a.TXT")
    with refused("--text=said", "a.TXT", "no columns"):
        text_vectors.read(str(loud), "said")
    loud.rename(lines)
    texts = text_vectors.read(str(lines))
    lines.write_text("one line")
    with refused("a.txt", "changed"):
        written(tmp_path / "a.npy", texts)
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", "a.txt", "cr.txt", "empty.txt"}
