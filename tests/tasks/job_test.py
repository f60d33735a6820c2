"""What jobs share: parts of the data, metrics by name, and settings that are refused."""

import dataclasses

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
    with pytest.raises(InputError, match=r"^config\.data is missing; .*rows$"):
        parts(config(data=""))


def test_metrics_are_the_usual_ones_or_those_that_are_named():
    assert job.metric_names("", ("f1", "n"), ("f1", "em", "n")) == ("f1", "n")
    assert job.metric_names(" em, f1", ("f1", "n"), ("f1", "em", "n")) == ("em", "f1")
    with pytest.raises(InputError, match=r"metrics is 'bleu'; .* f1, n$"):
        job.metric_names("f1,bleu", ("f1",), ("f1", "n"))


def test_the_first_metric_chooses_unless_another_is_named():
    names = ("n", "kl", "f1")
    assert job.choice_of(config(metric=""), names, ("kl",), ["row"], "ce") == Choice("kl", False, 2, "ce")
    assert job.choice_of(config(metric="f1"), names, ("kl",), ["row"], "ce") == Choice("f1", True, 2, "ce")
    assert job.choice_of(config(metric="f1"), names, ("kl",), None, "ce") is None
    for metric in ("em", "n"):  # of numbers of rows none is better than another
        with pytest.raises(InputError, match=rf"metric is '{metric}'; .* f1, ce"):
            job.choice_of(config(metric=metric), names, ("kl",), None, "ce")


@pytest.mark.parametrize("rate", [1.0, -0.1, float("nan")])
def test_a_dropout_that_is_no_share_is_refused(rate):
    assert job.dropout_rate(config(classifier_dropout=None)) is None
    assert job.dropout_rate(config(classifier_dropout=0)) == 0.0
    with pytest.raises(InputError, match=r"classifier_dropout is .* below 1"):
        job.dropout_rate(config(classifier_dropout=rate))


@dataclasses.dataclass(frozen=True)
class FakeJob:
    """Fingerprints are the labels in the order that is asked for, and the kind of split."""

    split: str
    labels: tuple[str, ...] = ("a", "b")
    positive: str = "a"

    @property
    def fingerprint(self):
        return "".join(self.labels) + self.split

    def with_labels(self, labels):
        return dataclasses.replace(self, labels=tuple(labels))


@pytest.mark.parametrize(
    ("data", "labels", "said", "kept", "split", "positive"),
    [
        ("ab together", ["a", "b"], "", "b", "together", "b"),
        ("ba apart", ["b", "a"], "", "b", "apart", "b"),
        ("ba apart", ["b", "a"], "a", "b", "apart", "a"),  # the setting
        ("others", ["a", "b"], "", "b", "together", "b"),  # whose run is then refused by its checksum
        ("others", ["c"], "", "c", "together", "a"),
    ],
)
def test_a_run_goes_on_with_the_split_and_the_class_it_was_begun_with(data, labels, said, kept, split, positive):
    def read(config, *, equal_apart=False):
        return FakeJob(" apart" if equal_apart else " together")

    config = ConfigDict({"positive": said})
    settings = {"data_sha256": data, "labels": labels, "extra": {"scored": {"positive": kept}}}
    made = job.as_begun(read, config, settings)
    assert (made.split, made.positive) == (f" {split}", positive)  # type: ignore[attr-defined]
    assert job.as_begun(read, config, None) == FakeJob(" together")
    assert job.as_begun(read, ConfigDict(), {"data_sha256": "ab together", "labels": ["a", "b"]}) == FakeJob(
        " together"
    )
