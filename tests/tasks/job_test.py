"""What jobs share: parts of the data, metrics by name, and settings that are refused."""

import pytest
from ml_collections import ConfigDict

from bert.errors import InputError
from bert.training.best import Choice
from tasks import job


def config(**settings) -> ConfigDict:
    return ConfigDict({"data": "a", "validation": "", "validation_share": 0.0, "seed": 3, "patience": 2} | settings)


def parts(settings: ConfigDict):
    return job.read_parts(settings, "rows", lambda path: [path], lambda train, *how: (train, [*train, *how]))


def test_parts_are_two_files_or_one_that_is_split():
    assert parts(config()) == (["a"], None)
    assert parts(config(validation_share=0.5)) == (["a"], ["a", 0.5, 3])
    assert parts(config(validation="b", validation_share=0.5)) == (["a"], ["b"])
    with pytest.raises(InputError, match=r"^config\.data is missing; name the file with the rows$"):
        parts(config(data=""))


def test_metrics_are_the_usual_ones_or_those_that_are_named():
    assert job.metric_names("", ("f1", "n"), ("f1", "em", "n")) == ("f1", "n")
    assert job.metric_names(" em, f1", ("f1", "n"), ("f1", "em", "n")) == ("em", "f1")
    with pytest.raises(InputError, match=r"^metric 'bleu' is unknown for these data; it must be one of f1, n$"):
        job.metric_names("f1,bleu", ("f1",), ("f1", "n"))


def test_the_first_metric_chooses_unless_another_is_named():
    assert job.choice_of(config(metric=""), ("kl", "f1"), ("kl",), ["row"]) == Choice("kl", False, 2)
    assert job.choice_of(config(metric="f1"), ("kl", "f1"), ("kl",), ["row"]) == Choice("f1", True, 2)
    assert job.choice_of(config(metric="f1"), ("kl", "f1"), ("kl",), None) is None
    with pytest.raises(InputError, match=r"config\.metric is 'em'; it must be one of those computed: kl, f1"):
        job.choice_of(config(metric="em"), ("kl", "f1"), ("kl",), None)


@pytest.mark.parametrize("rate", [1.0, -0.1, float("nan")])
def test_a_dropout_that_is_no_share_is_refused(rate):
    assert job.dropout_rate(config(classifier_dropout=None)) is None
    assert job.dropout_rate(config(classifier_dropout=0)) == 0.0
    with pytest.raises(InputError, match=r"config\.classifier_dropout is .*; it must be from 0 to below 1"):
        job.dropout_rate(config(classifier_dropout=rate))
