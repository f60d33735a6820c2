import pytest

from tasks.files.examples import make_examples
from tasks.files.label_kinds import ColumnSettings, find_labels, label_notes
from tasks.files.look_alikes import apart, groups
from tasks.files.tables import read_table
from tests.tasks.one_line import message_of, says

PAIRS = [
    ("caf\u00e9", "cafe\u0301"), ("Pos", "pos"), ("a\u200b", "a"), ("b\u00a0c", "b c"), ("\uff46\uff55", "fu"),
    ("\u0441\u043e\u0440", "cop"), ("not_hate", "not hate"), ("non-toxic", "non\u2013toxic"), ('"a"', "a"),
    ("don't", "don\u2019t"), ("\u2764", "\u2764\ufe0f"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "other"), PAIRS)
def test_names_that_look_alike_are_told(name, other):
    """In ASCII, so that the difference shows."""
    assert groups(["x", name, other, "y"]) == [[name, other]]
    note = label_notes([name, other])[0]
    assert ascii(name) in note
    assert ascii(other) in note
    assert ascii(name) in apart(name, ["x", other])


def test_other_names_are_not(write):
    assert label_notes(["-1", "1", "+", "-", "C", "C++", "yes", "no", "a", "b", "\u00e9", "e"]) == []
    assert apart("x", ["y"]) == ""


def test_an_unknown_label_shows_how_it_differs(write):
    table = read_table(write("a.csv", "text,label\nx,cafe\u0301\n"))
    message = message_of(lambda: make_examples(table, ColumnSettings("text", "label"), "class", ("caf\u00e9", "bar")))
    assert says(message, "a.csv:2: ... 'cafe\\u0301' ... 'caf\\xe9'")
    message = message_of(lambda: find_labels(table, ColumnSettings("text", "lab\u00e9l")))
    assert says(message, "no column")


def test_labels_that_other_programs_write_for_no_value_are_told():
    assert says(label_notes(["bad", "NA", "#N/A", "good"])[0], "'NA', '#N/A' ... empty")
    assert label_notes(["none", "nan", "-", "?", "Nasal"]) == []


def test_labels_in_quotes_are_told():
    for names in (["'pos'", "'neg'"], ['"pos', "neg"], ['pos"', "neg"]):
        assert says(label_notes(names)[0], "quot")
