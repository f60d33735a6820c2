"""Scores equal scikit-learn's and scipy's wherever these mean something."""

import json

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics

from tasks.metrics import classification_metrics
from tests.tasks.metrics.targets import ALL_CLASS, ALL_NUMBER, NO_YES, column, one_hot, values


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads((shared / "golden" / "task_metrics.json").read_text())


def test_golden_binary(golden):
    for case in golden["binary_classification"]:
        gold, predicted = case["gold"], case["pred"]
        scores = classification_metrics.score(ALL_CLASS, one_hot(gold, 2), one_hot(predicted, 2), "class", NO_YES)
        found, nothing = values(scores), 1 not in gold + predicted
        assert found["accuracy"] == pytest.approx(case["accuracy"], abs=1e-12)
        # where scikit-learn's 0 stands for 0/0, there is no value, but a reason
        for ours, name in (("f1", "f1_binary"), ("acc_and_f1", "acc_and_f1")):
            assert found[ours] == (None if nothing else pytest.approx(case[name], abs=1e-12)), case["name"]
            assert (scores[ours].reason == "no row is yes, and it is never predicted") == nothing
        if len(set(gold)) == 1:
            assert scores["matthews"] == (None, "all rows are of one class")
            assert case["matthews"] == 0
        else:
            assert found["matthews"] == pytest.approx(case["matthews"], abs=1e-12)
            assert (scores["matthews"].reason is not None) == (len(set(predicted)) == 1)


def test_golden_multiclass(golden):
    names = {"accuracy": "accuracy", "macro_f1": "f1_macro", "micro_f1": "f1_micro", "weighted_f1": "f1_weighted"}
    for case in golden["multiclass"]:
        gold, predicted = one_hot(case["gold"], 3), one_hot(case["pred"], 3)
        found = values(classification_metrics.score([*names, "matthews"], gold, predicted, "class", "abc"))
        expected = {ours: case[name] for ours, name in names.items()} | {"matthews": case["matthews"]}
        assert found == pytest.approx(expected, abs=1e-12), case["name"]


def test_golden_regression(golden):
    for case in golden["regression"]:
        scores = classification_metrics.score(ALL_NUMBER, column(case["gold"]), column(case["pred"]), "number", ())
        for name in ("pearson", "spearman", "corr", "mse"):
            assert scores[name].value == (None if case[name] is None else pytest.approx(case[name], abs=1e-9))
            assert (scores[name].reason is None) == (case[name] is not None), case["name"]


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_random_classes_equal_scikit_learn(rng, classes):
    for _ in range(20):
        gold = rng.integers(0, classes, 30)
        shares = rng.dirichlet(np.ones(classes), 30)
        labels = [f"label {number}" for number in range(classes)]
        wanted = ["accuracy", "macro_f1", "weighted_f1", "matthews", "cross_entropy", *(f"f1:{x}" for x in labels)]
        wanted += [f"{kind}:{labels[1]}" for kind in ("precision", "recall")]
        found = values(classification_metrics.score(wanted, one_hot(gold, classes), shares, "class", labels))
        said = shares.argmax(axis=1)
        each = sklearn.metrics.f1_score(gold, said, labels=range(classes), average=None, zero_division=np.nan)
        assert [found[f"f1:{label}"] for label in labels] == pytest.approx(
            [None if np.isnan(value) else value for value in each]
        )
        assert found["macro_f1"] == pytest.approx(sklearn.metrics.f1_score(gold, said, average="macro"))
        weighted = sklearn.metrics.f1_score(gold, said, average="weighted", zero_division=0)
        assert found["weighted_f1"] == pytest.approx(weighted)
        assert found["matthews"] == pytest.approx(sklearn.metrics.matthews_corrcoef(gold, said))
        assert found["cross_entropy"] == pytest.approx(sklearn.metrics.log_loss(gold, shares, labels=range(classes)))
        for kind, function in (
            ("precision", sklearn.metrics.precision_score),
            ("recall", sklearn.metrics.recall_score),
        ):
            reference = function(gold == 1, said == 1, zero_division=np.nan)
            assert found[f"{kind}:label 1"] == (None if np.isnan(reference) else pytest.approx(reference))


def test_several_labels_equal_scikit_learn(rng):
    for _ in range(20):
        gold, shares = rng.integers(0, 2, (25, 4)), rng.uniform(size=(25, 4))
        names = ("micro_f1", "macro_f1", "weighted_f1", "exact_match", "cross_entropy", "f1:c")
        found = values(
            classification_metrics.score(names, gold.astype(np.float32), shares, "classes", "abcd", threshold=0.4)
        )
        said = shares > 0.4
        for average in ("micro", "macro", "weighted"):
            assert found[f"{average}_f1"] == pytest.approx(sklearn.metrics.f1_score(gold, said, average=average))
        assert found["exact_match"] == pytest.approx(sklearn.metrics.accuracy_score(gold, said))
        assert found["f1:c"] == pytest.approx(sklearn.metrics.f1_score(gold[:, 2], said[:, 2]))
        losses = [sklearn.metrics.log_loss(gold[:, label], shares[:, label], labels=[0, 1]) for label in range(4)]
        assert found["cross_entropy"] == pytest.approx(np.mean(losses))


@pytest.mark.parametrize("digits", [0, 1, 8])
def test_random_numbers_equal_scipy(rng, digits):
    for scale in (1.0, 1e6, 1e-6):
        x = rng.normal(size=40).round(digits)
        y = (x + rng.normal(size=40)).round(digits) * scale + 3 * scale
        found = values(classification_metrics.score(ALL_NUMBER, column(x), column(y), "number", ()))
        assert found["pearson"] == pytest.approx(scipy.stats.pearsonr(x, y).statistic, abs=1e-10)
        assert found["spearman"] == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-12)
        assert found["mse"] == pytest.approx(sklearn.metrics.mean_squared_error(x, y))
        assert found["mae"] == pytest.approx(sklearn.metrics.mean_absolute_error(x, y))
