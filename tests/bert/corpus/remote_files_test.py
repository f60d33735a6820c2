"""Text at addresses, through fsspec."""

import gzip

import pytest

from bert.corpus.corpus import Corpus
from bert.errors import InputError


def test_files_at_an_address_are_read_as_those_of_a_folder(write, tmp_path):
    """Text, packed text and rows, in whole and in parts; the signature changes with a file."""
    fsspec = pytest.importorskip("fsspec")
    write("text/a.txt", "One lamp.\nTwo lamps.\n\nThree.\n")
    write("text/b.txt.gz", gzip.compress(b"Four lamps.\n"))
    write("text/c.jsonl", '{"text": "Five."}\n' * 3)
    write("text/notes.csv", "no text")
    memory = fsspec.filesystem("memory")
    memory.put(f"{tmp_path}/text/", "/lamps/", recursive=True)
    try:
        wanted = [(section.text, section.layout) for section in Corpus(str(tmp_path / "text")).sections()]
        assert len(wanted) == 6
        for spec in ("memory://lamps", "memory://lamps/*.[tj]*", f"file://{tmp_path}/text"):
            parts = [Corpus(spec, part=(number, 3)) for number in (1, 2, 3)]
            found = [section for part in parts for section in part.sections()]
            assert [(section.text, section.layout) for section in found] == wanted
            assert "://" in found[0].name
        before = Corpus("memory://lamps").signature()
        assert Corpus("memory://lamps").signature() == before
        memory.pipe("/lamps/a.txt", b"Other.\n")
        assert Corpus("memory://lamps").signature() != before
    finally:
        memory.rm("/lamps", recursive=True)


def test_a_file_whose_size_is_not_listed_is_read_whole_or_refused(monkeypatch):
    """A web server lists names alone, and may not tell the size of a file when it is asked for it either."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe("/lamps/a.txt", b"One lamp.\n\nTwo.\n\nThree.\n")
    try:
        monkeypatch.setattr(type(memory), "find", lambda self, path, **how: {"/lamps/a.txt": {}})
        spec = "memory://lamps"
        assert [section.text for section in Corpus(spec).sections()] == ["One lamp.\n", "Two.\n", "Three.\n"]
        monkeypatch.setattr(type(memory), "info", lambda self, path: {"type": "file", "size": None})
        with pytest.raises(InputError, match=r"memory://.*a.txt: .*size"):
            Corpus(spec)
    finally:
        monkeypatch.undo()
        memory.rm("/lamps", recursive=True)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("memory://nowhere", r"memory://nowhere.*\.txt"),
        ("gs://bucket/a.txt", "gs://bucket/a.txt: .*pip install gcsfs"),
        ("abc://bucket", "abc://bucket: .*abc"),
    ],
)
def test_addresses_that_cannot_be_read_are_told(spec, said):
    pytest.importorskip("fsspec")
    with pytest.raises(InputError, match=said):
        Corpus(spec)
