"""Double quotes in people's files, and that what is written is read back."""

import csv
import io
import itertools

import pytest

from tasks.files.examples import make_examples
from tasks.files.label_kinds import ColumnSettings
from tasks.files.tables import read_table

ODD = [
    "a\nb",
    "a\tb",
    'a "b"',
    '"',
    '""',
    "a\rb",
    "a\r\nb",
    '"a"',
    " a, b ",
    'x, "a"',
    "\n",
    '"\n"',
    "\ufeffa",
    "'a'",
    "sep=;",
]


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
def test_what_the_csv_module_writes_is_read_back(write, delimiter, quoting):
    """Each odd text alone, in pairs and all together."""
    files = [[text] for text in ODD] + [list(pair) for pair in itertools.combinations(ODD, 2)] + [ODD]
    for texts in files:
        out = io.StringIO()
        writer = csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\r\n")
        writer.writerows([["text", "label"], *([text, "x"] for text in texts)])
        table = read_table(write("a.tsv" if delimiter == "\t" else "a.csv", out.getvalue()))
        assert [row["text"] for row in table.rows] == texts
        assert {row["label"] for row in table.rows} == {"x"}


@pytest.mark.parametrize(
    "content",
    [
        'text,label\nx, "a"\ny, "b, c"\n',
        '"text", "label"\n"x", "a"\n"y", "b, c"\n',
        'text,  label\nx,  "a"\n y,"b, c"\n',
    ],
)
def test_a_quote_after_a_blank_quotes(write, content):
    assert [row["label"] for row in read_table(write("a.csv", content)).rows] == ["a", "b, c"]
    tabs = content.replace("b, c", "b@ c").replace(",", "\t").replace("@", ",")
    assert [row["label"] for row in read_table(write("a.tsv", tabs)).rows] == ["a", "b, c"]


def test_quotes_after_blanks_that_are_text_stay(write):
    rows = read_table(write("a.csv", 'text,label\n"he, ""x"" y",a\n" ""a""",b\n "Wow" he said,c\n')).rows
    assert [row["text"] for row in rows] == ['he, "x" y', ' "a"', ' "Wow" he said']


def test_lone_quotes_after_blanks_join_no_rows(write):
    rows = read_table(write("a.csv", 'text,label\n "Hello,a\nyou,b\n there",c\nbye "now",d\n')).rows
    assert [row["label"] for row in rows] == ["a", "b", "c", "d"]


def test_lone_quotes_with_tabs_are_text_where_lines_are_alike(write):
    """As one record of two lines it would lose a row."""
    rows = read_table(write("a.tsv", 'text\tlabel\n"Hello\t1\n"\t0\n')).rows
    assert rows == [{"text": '"Hello', "label": "1"}, {"text": '"', "label": "0"}]


def test_line_breaks_of_a_text_are_the_same_for_a_model_whatever_the_file_has(write):
    for end in ("\n", "\r\n", "\r"):
        table = read_table(write("a.csv", f'text,label{end}"one{end}two",a{end}three,b{end}'))
        assert table.rows[0]["text"] == f"one{end}two"
        assert make_examples(table, ColumnSettings("text", "label"), "class", ("a", "b")).texts[0] == ("one\ntwo",)
