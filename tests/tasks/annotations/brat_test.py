"""brat's folders: spans in parts, other lines, annotators, and texts kept to the byte."""

import pytest

from tests.tasks.annotations.read_texts import HARD, SPANS, read, refused, said, spans, utf16
from tests.tasks.one_line import says

TEXT = "Anna saw New\nYork and Paris."
ANN = "T1\tPER 0 4\tAnna\nT2\tLOC 9 12;13 17\tNew York\nT3\tLOC 9 12;22 27\tNew Paris\nT4\tEVT 5 8\tsaw\n"
OTHERS = "R1\tAt Arg1:T1 Arg2:T2\nE1\tEVT:T4 Who:T1\nA1\tPast E1\n*\tEquiv T1 T2\n#1\tAnnotatorNotes T1\tsure\n\n"


@pytest.fixture
def folder(write, tmp_path):
    def make(files):
        for name, content in files.items():
            write(f"brat/{name}", content)
        return str(tmp_path / "brat")

    return make


def test_spans_and_what_is_no_span(folder):
    path = folder(
        {"a.txt": TEXT, "a.ann": ANN + OTHERS, "annotation.conf": "[entities]", "sub/b.txt": "No.", "sub/b.ann": ""}
    )
    file = read(path)
    assert (file.tool, file.annotators) == ("brat", ())
    assert spans(file) == [{"1": [(0, 4, "PER"), (9, 17, "LOC"), (5, 8, "EVT")]}, {"1": []}]
    assert [(text.id, text.text) for text in file.texts] == [("a", TEXT), ("sub/b", "No.")]
    assert says(said(file), "relations, events ... : 5 (first ... a.ann:5)")
    assert says(said(file), "discontinuous spans, dropped: 1 (first ... a.txt)")
    assert says(said(file), "nothing in them (no_spans): 1 (first ... b.ann)")


def test_folders_with_the_same_documents_are_annotators(folder):
    """Also with the texts beside them; a text that nobody marked anything in is not annotated, unless it is said."""
    one, two = "T1\tPER 0 4\tAnna\n", "T1\tORG 0 4\tAnna\n"
    path = folder(
        {"anna/a.ann": one, "ben/a.ann": two, "a.txt": TEXT, "anna/b.ann": "", "ben/b.ann": one, "b.txt": TEXT}
    )
    file = read(path)
    assert file.annotators == ("anna", "ben")
    assert spans(file) == [{"anna": [(0, 4, "PER")], "ben": [(0, 4, "ORG")]}, {"ben": [(0, 4, "PER")]}]
    assert spans(read(path, no_spans="nothing"))[1] == {"anna": [], "ben": [(0, 4, "PER")]}
    path = folder({"ben/a.txt": "Another.", "anna/a.txt": TEXT, "c.ann": one})
    assert spans(read(path))[0] == {"anna": [(0, 4, "PER")]}
    assert says(said(read(path)), "without their text, left out: 2 (first ... ben/a.ann")


def windows(text):
    return text.replace("\n", "\r\n")


@pytest.mark.parametrize(
    "count", [int, utf16, lambda o: len(HARD[:o].encode()), lambda o: len(HARD[:o].replace("\r\n", "\n"))]
)
def test_the_text_of_a_span_tells_what_offsets_count(folder, count):
    marks = [f"T{i}\t{label} {count(a)} {count(b)}\t{HARD[a:b]}\n" for i, (a, b, label) in enumerate(SPANS)]
    path = folder({"a.txt": HARD, "a.ann": windows("".join(marks))})
    file = read(path)
    assert file.texts[0].text == HARD
    assert spans(file) == [{"1": SPANS}]


def test_texts_are_kept_to_the_byte(folder):
    """A byte order mark is the first character of a text, line ends are two; that of annotations is none of them."""
    path = folder({"a.txt": "\ufeffAnna\r\nsat.", "a.ann": "\ufeffT1\tPER 1 5\tAnna\r\nT2\tVERB 7 10\r\n"})
    assert read(path).texts[0].text == "\ufeffAnna\r\nsat."
    assert spans(read(path)) == [{"1": [(1, 5, "PER"), (7, 10, "VERB")]}]


def test_parts_without_a_text_are_not_taken_for_one_span(folder):
    path = folder({"a.txt": TEXT, "a.ann": "T1\tLOC 9 12;22 27\nT2\tPER 0 4\n"})
    assert spans(read(path)) == [{"1": [(0, 4, "PER")]}]
    assert "discontinuous spans, dropped: 1" in said(read(path))


def test_what_is_no_folder_of_brat_is_refused(folder, write):
    path = folder({"a.txt": TEXT, "a.ann": "T1 PER 0 4\tAnna\n"})
    assert says(refused(path), "a.ann:1 ... no span")
    assert says(refused(write("x.txt", TEXT), format="brat"), "x.txt: is no folder")
    assert says(refused(f"{path}/a.ann"), "a.ann: is no folder; name the folder")
    assert says(refused(folder({"a.txt": b"\xff", "a.ann": ""})), "a.txt ... not UTF-8 ... encoding")
