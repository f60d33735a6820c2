"""Tables that cannot be read: each gives one line with the place, the value, the rule and the way out."""

import gzip

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from tasks.files.records import TableSettings
from tasks.files.tables import read_table
from tests.tasks.one_line import message_of, says

CUT_SHORT = gzip.compress(b"text\tlabel\n" + bytes(range(32, 127)) * 50)[:-30]

# name of the file, content, settings, what the message says
FAULTS = [
    ("few.tsv", "text\tlabel\na\t1\nb\n", {}, ":3: 1 field ... 2 ... mend"),
    ("many.csv", "text,label\na,1\nb, c,2\n", {}, ":3: 3 fields ... 2 ... (text, label)"),
    ("lone.csv", 'text,label\na"b,1\nc"d,e,2\n', {}, ":3: 3 fields ... quoting is on"),
    ("pattern.txt", "A:b c\nword\n", {"columns": "xyz", "delimiter": "[: ]"}, ":2: 1 field ... 3"),
    ("open.csv", 'text,label\n"a\nb",1\n"c,2\nd,3\n', {}, ":4: a double quote ... not closed"),
    ("after.csv", 'text,label\na,1\n"b" c,2\n', {}, ":3: a double quote ... quoting to no"),
    ("twice.csv", "text,label,text\na,1,b\n", {}, ":1: ... 'text' twice ... 1 and 3"),
    ("remark.csv", "# by J., 2024\ntext,label,x\na,b,1\n", {}, ":2: 3 fields ... line 1 ... comment"),
    ("names.csv", "text,label\na,1,x\nb,2,y\nc,3\n", {}, ":2: 3 fields ... 2 ... most lines ... column names"),
    ("end.csv", "text,label\na,1,\nb,2\n", {}, ":2: 3 fields ... 2"),
    ("comma.csv", "text\na,\nb,\n", {}, ":2: 2 fields ... 1"),
    ("both.csv", "0,25;a\n0,5;b\n", {"columns": ("n", "text")}, ": ',' and ';' ... set delimiter"),
    ("blank.csv", 'text,label\na, "b"\nc, "d" e\n', {}, ':2: ... "b" ... blank'),
    ("empty.csv", "", {}, ": no rows and no header"),
    ("blank.tsv", "\n  \n\n", {}, ": no rows and no header"),
    ("header.csv", "text,label\n", {}, ": no rows below"),
    ("empty.jsonl", "\n", {}, ": no rows; "),
    ("empty.json", " \n", {}, ": no rows; "),
    ("names.tsv", "text\tlabel\na\t1\n", {"columns": ("Text", "label")}, ":1: ... leave columns empty"),
    ("names.tsv", "text\tlabel\na\t1\n", {"columns": ("label", "text")}, ":1: ... leave columns empty"),
    ("more.csv", "label,text,,\na,b,,\n", {"columns": ("label", "text", "x", "y")}, ":1: ... leave columns empty"),
    ("class.csv", "class,text\na,b\n", {"columns": ("label", "text")}, ":1: ... leave columns empty"),
    ("prose.txt", "Some words.\nMore words.\n", {}, ":1: no tab ... 'Some words.' ... delimiter"),
    ("nul.csv", "text,label\na\0b,1\n", {}, ":2: ... NUL"),
    ("utf16.csv", "text,label\na,1\n".encode("utf-16"), {}, ", byte 0 (line 1) ... =utf-16"),
    ("latin.csv", b"text,label\ncaf\xe9,1\n", {}, ", byte 14 (line 2): 0xE9 ... encoding"),
    ("codec.csv", "text\na\n", {"encoding": "utf-99"}, "'utf-99' ... unknown"),
    ("cut.tsv.gz", CUT_SHORT, {}, ": damaged"),
    ("plain.tsv.gz", "text\tlabel\na\t1\n", {}, ": damaged"),
    ("packed.tsv", gzip.compress(b"text\na\n"), {}, ": ... gzip"),
    ("sheet.csv", b"PK\x03\x04\x14\x00\x06\x00", {}, ": ... zip archive"),
    ("sheet.xlsx", b"PK\x03\x04", {}, ": .xlsx ... csv"),
    ("columns.csv", b"PAR1\x15\x04", {}, ": ... parquet"),
    ("columns.parquet.gz", b"", {}, ": parquet ... unpack"),
    ("bad.parquet", b"PAR1" + bytes(50) + b"PAR1", {}, ": cannot be read"),
    ("list.jsonl", '{"a": 1}\n[1, 2]\n', {}, ":2: a list ... object"),
    ("text.jsonl", '{"a": 1}\n\n{"a": \n', {}, ":3: not JSON"),
    ("key.jsonl", '{"a": 1, "a": 2}\n', {}, ":1: not JSON ... 'a' ... twice"),
    ("deep.jsonl", "[" * 100_000 + "\n", {}, ":1: not JSON"),
    ("cut.json", '[{"a": 1},', {}, ":1: not JSON ... list of objects"),
    ("rows.json", '[{"a": 1}, "b"]', {}, ": row 2: a text ... object"),
    ("number.json", "3", {}, ": a number ... list of objects"),
    ("config.json", '{"a": {"b": 1}, "c": 3}', {}, ": 'c': a number ... object"),
    ("pandas.json", '{"a": {"0": "x"}, "b": {"0": "y"}}', {}, ": ... columns ... records"),
    ("arrays.json", '{"a": ["x"], "b": ["y"]}', {}, ": ... columns ... rows"),
]


@pytest.mark.parametrize(("name", "content", "settings", "pieces"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_fault_has_one_line(write, name, content, settings, pieces):
    message = message_of(read_table, write(name, content), TableSettings(**settings))
    assert name in message
    assert says(message, pieces)


def test_a_missing_path_is_refused_with_what_is_beside_it(write, tmp_path):
    write("train.csv", "text\na\n")
    assert says(message_of(read_table, str(tmp_path / "trian.csv")), "trian.csv: no such file ... train.csv")
    assert says(message_of(read_table, str(tmp_path)), ": a folder with train.csv")
    (tmp_path / "none").mkdir()
    assert says(message_of(read_table, str(tmp_path / "none")), "none: a folder without data")


def test_saved_data_sets_that_are_several_or_damaged(tmp_path):
    rows = datasets.Dataset.from_dict({"text": ["a"]})
    datasets.DatasetDict({"train": rows, "test": rows}).save_to_disk(tmp_path / "two")
    assert says(message_of(read_table, str(tmp_path / "two")), "two: ... test, train ... two/test")
    next((tmp_path / "two/train").glob("*.arrow")).write_bytes(b"ARROW1 and no more")
    next((tmp_path / "two/test").glob("*.arrow")).unlink()
    for split in ("train", "test"):
        assert says(message_of(read_table, str(tmp_path / "two" / split)), f"two/{split}: cannot be read")


def test_parquet_with_a_column_twice(tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table([["a"], ["b"]], names=["text", "text"]), path)
    assert says(message_of(read_table, str(path)), "a.parquet: ... 'text' ... twice")


@pytest.mark.parametrize(
    ("settings", "pieces"),
    [
        ({"quoting": "maybe"}, "quoting ... 'maybe' ... auto, yes, no"),
        ({"ragged": "mend"}, "ragged ... 'mend' ... refuse, drop"),
        ({"columns": ("a", "a")}, "columns 'a', 'a': "),
        ({"delimiter": "[:"}, "delimiter '[:' ... regular expression"),
        ({"delimiter": "(:| )"}, "delimiter '(:| )' ... (?:...)"),
        ({"delimiter": "space", "quoting": "yes"}, "quoting ... 'space' ... auto"),
    ],
)
def test_settings_that_make_no_sense(settings, pieces):
    assert says(message_of(lambda: TableSettings(**settings)), pieces)
