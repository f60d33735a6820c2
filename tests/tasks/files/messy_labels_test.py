"""Tables whose columns cannot be used: each gives one line with the place, the value, the rule and the way out."""

import json

import numpy as np
import pytest

from bert.errors import InputError
from tasks.files.examples import make_examples, split
from tasks.files.label_kinds import ColumnSettings, find_labels
from tasks.files.tables import read_table
from tests.tasks.one_line import message_of, says_so

CSV, JSONL = "rows.csv", "rows.jsonl"
MANY = "".join(f"text {i},name {i}\n" for i in range(1001))
COUNTS = "".join(f"text {i},{i}\n" for i in range(1001))
DIGITS = "text,label\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(12))

# file, content, settings beside text and label, what the message says
FAULTS = [
    (
        CSV,
        "text,labels\na,1\nb,2\n",
        {},
        r"rows\.csv: no column 'label'; did you mean labels\?; the columns are text, lab",
    ),
    (CSV, "text|label\na|1\nb|2\n", {}, r"rows\.csv: no column .* set delimiter to '\|'"),
    (CSV, "Text,label\na,1\nb,2\n", {}, r"rows\.csv: no column 'text'; did you mean Text\?"),
    (
        CSV,
        "ham,x\nspam,y\n",
        {},
        r"no column 'label'; .* \(or columns to their names, where the first line is no header\)",
    ),
    (
        JSONL,
        [{"text": "a", "soft": {"0": 1}}],
        {"label": ("soft.0", "soft.1")},
        "no column 'soft.1'; did you mean soft.0",
    ),
    (CSV, "text,label\na,1\nb,1\n", {}, r"rows\.csv: 'label' holds one label in all rows \('1'\); .* needs two"),
    (CSV, "text,label\na,\nb, \n", {}, r"rows\.csv: no row has a label in 'label'"),
    (CSV, "text,label\na,1.5\nb,NaN\n", {}, r"rows\.csv:3: label: 'NaN' is no label; leave the cell empty"),
    (CSV, "text,label\na,1.5\nb,nan\n", {"kind": "number"}, r"rows\.csv:3: label: 'nan' is no number \(nor are NaN"),
    (CSV, "text,label\na,1.5\nb,-inf\n", {"kind": "number"}, r"rows\.csv:3: label: '-inf' is no number"),
    (
        JSONL,
        [{"text": "a", "label": 1.5}, {"text": "b", "label": float("inf")}],
        {"kind": "number"},
        r":2: label: inf is no",
    ),
    (JSONL, [{"text": "a", "label": "x"}, {"text": "b", "label": float("nan")}], {}, r":2: label: nan is no label"),
    (
        CSV,
        'text,label\na,1.5\nb,"2,5"\n',
        {"kind": "number"},
        r":3: label: '2,5' is no number .* write a decimal point",
    ),
    (
        CSV,
        "text,label\na,1\nb,bad\nc,2\n",
        {},
        r":3: label: 'bad' is a name, but .*:2: label has .* '1'",
    ),
    (CSV, "text,label\na,1\nb,bad\n", {"kind": "number"}, r":3: label: 'bad' is no number .* set kind to class"),
    (
        JSONL,
        [{"text": "a", "label": ["x", "y"]}],
        {"kind": "class"},
        r":1: label: \['x', 'y'\] holds 2 labels where one",
    ),
    (
        JSONL,
        [{"text": "a", "label": '["x"]'}],
        {"kind": "class"},
        r":1: label: \['x'\] holds 1 labels where one .* classes",
    ),
    (JSONL, [{"text": "a", "label": "x\ud800"}], {}, r":1: label: 'x\\ud800' has an unpaired surrogate"),
    (JSONL, [{"text": "a", "label": {"x": "y"}}], {}, r":1: label: \{'x': 'y'\} is no label"),
    (CSV, "text,label\n" + MANY, {}, r"'label' holds 1,001 labels .*, more than 1,000; is it the right column\?"),
    (CSV, "text,label\n" + COUNTS, {}, r"holds 1,001 labels .* set kind to number to predict numbers"),
    (
        CSV,
        "text,p,q\na,0.6,0.3\n",
        {"label": ("p", "q")},
        r":2: p to q: the shares \[0\.6, 0\.3\] sum to 0\.9, not 1; .* norma",
    ),
    (CSV, "text,p,q\na,1.5,-0.5\n", {"label": ("p", "q")}, r":2: p to q: the share -0\.5 is below 0"),
    (CSV, "text,p,q\na,0,0\n", {"label": ("p", "q"), "votes": True}, r":2: p to q: the shares are all 0"),
    (CSV, "text,p,q\na,0.5,x\n", {"label": ("p", "q")}, r":2: q: 'x' is no number .* one column .* votes"),
    (CSV, "text,p,q\na,1,2\n", {"label": ("p", "q"), "kind": "classes"}, r":2: q: '2' must be 0 or 1"),
    (JSONL, [{"text": "a", "label": {"x": 0.5, "y": 0.4}}], {}, r":1: label: the shares \[0\.5, 0\.4\] sum to 0\.9"),
    (
        JSONL,
        [{"text": {"a": "b"}, "label": 1}, {"text": "", "label": 2}],
        {},
        r":1: text: .* is an object, not text; .* text\.a",
    ),
    (JSONL, [{"text": "a", "label": 1}, {"text": 7, "label": 2}], {}, r":2: text: 7 is a number, not text"),
    (JSONL, [{"text": ["a", "b"], "label": 1}, {"text": "", "label": 2}], {}, r":1: text: .* is a list, not text"),
    (CSV, DIGITS, {}, r"rows\.csv: the text column 'text' holds numbers only \('0', \.\.\.\); set text"),
    (CSV, "text,label\n,1\n ,2\n", {}, r"none of 2 rows can be used \(no text: 2\)"),
]


def content_of(content):
    return content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content)


@pytest.mark.parametrize(("name", "content", "settings", "says"), FAULTS, ids=[fault[3][:40] for fault in FAULTS])
def test_a_fault_is_told_in_one_line(write, name, content, settings, says):
    table = read_table(write(name, content_of(content)))
    columns = ColumnSettings(**{"text": "text", "label": "label", **settings})
    assert says_so(says, message_of(lambda: make_examples(table, columns, *find_labels(table, columns))))


@pytest.mark.parametrize(
    ("value", "labelled", "says"),
    [
        ("maybe", "needed", r"rows\.csv:3: label: unknown label 'maybe'; known: no, yes; mend it, or train with it"),
        ("maybe", "if there", r"unknown label 'maybe'"),
        ("Nan", "needed", r":3: label: 'Nan' is no label"),
        ("no,yes", "needed", r"unknown label 'no,yes'"),
    ],
)
def test_a_label_that_the_model_does_not_know(write, value, labelled, says):
    table = read_table(write(CSV, f'text,label\na,yes\nb,"{value}"\n'))
    columns = ColumnSettings("text", "label")
    assert says_so(says, message_of(lambda: make_examples(table, columns, "class", ("no", "yes"), labelled=labelled)))


def test_labels_that_differ_in_case_alone_are_not_guessed(write):
    table = read_table(write(CSV, "text,label\na,YES\n"))
    call = lambda: make_examples(table, ColumnSettings("text", "label"), "class", ("yes", "Yes"))  # noqa: E731
    assert says_so("unknown label 'YES'; known: yes, Yes", message_of(call))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"text": ()}, r"text names 0 columns"),
        ({"text": ("a", "b", "c")}, r"text names 3 columns \(a, b, c\); name one, or the two of a pair"),
        ({"kind": "regression"}, "kind is 'regression'; .* auto, class, classes, number"),
        ({"label": "text"}, "label names 'text', which is named before"),
        ({"label": ("p", "p")}, "label names 'p', which is named before"),
        ({"label": ("p", "q"), "kind": "number"}, "label names 2 columns; a number to predict is in one"),
        ({"kind": "classes", "votes": True}, "votes are shares of one label; set kind to class"),
        ({"separator": ""}, "separator is empty"),
    ],
)
def test_settings_that_make_no_sense(settings, says):
    assert says_so(says, message_of(lambda: ColumnSettings(**{"text": "text", "label": "label", **settings})))


def test_a_split_that_cannot_be(write):
    table = read_table(write(CSV, "text,label\na,1\nb,2\n"))
    columns = ColumnSettings("text", "label")
    made = make_examples(table, columns, "class", ("1", "2"))
    assert says_so("validation_share is 1.5; .* below 1", message_of(split, made, 1.5, 0))
    assert says_so("each of its 2 rows has a label of its own, .* set kind to number", message_of(split, made, 0.5, 0))
    few = make_examples(read_table(write(CSV, "text,label\na,1\nb,1\nc,2\n")), columns, "class", ("1", "2"))
    assert says_so("3 rows are too few to split off 0.1", message_of(split, few, 0.1, 0))
    assert says_so("has no labels to split by", message_of(split, made._replace(targets=None), 0.5, 0))
    with pytest.raises(InputError, match="labelled is 'maybe'"):
        make_examples(table, columns, "class", ("1", "2"), labelled="maybe")
    assert np.isfinite(made.targets).all()
