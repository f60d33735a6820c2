"""Tables whose columns cannot be used: each gives one line with the place, the value, the rule and the way out."""

import json

import pytest

from tasks.files.examples import make_examples, split
from tasks.files.label_kinds import ColumnSettings, find_labels
from tasks.files.tables import read_table
from tests.tasks.one_line import message_of, says

CSV, JSONL = "rows.csv", "rows.jsonl"
MANY = "".join(f"text {i},name {i}\n" for i in range(1001))
COUNTS = "".join(f"text {i},{i}\n" for i in range(1001))
DIGITS = "text,label\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(12))

# file, content, settings beside text and label, what the message says after the name of the file
FAULTS = [
    (CSV, "text,labels\na,1\nb,2\n", {}, ": no column 'label' ... mean labels"),
    (CSV, "text|label\na|1\nb|2\n", {}, ": no column ... delimiter to '|'"),
    (CSV, "Text,label\na,1\nb,2\n", {}, ": no column 'text' ... mean Text"),
    (CSV, "ham,x\nspam,y\n", {}, ": no column ... header"),
    (JSONL, [{"text": "a", "soft": {"0": 1}}], {"label": ("soft.0", "soft.1")}, ": no column 'soft.1' ... soft.0"),
    (CSV, "text,label\na,1\nb,1\n", {}, ": 'label' ... '1' ... two"),
    (CSV, "text,label\na,\nb, \n", {}, ": no row ... 'label'"),
    (CSV, "text,label\na,1.5\nb,NaN\n", {}, ":3: label: 'NaN' is no label"),
    (CSV, "text,label\na,1.5\nb,nan\n", {"kind": "number"}, ":3: label: 'nan' is no number"),
    (CSV, "text,label\na,1.5\nb,-inf\n", {"kind": "number"}, ":3: label: '-inf' is no number"),
    (JSONL, [{"label": 1.5}, {"label": float("inf")}], {"kind": "number"}, ":2: label: inf is no number"),
    (JSONL, [{"label": "x"}, {"label": float("nan")}], {}, ":2: label: nan is no label"),
    (CSV, 'text,label\na,1.5\nb,"2,5"\n', {"kind": "number"}, ":3: label: '2,5' ... decimal point"),
    (CSV, "text,label\na,1\nb,bad\nc,2\n", {}, ":3: label: 'bad' ... name ... :2: label ... '1'"),
    (CSV, "text,label\na,1\nb,bad\n", {"kind": "number"}, ":3: label: 'bad' is no number ... kind to class"),
    (JSONL, [{"label": ["x", "y"]}], {"kind": "class"}, ":1: label: ['x', 'y'] ... 2 labels"),
    (JSONL, [{"label": '["x"]'}], {"kind": "class"}, ":1: label: ['x'] ... classes"),
    (JSONL, [{"label": "x\ud800"}], {}, ":1: label: 'x\\ud800' ... surrogate"),
    (JSONL, [{"label": {"x": "y"}}], {}, ":1: label: {'x': 'y'} is no label"),
    (CSV, "text,label\n" + MANY, {}, ": 'label' ... 1,001 ... 1,000"),
    (CSV, "text,label\n" + COUNTS, {}, ": 'label' ... 1,001 ... kind to number"),
    (CSV, "text,p,q\na,0.6,0.3\n", {"label": ("p", "q")}, ":2: p to q: ... [0.6, 0.3] ... 0.9 ... normalize"),
    (CSV, "text,p,q\na,1.5,-0.5\n", {"label": ("p", "q")}, ":2: p to q: ... -0.5 ... below 0"),
    (CSV, "text,p,q\na,0,0\n", {"label": ("p", "q"), "votes": True}, ":2: p to q: ... all 0"),
    (CSV, "text,p,q\na,0.5,x\n", {"label": ("p", "q")}, ":2: q: 'x' is no number ... votes"),
    (CSV, "text,p,q\na,1,2\n", {"label": ("p", "q"), "kind": "classes"}, ":2: q: '2' ... 0 or 1"),
    (JSONL, [{"label": {"x": 0.5, "y": 0.4}}], {}, ":1: label: ... [0.5, 0.4] ... 0.9"),
    (JSONL, [{"text": {"a": "b"}, "label": 1}, {"label": 2}], {}, ":1: text: {'a': 'b'} ... object ... text.a"),
    (JSONL, [{"text": "a", "label": 1}, {"text": 7, "label": 2}], {}, ":2: text: 7 is a number"),
    (JSONL, [{"text": ["a", "b"], "label": 1}, {"label": 2}], {}, ":1: text: ['a', 'b'] is a list"),
    (CSV, DIGITS, {}, ": ... 'text' ... numbers ... '0'"),
    (CSV, "text,label\n,1\n ,2\n", {}, ": none of 2 rows ... no text: 2"),
]


def content_of(content):
    """The text of a file; rows of JSON get a text where they have none."""
    return content if isinstance(content, str) else "".join(json.dumps({"text": "t"} | row) + "\n" for row in content)


@pytest.mark.parametrize(("name", "content", "settings", "pieces"), FAULTS)
def test_a_fault_has_one_line(write, name, content, settings, pieces):
    table = read_table(write(name, content_of(content)))
    columns = ColumnSettings(**{"text": "text", "label": "label", **settings})
    assert says(message_of(lambda: make_examples(table, columns, *find_labels(table, columns))), name + pieces)


@pytest.mark.parametrize(
    ("value", "labelled", "pieces"),
    [
        ("maybe", "needed", "rows.csv:3: label: unknown label 'maybe' ... no, yes"),
        ("maybe", "if there", "rows.csv:3: label: unknown label 'maybe'"),
        ("Nan", "needed", "rows.csv:3: label: 'Nan' is no label"),
        ("no,yes", "needed", "rows.csv:3: label: unknown label 'no,yes'"),
    ],
)
def test_a_label_that_the_model_does_not_know(write, value, labelled, pieces):
    table = read_table(write(CSV, f'text,label\na,yes\nb,"{value}"\n'))
    columns = ColumnSettings("text", "label")
    call = lambda: make_examples(table, columns, "class", ("no", "yes"), labelled=labelled)  # noqa: E731
    assert says(message_of(call), pieces)


def test_labels_that_differ_in_case_alone_are_not_guessed(write):
    table = read_table(write(CSV, "text,label\na,YES\n"))
    call = lambda: make_examples(table, ColumnSettings("text", "label"), "class", ("yes", "Yes"))  # noqa: E731
    assert says(message_of(call), "unknown label 'YES' ... yes, Yes")


@pytest.mark.parametrize(
    ("settings", "pieces"),
    [
        ({"text": ()}, "text names 0"),
        ({"text": ("a", "b", "c")}, "text names 3 ... (a, b, c)"),
        ({"kind": "regression"}, "kind ... 'regression' ... auto, class, classes, number"),
        ({"label": "text"}, "label names 'text' ... before"),
        ({"label": ("p", "p")}, "label names 'p' ... before"),
        ({"label": ("p", "q"), "kind": "number"}, "label names 2 columns"),
        ({"kind": "classes", "votes": True}, "votes ... kind to class"),
        ({"separator": ""}, "separator ... empty"),
    ],
)
def test_settings_that_make_no_sense(settings, pieces):
    assert says(message_of(lambda: ColumnSettings(**{"text": "text", "label": "label", **settings})), pieces)


def test_a_split_that_cannot_be(write):
    columns = ColumnSettings("text", "label")

    def examples(content):
        return make_examples(read_table(write(CSV, content)), columns, "class", ("1", "2"))

    two = examples("text,label\na,1\nb,2\n")
    assert says(message_of(split, two, 1.5, 0), "validation_share is 1.5 ... below 1")
    assert says(message_of(split, two, 0.5, 0), "2 rows ... kind to number")
    assert says(message_of(split, examples("text,label\na,1\nb,1\nc,2\n"), 0.1, 0), "3 rows ... too few ... 0.1")
    assert says(message_of(split, two._replace(targets=None), 0.5, 0), "no labels")
    call = lambda: make_examples(read_table(write(CSV, "text,label\na,1\n")), columns, "class", (), labelled="maybe")  # noqa: E731
    assert says(message_of(call), "labelled is 'maybe' ... if there")
