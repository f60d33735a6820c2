"""Which tool wrote an export, folders with a file for each annotator, and archives."""

import contextlib
import io
import json
import zipfile

import pytest

from bert.errors import InputError
from tasks.annotations.tools import tool_of
from tests.tasks.annotations.read_texts import lines, read, refused, said, spans
from tests.tasks.one_line import says

ANNA = "Anna sat."
DOCCANO = {"id": 3, "text": ANNA, "label": [[0, 4, "PER"]]}


def zipped(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


@pytest.mark.parametrize(
    ("row", "tool"),
    [
        ({"text": "a"}, "doccano"),
        ({"text": "a", "spans": [{"start": 0, "end": 1, "label": "x"}]}, "doccano"),
        ({"text": "a", "answer": "accept"}, "prodigy"),
        ({"text": "a", "tokens": [{"text": "a", "start": 0, "end": 1, "id": 0}]}, "prodigy"),
        ({"data": {"text": "a"}}, "label_studio"),
        ({"text": "a", "annotator": 1, "annotation_id": 2}, "label_studio"),
        ({"text": "a", "tokens": ["a"]}, ""),
        ({"tokens": ["a"], "tags": ["O"]}, ""),
        ({"text": 3}, ""),
        ({"data": "a", "label": []}, "doccano"),
    ],
)
def test_a_tool_is_known_by_its_rows(write, row, tool):
    assert tool_of(write("a.jsonl", "\n" + lines(row))) == tool
    assert tool_of(write("a.json", json.dumps([row]))) == tool


def test_what_no_tool_wrote(write, tmp_path):
    for name, content in {
        "a.conll": "a O\n",
        "b.jsonl": "no json",
        "c.json": "{",
        "d.jsonl": "",
        "e.zip": zipped({}),
    }.items():
        assert tool_of(write(name, content)) == ""
    write("workers/ann/d.txt", "a O\n")
    assert tool_of(str(tmp_path / "workers")) == ""
    assert says(refused(write("x.zip", b"PK")), "x.zip: cannot be unpacked ... unpack it yourself")
    assert says(refused(str(tmp_path / "workers"), format="doccano"), "workers: a folder without files of doccano")


@pytest.mark.parametrize("tool", ["doccano", "prodigy", "label_studio"])
def test_a_file_for_each_annotator(write, tmp_path, tool):
    """The same texts whatever their ids; also zipped, as doccano gives them."""

    def row(number, text, label):
        mark = {"start": 0, "end": 4, "label": label}
        if tool == "doccano":
            return {"id": number, "text": text, "label": [[0, 4, label]]}
        if tool == "prodigy":
            return {"text": text, "_input_hash": 5, "spans": [mark], "answer": "accept"}
        value = {"start": 0, "end": 4, "text": text[:4], "labels": [label]}
        return {"id": number, "data": {"text": text}, "annotations": [{"result": [{"type": "labels", "value": value}]}]}

    files = {
        "anna.jsonl": lines(row(1, ANNA, "PER"), row(2, "John sat.", "PER")),
        "ben.jsonl": lines(row(7, ANNA, "ORG")),
    }
    for name, content in files.items():
        write(f"all/{name}", content)
    write("all/.hidden.jsonl", "x")
    wanted = [{"anna": [(0, 4, "PER")], "ben": [(0, 4, "ORG")]}, {"anna": [(0, 4, "PER")]}]
    mac = {"__MACOSX/._anna.jsonl": "x"}
    for path in (str(tmp_path / "all"), write("all.zip", zipped({f"x/{name}": c for name, c in files.items()} | mac))):
        file = read(path)
        assert (file.tool, file.annotators, spans(file)) == (tool, ("anna", "ben"), wanted)
        places = [f"{path}/anna.jsonl:1", f"{path}/anna.jsonl:2"]
        assert [(text.place, text.document) for text in file.texts] == [(place, place) for place in places]


def test_nothing_in_one_of_several_files_is_not_annotated_unless_it_is_said_to_be(write, tmp_path):
    """Who never opened a text has no spans in it either."""
    nothing = DOCCANO | {"label": []}
    write("all/anna.jsonl", lines(DOCCANO, nothing | {"text": "x"}))
    write("all/cleo.jsonl", lines(nothing, nothing | {"text": "x"}))
    file = read(str(tmp_path / "all"))
    assert spans(file) == [{"anna": [(0, 4, "PER")]}, {}]
    assert says(said(file), "read as not annotated (no_spans): 3 (first ... anna.jsonl:2)")
    file = read(str(tmp_path / "all"), no_spans="nothing")
    assert spans(file) == [{"anna": [(0, 4, "PER")], "cleo": []}, {"anna": [], "cleo": []}]


def test_files_of_annotators_called_alike_are_of_different_ones(write, tmp_path):
    for name in ("j.doe.jsonl", "j.poe.jsonl", "ann.jsonl", "ann.ndjson"):
        write(f"users/{name}", lines(DOCCANO))
    assert read(tmp_path / "users").annotators == ("ann.jsonl", "ann.ndjson", "j.doe", "j.poe")


def test_a_text_that_its_annotator_annotated_in_two_files_is_told(write, tmp_path):
    for name in ("a", "b"):
        task = {"data": {"text": ANNA}, "annotations": [{"completed_by": 1, "result": []}]}
        path = write(f"all/{name}.json", json.dumps(task))
    file = read(tmp_path / "all")
    assert says(said(file), "annotated again, left out: 1 (first ... b.json")
    assert (spans(file), file.annotators) == ([{"1": []}], ("1",))
    assert read(path).annotators == ("1",)


def test_a_file_for_each_task_is_no_annotator(write, tmp_path):
    value = {"start": 0, "end": 4, "text": "Anna", "labels": ["PER"]}
    for number, text in enumerate((ANNA, "Anna ran.", ANNA)):
        done = {"id": 1, "result": [{"type": "labels", "value": value}]}
        write(f"all/{number}.json", json.dumps({"id": number, "data": {"text": text}, "completions": [done]}))
    file = read(str(tmp_path / "all"))
    assert (spans(file), file.annotators) == ([{"1": [(0, 4, "PER")]}] * 3, ())


def test_a_text_that_a_file_has_twice_is_two(write, tmp_path):
    other = DOCCANO | {"label": [[0, 4, "ORG"]]}
    write("all/anna.jsonl", lines(DOCCANO, other))
    write("all/ben.jsonl", lines(other))
    per, org = [(0, 4, "PER")], [(0, 4, "ORG")]
    assert spans(read(str(tmp_path / "all"))) == [{"anna": per, "ben": org}, {"anna": org}]


def test_one_file_alone_in_a_folder_or_an_archive_is_read_as_that_file(write, tmp_path):
    content = lines(DOCCANO, {"text": "x", "label": []})
    write("one/all.jsonl", content)
    archive = write("a.zip", zipped({"all.jsonl": content}))
    for path, place in ((str(tmp_path / "one"), "/all.jsonl:2"), (archive, ":2")):
        file = read(path)
        assert (spans(file), file.annotators) == ([{"1": [(0, 4, "PER")]}, {"1": []}], ())
        assert f"nothing in them (no_spans): 1 (first {path}{place})" in said(file)


def test_archives_of_brat_and_faults_in_archives(write):
    path = write("a.zip", zipped({"c/a.txt": ANNA, "c/a.ann": "T1\tPER 0 4\tAnna\n"}))
    assert (read(path).tool, spans(read(path))) == ("brat", [{"1": [(0, 4, "PER")]}])
    path = write("b.zip", zipped({"a.jsonl": lines(DOCCANO, {"text": None}), "b.jsonl": lines(DOCCANO)}))
    assert says(refused(path), f"{path}/a.jsonl:2: text")
    bomb = write("c.zip", zipped({"a.jsonl": b"0" * (1 << 25)}))
    assert says(refused(bomb), "c.zip: unpacks to 33,554,432 bytes")


def test_a_large_archive_is_read_where_it_is_packed_as_texts_are(write, monkeypatch):
    monkeypatch.setattr("tasks.annotations.files.MOST_UNPACKED", 1)
    assert len(read(write("a.zip", zipped({"a.jsonl": lines(DOCCANO)}))).texts) == 1


def test_an_archive_with_any_byte_damaged_is_read_or_refused(write):
    content = zipped({"\u00e4.jsonl": lines(*(DOCCANO | {"id": number} for number in range(30)))})
    for place in range(0, len(content), 2):
        with contextlib.suppress(InputError):
            read(write("a.zip", content[:place] + bytes([content[place] ^ 0x95]) + content[place + 1 :]))
