"""First lines of people's files: columns without names, a header that is not wanted, a line for Excel."""

import pytest

from tasks.files.records import TableSettings
from tasks.files.tables import read_table

ROWS = [{"label": "a", "text": "b"}, {"label": "c", "text": "d, e"}]


@pytest.mark.parametrize(
    "content",
    [
        'label,text,,\na,b,,\nc,"d, e",,\n',
        'label,text,,\na,b\nc,"d, e",\n',
        'label,text\na,b,\nc,"d, e",\n',
        'label,,text\na,,b\nc, ,"d, e"\n',
        "sep=;\nlabel;text\na;b\nc;d, e\n",
        '"sep=;"\r\nlabel;text\r\na;b\r\nc;d, e\r\n',
        '\ufeffSEP=,\r\nlabel,text\r\na,b\r\nc,"d, e"\r\n',
        "sep=\t\nlabel\ttext\na\tb\nc\td, e\n",
        "sep=|\nlabel|text\na|b\nc|d, e\n",
        "label;text\na;b\nc;d, e\n",
    ],
)
def test_what_is_no_column_is_left_out(write, content):
    table = read_table(write("a.csv", content))
    assert (table.rows, table.columns) == (ROWS, ("label", "text"))
    first = (
        content.replace("\r\n", "\n").split("\n").index(next(line for line in content.splitlines() if line[0] == "a"))
    )
    assert [int(place.rpartition(":")[2]) for place in table.places] == [first + 1, first + 2]


def test_columns_with_content_but_no_name_are_kept(write):
    """Under a name that is told, beside a column "index" too."""
    table = read_table(write("a.csv", ",index,text,,\n0,5,a,,x\n1,6,b,,\n"))
    assert table.columns == ("column 1", "index", "text", "column 5")
    assert table.rows[0] == {"column 1": "0", "index": "5", "text": "a", "column 5": "x"}
    assert any("column 1, column 5" in note for note in table.notes)
    table = read_table(write("b.csv", "column 2,,text\n0,5,a\n"))
    assert len(set(table.columns)) == 3


def test_a_line_for_excel_is_no_row_without_a_header(write):
    for settings in ({}, {"delimiter": "semicolon"}):
        table = read_table(write("a.csv", "sep=;\na;b\nc;d, e\n"), TableSettings(columns=("label", "text"), **settings))
        assert table.rows == ROWS


def test_a_delimiter_that_splits_all_lines_alike_is_chosen(write):
    """Decimal commas in the first line do not make a file of commas."""
    columns = TableSettings(columns=("n", "text"))
    assert read_table(write("a.csv", "0,25;yes, good\n1;bad\n"), columns).rows[0] == {"n": "0,25", "text": "yes, good"}
    assert read_table(write("b.csv", "n;text, more\n1;a\n2;b\n")).columns == ("n", "text, more")
    assert read_table(write("c.csv", "n,text; more\n1,a\n2,b; c\n")).columns == ("n", "text; more")


def test_a_first_line_that_may_be_a_header_is_told(write):
    rows = "pos,a good one\nneg,a bad one\n" * 6
    columns = TableSettings(columns=("label", "text"))
    assert any("header" in note for note in read_table(write("a.csv", "sentiment,review\n" + rows), columns).notes)
    assert any("header" in note for note in read_table(write("b.csv", "n,review\n" + "1,x\n2,y\n" * 6), columns).notes)
    assert not read_table(write("c.csv", rows), columns).notes
    assert not read_table(write("d.csv", "sentiment,review\npos,x\nneg,x\npos,x\nneg,x\n"), columns).notes  # too few
    different = "".join(f"word{i},text{i}\n" for i in range(12))
    assert not read_table(write("e.csv", "sentiment,review\n" + different), columns).notes
