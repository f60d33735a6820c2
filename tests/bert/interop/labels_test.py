"""Names of classes in config.json: complete, partial, in one mapping only; contradictions are refused."""

import pytest

from bert.errors import InputError
from bert.interop import labels
from tests.bert.refusals import refused


@pytest.mark.parametrize(
    ("values", "classes", "names"),
    [
        ({"id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}}, 2, ("no", "yes")),
        ({"label2id": {"yes": 1, "no": 0}}, 2, ("no", "yes")),
        ({"label2id": {"yes": "1", "no": "0"}}, 2, ("no", "yes")),
        ({"id2label": {"1": "yes", "0": "no"}}, 2, ("no", "yes")),
        ({"id2label": {"0": 1, "1": 2}}, 2, ("1", "2")),
        # Two stand-ins that an old writer left in a file of any number of classes.
        ({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}, 3, ("LABEL_0", "LABEL_1", "LABEL_2")),
        ({"num_labels": 3, "id2label": {"0": "LABEL_0"}}, 3, ("LABEL_0", "LABEL_1", "LABEL_2")),
        ({"num_labels": 3, "id2label": {"0": "no", "2": "yes"}}, 3, ("no", "LABEL_1", "yes")),
        ({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}, "label2id": {"no": 0, "yes": 1}}, 2, ("no", "yes")),
        ({"id2label": {"0": "no", "1": "yes"}, "label2id": {"LABEL_0": 0, "LABEL_1": 1}}, 2, ("no", "yes")),
        ({"num_labels": 1}, 1, ("LABEL_0",)),
        # A stand-in is the name of its own class; of another class it is a name like any other.
        ({"id2label": {"0": "LABEL_1", "1": "LABEL_0"}}, 2, ("LABEL_1", "LABEL_0")),
        ({"id2label": {"0": "LABEL_1", "1": "LABEL_2"}}, 2, ("LABEL_1", "LABEL_2")),
        ({"label2id": {"LABEL_1": 0, "LABEL_0": 1}}, 2, ("LABEL_1", "LABEL_0")),
        ({"id2label": {"0": "a", "1": "a", "2": "b"}}, 3, ("a", "a", "b")),
        # Nothing uses the names of a model without a classifier.
        ({"id2label": {"1": "no", "2": "yes"}}, None, ()),
        ({"num_labels": 10**9}, None, ()),
        ({"label2id": {"A": 0, "B": 0}}, None, ()),
        ({}, 2, ("LABEL_0", "LABEL_1")),
        ({"id2label": None, "label2id": None, "num_labels": None}, 2, ("LABEL_0", "LABEL_1")),
        ({}, None, ()),
        ({"id2label": {"0": "no", "1": "yes"}}, None, ("no", "yes")),
    ],
    ids=str,
)
def test_names_of_classes(values, classes, names):
    assert labels.read(values, classes, "config.json") == names


@pytest.mark.parametrize(
    ("values", "classes", "message"),
    [
        ({"num_labels": 2}, 3, "num_labels is 2, but the weights have 3 classes; set it to 3"),
        ({"num_labels": "3"}, 3, "num_labels is .3.; .*whole number"),
        ({"num_labels": True}, 1, "num_labels is True; it must be a whole number"),
        ({"num_labels": 10**9}, 3, "num_labels is 1000000000; .*999,999"),
        (
            {"id2label": {"0": "no", "1": "yes"}},
            3,
            r"id2label names 2 classes \(0 to 1\), the weights have 3; name each once",
        ),
        ({"label2id": {"no": 1, "yes": 2}}, 2, r"label2id names 2 classes \(0 to 2\), the weights have 2"),
        (
            {"id2label": {"1": "no", "2": "yes"}, "label2id": {"yes": 2}},
            2,
            r"id2label and label2id name 2 classes \(0 to 2\)",
        ),
        ({"label2id": {"A": 0, "B": 0}}, 1, "class 0 is 'A' and 'B' in label2id; name each class once"),
        ({"num_labels": 2, "id2label": {"0": "a", "2": "c"}}, 2, r"\(0 to 2\), num_labels says 2"),
        ({"id2label": {"zero": "no"}}, 1, "id2label holds 'zero' where a class's number belongs; write 0, 1"),
        ({"label2id": {"no": -1}}, 1, "label2id holds -1 where a class's number belongs"),
        ({"id2label": ["no", "yes"]}, 2, "id2label is a list, not an object"),
        ({"id2label": {"0": ["no"]}}, 1, r"id2label calls class 0 \['no'\]; a name is a text or a number"),
        ({"id2label": {"0": "no", "1": {"a": 1}}}, 2, r"id2label calls class 1 \{'a': 1\}; a name is a text"),
        ({"id2label": {"0": None}}, 1, "id2label calls class 0 None; a name is a text or a number"),
        (
            {"id2label": {"0": "\ud800"}},
            1,
            r"id2label calls class 0 '\\ud800', .*surrogate",
        ),
        (
            {"id2label": {"0": "no"}, "label2id": {"yes": 0}},
            1,
            "class 0 is 'yes' in label2id and 'no' in id2label; name each class once",
        ),
    ],
    ids=str,
)
def test_what_is_refused(values, classes, message):
    with pytest.raises(InputError, match=f"^config.json: .*{message}"):
        labels.read(values, classes, "config.json")


def test_what_is_written_is_read_again():
    names = ("no", "yes", "7")
    assert labels.read(labels.write(names, "out"), 3, "config.json") == names
    assert labels.write((), "out") == {}


def test_what_is_no_text_is_not_written():
    with refused("out: class 1", r"'\ud800'", "surrogate"):
        labels.write(("a", "\ud800"), "out")


def test_two_classes_of_one_name_are_not_written():
    """label2id would keep one of them."""
    with refused("out: classes 0 and 2", "'a'"):
        labels.write(("a", "b", "a"), "out")
