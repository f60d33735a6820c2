"""Scores of each class against the rest equal scikit-learn's wherever these mean something."""

import numpy as np
import pytest
import sklearn.metrics

from tasks.metrics import class_table


@pytest.fixture
def rng():
    return np.random.default_rng(6)


@pytest.mark.parametrize("digits", [1, 12])
@pytest.mark.parametrize("classes", [2, 4])
def test_each_class_and_the_macro_means_equal_scikit_learn(rng, classes, digits):
    """With one digit most rows share their probability with another."""
    labels = [f"label {c}" for c in range(classes)]
    for _ in range(10):
        gold = np.concatenate([np.arange(classes), rng.integers(0, classes, 40)])
        shares = rng.dirichlet(np.ones(classes), len(gold)).round(digits)
        each, macro = class_table.of_classes(np.eye(classes)[gold], shares, "class", labels)
        said = shares.argmax(axis=1)
        wanted = sklearn.metrics.precision_recall_fscore_support(
            gold, said, labels=range(classes), zero_division=np.nan
        )
        areas = [
            [sklearn.metrics.roc_auc_score(gold == c, shares[:, c]) for c in range(classes)],
            [sklearn.metrics.average_precision_score(gold == c, shares[:, c]) for c in range(classes)],
        ]
        for c, label in enumerate(labels):
            row = each[label]
            for name, values in zip(("precision", "recall", "f1", "support"), wanted, strict=True):
                assert row[name].value == (None if np.isnan(values[c]) else pytest.approx(values[c])), name
            assert row["predicted"].value == (said == c).sum()
            assert [row[name].value for name in class_table.AREAS] == pytest.approx([area[c] for area in areas])
        assert [macro[name].value for name in class_table.AREAS] == pytest.approx([np.mean(area) for area in areas])
        assert macro["f1"].value == pytest.approx(np.nanmean(wanted[2]))


def test_several_labels_a_row(rng):
    gold, shares = rng.integers(0, 2, (30, 3)), rng.uniform(size=(30, 3))
    each, macro = class_table.of_classes(gold.astype(np.float32), shares, "classes", "abc", threshold=0.3)
    assert each["b"]["recall"].value == pytest.approx(sklearn.metrics.recall_score(gold[:, 1], shares[:, 1] > 0.3))
    for name, function in zip(
        class_table.AREAS, (sklearn.metrics.roc_auc_score, sklearn.metrics.average_precision_score), strict=True
    ):
        assert macro[name].value == pytest.approx(function(gold, shares, average="macro"))


def test_a_class_without_rows_or_without_others_has_no_areas_and_is_left_out_of_the_mean():
    gold, shares = np.eye(3)[[0, 0, 1]], np.array([[0.8, 0.1, 0.1], [0.5, 0.3, 0.2], [0.3, 0.6, 0.1]])
    each, macro = class_table.of_classes(gold, shares, "class", "abc")
    assert each["c"]["roc_auc"].value is each["c"]["average_precision"].value is None
    assert each["c"]["support"].value == 0
    assert macro["roc_auc"].value == 1
    assert "1 of 3" in macro["roc_auc"].reason
    _, alone = class_table.of_classes(gold[:2], shares[:2], "class", "abc")
    assert alone["roc_auc"].value is alone["average_precision"].value is None
    broken, _ = class_table.of_classes(gold, np.where(shares == 0.8, np.nan, shares), "class", "abc")
    assert broken["a"]["roc_auc"].value is broken["a"]["f1"].value is None
    same = class_table.areas(np.array([True, False, False, False]), np.full(4, 0.25))
    assert [same[name].value for name in class_table.AREAS] == [0.5, 0.25]  # as scikit-learn


def test_the_table_has_a_line_a_class():
    gold, shares = np.eye(2)[[0, 0, 1]], np.array([[0.8, 0.2], [0.5, 0.5], [0.7, 0.3]])
    lines = class_table.table(*class_table.of_classes(gold, shares, "class", ("no", "a long name"))).splitlines()
    assert [line.split()[0] for line in lines] == ["class", "no", "a", "macro"]
    assert lines[0].split()[1:] == ["precision", "recall", "f1", "support", "predicted", "roc_auc", "average_precision"]
    assert lines[1].split()[1:6] == ["0.6667", "1.0000", "0.8000", "2", "3"]
    assert lines[2].split()[3:8] == ["-", "0.0000", "0.0000", "1", "0"]  # never predicted: precision is undefined
    assert len({len(line) for line in lines}) == 1
