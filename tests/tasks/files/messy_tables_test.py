"""Tables that cannot be read: each gives one line with the place, the value, the rule and the way out."""

import gzip

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from tasks.files.records import TableSettings
from tasks.files.tables import read_table
from tests.tasks.one_line import message_of, says_so

CUT_SHORT = gzip.compress(b"text\tlabel\n" + bytes(range(32, 127)) * 50)[:-30]

# name of the file, content, settings, what the message says
FAULTS = [
    ("few.tsv", "text\tlabel\na\t1\nb\n", {}, r"few\.tsv:3: 1 field where 2 are wanted \(text, label\); mend"),
    ("many.csv", "text,label\na,1\nb, c,2\n", {}, r"many\.csv:3: 3 fields where 2 are wanted"),
    ("lone.csv", 'text,label\na"b,1\nc"d,e,2\n', {}, r"lone\.csv:3: 3 fields .* quoting is on, set it if"),
    ("pattern.txt", "A:b c\nword\n", {"columns": "xyz", "delimiter": "[: ]"}, r"pattern\.txt:2: 1 field where 3"),
    ("open.csv", 'text,label\n"a\nb",1\n"c,2\nd,3\n', {}, r"open\.csv:4: a double quote .* not closed"),
    ("after.csv", 'text,label\na,1\n"b" c,2\n', {}, r"after\.csv:3: a double quote .* set quoting to no"),
    ("twice.csv", "text,label,text\na,1,b\n", {}, r"twice\.csv:1: the header has 'text' twice \(columns 1 and 3\)"),
    ("remark.csv", "# by J., 2024\ntext,label,x\na,b,1\n", {}, r"remark\.csv:2: 3 fields .* line 1 .* comment"),
    ("end.csv", "text,label\na,1,\nb,2\n", {}, r"end\.csv:2: 3 fields where 2 are wanted"),
    ("comma.csv", "text\na,\nb,\n", {}, r"comma\.csv:2: 2 fields where 1 are wanted"),
    ("both.csv", "0,25;a\n0,5;b\n", {"columns": ("n", "text")}, r"both\.csv: ',' and ';' both split .* set delimiter"),
    ("blank.csv", 'text,label\na, "b"\nc, "d" e\n', {}, r"blank\.csv:2: .* blank before its quote"),
    ("empty.csv", "", {}, r"empty\.csv: no rows and no header; is it"),
    ("blank.tsv", "\n  \n\n", {}, r"blank\.tsv: no rows and no header"),
    ("header.csv", "text,label\n", {}, r"header\.csv: no rows below the header"),
    ("empty.jsonl", "\n", {}, r"empty\.jsonl: no rows; is it"),
    ("names.tsv", "text\tlabel\na\t1\n", {"columns": ("Text", "label")}, r"names\.tsv:1: .* leave columns empty"),
    ("names.tsv", "text\tlabel\na\t1\n", {"columns": ("label", "text")}, r"names\.tsv:1: .* leave columns empty"),
    (
        "more.csv",
        "label,text,,\na,b,,\n",
        {"columns": ("label", "text", "x", "y")},
        r"more\.csv:1: .* leave columns empty",
    ),
    ("class.csv", "class,text\na,b\n", {"columns": ("label", "text")}, r"class\.csv:1: .* leave columns empty"),
    ("prose.txt", "Some words.\nMore words.\n", {}, r"prose\.txt:1: no tab in 'Some words\.'; set delimiter"),
    ("nul.csv", "text,label\na\0b,1\n", {}, r"nul\.csv:2: holds a NUL character"),
    ("utf16.csv", "text,label\na,1\n".encode("utf-16"), {}, r"utf16\.csv, byte 0 \(line 1\): .*=utf-16'"),
    ("latin.csv", b"text,label\ncaf\xe9,1\n", {}, r"latin\.csv, byte 14 \(line 2\): 0xE9 is not UTF-8; set encoding"),
    ("codec.csv", "text\na\n", {"encoding": "utf-99"}, r"encoding 'utf-99' .* is unknown"),
    ("cut.tsv.gz", CUT_SHORT, {}, r"cut\.tsv\.gz: damaged \.gz file .* get it again"),
    ("plain.tsv.gz", "text\tlabel\na\t1\n", {}, r"plain\.tsv\.gz: damaged \.gz file"),
    ("packed.tsv", gzip.compress(b"text\na\n"), {}, r"packed\.tsv: is packed by gzip; add \.gz to its name"),
    ("sheet.csv", b"PK\x03\x04\x14\x00\x06\x00", {}, r"sheet\.csv: is a zip archive \(or an Excel file\)"),
    ("sheet.xlsx", b"PK\x03\x04", {}, r"sheet\.xlsx: \.xlsx files are not read; save it as csv first"),
    ("columns.csv", b"PAR1\x15\x04", {}, r"columns\.csv: is a parquet file; let its name end in \.parquet"),
    ("bad.parquet", b"PAR1" + bytes(50) + b"PAR1", {}, r"bad\.parquet: cannot be read \(.*\); write the file again"),
    ("list.jsonl", '{"a": 1}\n[1, 2]\n', {}, r"list\.jsonl:2: a list, not an object"),
    ("text.jsonl", '{"a": 1}\n\n{"a": \n', {}, r"text\.jsonl:3: not JSON \(.*\); each line must hold one object"),
    ("key.jsonl", '{"a": 1, "a": 2}\n', {}, r"key\.jsonl:1: not JSON \(the name 'a' stands twice in one object\)"),
    ("deep.jsonl", "[" * 100_000 + "\n", {}, r"deep\.jsonl:1: not JSON"),
    ("cut.json", '[{"a": 1},', {}, r"cut\.json:1: not JSON .* list of objects"),
    ("rows.json", '[{"a": 1}, "b"]', {}, r"rows\.json: row 2: a text, not an object"),
    ("number.json", "3", {}, r"number\.json: a number; write a list of objects, or objects by id"),
    ("config.json", '{"a": {"b": 1}, "c": 3}', {}, r"config\.json: 'c': a number, not an object"),
    ("pandas.json", '{"a": {"0": "x"}, "b": {"0": "y"}}', {}, r"pandas\.json: holds columns, not rows; .*records"),
    ("arrays.json", '{"a": ["x"], "b": ["y"]}', {}, r"arrays\.json: holds columns, not rows"),
]


@pytest.mark.parametrize(("name", "content", "settings", "says"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_a_fault_is_told_in_one_line(write, name, content, settings, says):
    assert says_so(says, message_of(read_table, write(name, content), TableSettings(**settings)))


def test_what_is_not_there_is_told_with_what_is(write, tmp_path):
    write("train.csv", "text\na\n")
    assert says_so(
        r"trian\.csv: no such file or folder; beside it: train\.csv",
        message_of(read_table, str(tmp_path / "trian.csv")),
    )
    assert says_so(r": a folder with train\.csv; name one of the files", message_of(read_table, str(tmp_path)))
    (tmp_path / "none").mkdir()
    assert says_so(r"none: a folder without data", message_of(read_table, str(tmp_path / "none")))


def test_saved_data_sets_that_are_several_or_damaged(tmp_path):
    one = datasets.Dataset.from_dict({"text": ["a"]})
    datasets.DatasetDict({"train": one, "test": one}).save_to_disk(tmp_path / "two")
    assert says_so(
        "holds the splits test, train; name one, such as .*two/test", message_of(read_table, str(tmp_path / "two"))
    )
    next((tmp_path / "two/train").glob("*.arrow")).write_bytes(b"ARROW1 and no more")
    assert says_so(r"two/train: cannot be read", message_of(read_table, str(tmp_path / "two/train")))
    next((tmp_path / "two/test").glob("*.arrow")).unlink()
    assert says_so(r"two/test: cannot be read", message_of(read_table, str(tmp_path / "two/test")))


def test_parquet_with_a_column_twice(tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table([["a"], ["b"]], names=["text", "text"]), path)
    assert says_so(r"a\.parquet: the column 'text' stands twice", message_of(read_table, str(path)))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"quoting": "maybe"}, "quoting is 'maybe'; .* auto, yes, no"),
        ({"ragged": "mend"}, "ragged is 'mend'; .* refuse, drop"),
        ({"columns": ("a", "a")}, "each needs a name of its own"),
        ({"delimiter": "[:"}, r"delimiter '\[:' is no regular expression"),
        ({"delimiter": "(:| )"}, r"write groups as \(\?:...\)"),
        ({"delimiter": "space", "quoting": "yes"}, "quoting yes needs a delimiter of one character"),
    ],
)
def test_settings_that_make_no_sense(settings, says):
    assert says_so(says, message_of(lambda: TableSettings(**settings)))
