"""The settings of a classifier in config.json: as written, those of models that others trained, damaged ones."""

import pytest

from bert.architectures.bert import BertConfig
from bert.errors import InputError
from bert.prediction import classification
from bert.prediction.classification import ClassificationOptions

CONFIG = BertConfig.of_size("tiny", vocab_size=100)
WRITTEN = ClassificationOptions("classes", ("title", "review"), 64, 0.25)


def read(extra, labels=("a", "b")):
    return classification.options_of(extra, labels, CONFIG)


def test_written_and_read_again_they_are_the_same():
    assert read(WRITTEN.to_json() | {"other": 1}) == WRITTEN
    assert read(ClassificationOptions("class", (), 9_999).to_json()).max_length == CONFIG.max_length


def test_models_that_others_trained():
    assert read({}) == ClassificationOptions("class", (), CONFIG.max_length)
    assert read({}, ("score",)).kind == "number"
    assert read({"problem_type": "multi_label_classification"}).kind == "classes"
    assert read({"problem_type": None}).kind == "class"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"problem_type": "multi_label"}, "problem_type in .*'multi_label'; .*multi_label_class"),
        ({"problem_type": None}, "problem_type in .*None"),
        ({"classification": None}, "classification in config.json is None; it must be like .*threshold"),
        ({"classification": {"text": ["review"], "max_length": 64}}, "'max_length': 64}; .*threshold"),
        ({"classification": {"text": "review", "max_length": 64, "threshold": 0.5}}, "'text': 'review'"),
        ({"classification": {"text": [1], "max_length": 64, "threshold": 0.5}}, r"'text': \[1\]"),
        ({"classification": {"text": [], "max_length": "64", "threshold": 0.5}}, "'max_length': '64'"),
    ],
)
def test_damaged_settings_are_refused_by_name(damage, message):
    """A model that would read other columns, or take several labels for one."""
    with pytest.raises(InputError, match=message):
        read(WRITTEN.to_json() | damage)
