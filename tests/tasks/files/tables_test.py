import csv
import gzip
import json
import re

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from bert.corpus import text_files
from tasks.files import text_lines
from tasks.files.records import TableSettings
from tasks.files.tables import read_table
from tests.tasks.one_line import message_of, says

ROWS = [{"text": "One, two", "label": "a"}, {"text": 'She said "hi"', "label": "b"}]


def lines_of(table):
    return [int(place.rpartition(":")[2]) for place in table.places]


def as_csv(path, rows, **settings):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), **settings)
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def test_every_format_gives_the_same_rows(write, tmp_path):
    """csv, tsv, jsonl, json as a list and by id, parquet and saved data sets: one table, packed or not."""
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    paths = [
        as_csv(tmp_path / "a.csv", ROWS),
        as_csv(tmp_path / "semicolons.csv", ROWS, delimiter=";"),
        as_csv(tmp_path / "no_quotes.tsv", ROWS, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None),
        as_csv(tmp_path / "quotes.tsv", ROWS, delimiter="\t", quoting=csv.QUOTE_ALL),
        as_csv(tmp_path / "tabs.txt", ROWS, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None),
        write("a.jsonl", lines),
        write("lines.json", lines),
        write("a.json", json.dumps(ROWS, indent=1)),
        write("inside.json", json.dumps({"version": "1", "data": ROWS})),
        write("a.jsonl.gz", gzip.compress(lines.encode())),
        write("a.csv.gz", gzip.compress((tmp_path / "a.csv").read_bytes())),
        str(tmp_path / "a.parquet"),
        str(tmp_path / "saved"),
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    datasets.Dataset.from_list(ROWS).save_to_disk(tmp_path / "saved")
    for path in paths:
        table = read_table(path)
        assert table.rows == ROWS, path
        assert table.columns == ("text", "label"), path
        assert all(place.startswith(path) for place in table.places)


def test_objects_by_id_get_the_id_as_a_column(write):
    table = read_table(write("a.json", '{"x7": {"text": "a", "soft": {"0": 1}}, "x8": {"text": "b"}}'))
    assert table.columns == ("id", "text", "soft")
    assert table.rows == [{"id": "x7", "text": "a", "soft": {"0": 1}}, {"id": "x8", "text": "b", "soft": None}]
    assert table.places[1].endswith("a.json: row 2")
    assert read_table(write("b.json", '{"x7": {"id": 3}}')).rows == [{"id": 3}]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_byte_order_marks_change_nothing(write, end):
    text = end.join(["\ufefftext\tlabel", "a b\t1", "", "c\t0", "  ", ""])
    table = read_table(write("a.tsv", text))
    assert table.rows == [{"text": "a b", "label": "1"}, {"text": "c", "label": "0"}]
    assert lines_of(table) == [2, 4]
    assert any("2 blank lines were skipped" in note for note in table.notes)


def test_records_over_several_lines_count_from_their_first(write):
    """Blank lines inside of quotes are text, those between records are skipped; neither disturbs the numbers."""
    table = read_table(write("a.csv", 'text,label\n"one\n\ntwo",a\n\nthree,b\n"four\n",c\nfive,d'))
    assert [row["text"] for row in table.rows] == ["one\n\ntwo", "three", "four\n", "five"]
    assert lines_of(table) == [2, 6, 7, 9]


def test_other_line_breaks_of_unicode_are_text(write):
    """A form feed or U+2028 ends no line, whatever Python's splitlines says."""
    assert read_table(write("a.tsv", "text\tlabel\na\x0cb\u2028c\x85\t1\n")).rows[0]["text"] == "a\x0cb\u2028c\x85"


def test_quotes_with_tabs_quote_only_where_all_are_whole(write):
    whole = 'text\tlabel\n"a ""b"""\t1\nc\t0\n'
    assert read_table(write("a.tsv", whole)).rows[0]["text"] == 'a "b"'
    assert read_table(write("a.tsv", whole), TableSettings(quoting="no")).rows[0]["text"] == '"a ""b"""'
    for lone in ('"', '"c', '"c" he said', '"c" "d"'):
        table = read_table(write("a.tsv", whole + f"{lone}\t1\n"))
        assert [row["text"] for row in table.rows] == ['"a ""b"""', "c", lone]
        assert any("quotes are text" in note for note in table.notes)


def test_a_pattern_splits_into_as_many_fields_as_there_are_columns(write):
    path = write("a.txt", b"NUM:dist How far : is\xf0 it ?\nLOC:city Where ?\n")
    settings = TableSettings(columns=("coarse", "fine", "text"), delimiter="[: ]", encoding="latin-1")
    assert read_table(path, settings).rows[0] == {"coarse": "NUM", "fine": "dist", "text": "How far : is\u00f0 it ?"}
    two = TableSettings(columns=("label", "text"), delimiter="space", encoding="latin-1")
    assert read_table(path, two).rows[1] == {"label": "LOC:city", "text": "Where ?"}


def test_delimiters_of_one_character_are_no_patterns(write):
    rows = read_table(write("a.txt", "text|label\na.b|1\n"), TableSettings(delimiter="|")).rows
    assert rows == [{"text": "a.b", "label": "1"}]


def test_a_text_a_line(write):
    """With a single column name a file without tabs is one text a line, commas and quotes in it or not."""
    rows = read_table(write("a.txt", 'One, "two"\n"Three\n'), TableSettings(columns=("sentence",))).rows
    assert [row["sentence"] for row in rows] == ['One, "two"', '"Three']


def test_the_index_that_pandas_writes_has_no_name(write):
    table = read_table(write("a.csv", ",text\n0,a\n"))
    assert table.columns == ("index", "text")
    assert any("called index" in note for note in table.notes)


def test_bytes_literals_are_unwrapped_where_a_whole_column_is_some(write):
    text = "caf\u00e9 'quoted' \"twice\"\nline"
    rows = [{"text": repr(text.encode()), "label": "b'x'"}, {"text": repr(b"it's"), "label": "y"}]
    table = read_table(write("a.json", json.dumps(rows)))
    assert [row["text"] for row in table.rows] == [text, "it's"]
    assert [row["label"] for row in table.rows] == ["b'x'", "y"]
    assert table.notes == ("text: 2 values were Python bytes literals and were unwrapped as UTF-8",)


def test_bytes_of_parquet_are_text_where_they_are_utf8(tmp_path):
    pyarrow.parquet.write_table(pyarrow.table({"a": ["caf\u00e9".encode()], "b": [b"\xff"]}), tmp_path / "a.parquet")
    assert read_table(str(tmp_path / "a.parquet")).rows == [{"a": "caf\u00e9", "b": b"\xff"}]


def test_class_labels_of_datasets_get_their_names_back(tmp_path):
    """In saved folders and in parquet; -1 is no label; the order of the names is kept."""
    features = datasets.Features({"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["yes", "no"])})
    saved = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [1, 0, -1]}, features=features)
    saved.save_to_disk(tmp_path / "saved")
    saved.to_parquet(tmp_path / "a.parquet")
    for path in (tmp_path / "saved", tmp_path / "a.parquet"):
        table = read_table(str(path))
        assert [row["label"] for row in table.rows] == ["no", "yes", None]
        assert table.names == {"label": ("yes", "no")}


def test_a_selection_that_was_saved_keeps_its_order(tmp_path):
    datasets.Dataset.from_dict({"text": list("abcd")}).select([3, 1]).save_to_disk(tmp_path / "saved")
    assert [row["text"] for row in read_table(str(tmp_path / "saved")).rows] == ["d", "b"]


def test_ragged_lines_can_be_dropped_and_are_counted(write):
    table = read_table(write("a.tsv", "text\tlabel\na\t1\nb\nc\t2\t3\nd\t0\n"), TableSettings(ragged="drop"))
    assert lines_of(table) == [2, 5]
    assert any("2 lines with a wrong number of fields dropped, the first is line 3" in note for note in table.notes)


def test_reading_stops_at_a_line_that_is_too_long(write, monkeypatch):
    """Of a packed file with a line of 30 MB no more than the limit and a block is unpacked."""
    path = write("a.tsv.gz", gzip.compress(b"text\tlabel\n" + b"x" * 30_000_000))
    unpacked = []
    read_pieces = text_files.read_lines

    def counted(*arguments):
        for piece in read_pieces(*arguments):
            unpacked.append(len(piece))
            yield piece

    monkeypatch.setattr(text_lines, "LINE_LIMIT", 2_000_000)
    monkeypatch.setattr(text_files, "read_lines", counted)
    assert says(message_of(read_table, path), "a.tsv.gz:2: ... 2,000,000")
    assert sum(unpacked) < 2_000_000 + 2 * text_files.BLOCK


def test_long_quoted_fields_are_read_and_the_limit_of_csv_is_left_alone(write):
    csv.field_size_limit(131_072)  # as Python sets it
    assert len(read_table(write("a.csv", 'text\n"' + "x" * 300_000 + '"\n')).rows[0]["text"]) == 300_000
    assert csv.field_size_limit() == 131_072


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32"])
@pytest.mark.parametrize("word", ["good", "gr\u00fcn", "\u5f88\u597d"])
def test_the_way_out_of_two_bytes_a_character_works(write, encoding, word):
    path = write("a.csv", f"text,label\n{word},1\n".encode(encoding))
    named = re.search(r"ncoding to .*(utf-\d\d(-[lb]e)?)", message_of(read_table, path))[1]
    assert read_table(path, TableSettings(encoding=named)).rows == [{"text": word, "label": "1"}]
    marked = write("b.csv", f"\ufefftext,label\n{word},1\n".encode("utf-16-le"))
    assert read_table(marked, TableSettings(encoding="utf-16-le")).columns == ("text", "label")


def test_headers_of_many_columns(write):
    """Steps that grow with the square of the columns would take minutes."""
    names = [f"c{i}" for i in range(30_000)]
    for header in (names, [""] * 30_000):
        assert len(read_table(write("a.csv", f"{','.join(header)}\n{','.join(names)}\n")).columns) == 30_000
