"""Rules of scores: what has no meaning, ties, soft targets, constant answers, names, what is refused, reports."""

import json
import math

import numpy as np
import pytest
import scipy.special
import sklearn.metrics

from bert.errors import InputError
from tasks.metrics import classification_metrics, score
from tests.tasks.metrics.targets import ALL_CLASS, ALL_NUMBER, NO_YES, column, one_hot, values


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_case_47_a_number_a_row():
    targets, predictions = column([0, 2.5, 5, 1]), column([0.5, 2, 4, 1.5])
    found = values(classification_metrics.score(ALL_NUMBER, targets, predictions, "number", ()))
    assert found["mse"] == 0.4375
    assert found["pearson"] == pytest.approx(0.98927, abs=5e-6)
    assert found["spearman"] == pytest.approx(1.0, abs=1e-12)
    for swapped in ((targets, predictions[:, 0]), (targets[:, 0], predictions), (targets[:, 0], predictions[:, 0])):
        with pytest.raises(ValueError, match=r"must both be \(rows, 1\)"):
            classification_metrics.score(ALL_NUMBER, *swapped, "number", ())
    with pytest.raises(ValueError, match="must both be"):
        classification_metrics.worst_rows(targets, predictions[:, 0], "number")


@pytest.mark.parametrize(("gold", "said", "reason"), [
    ([1, 2, 3], [2, 2, 2], "the predictions are constant"),
    ([2, 2, 2], [1, 2, 3], "the targets are constant"),
    ([2, 2, 2], [0.1, 0.1, 0.1], "the targets and predictions are constant"),
    ([2], [1], "one row only"),
])  # fmt: skip
def test_case_47_constant_numbers_have_no_correlation(gold, said, reason):
    scores = classification_metrics.score(ALL_NUMBER, column(gold), column(said), "number", ())
    assert [scores[name] for name in ("pearson", "spearman", "corr")] == [(None, reason)] * 3
    assert scores["mse"].value is not None


def test_case_48_a_run_that_says_one_class_is_marked_and_counts_as_chance():
    targets, predictions = one_hot([0, 1, 1, 0], 2), one_hot([1, 1, 1, 1], 2)
    scores = classification_metrics.score(ALL_CLASS, targets, predictions, "class", NO_YES)
    assert scores["matthews"] == (0.0, "predicts one class only: yes")
    assert classification_metrics.constant_answer(targets, predictions, "class", NO_YES) == "yes"
    assert classification_metrics.constant_answer(targets, targets, "class", NO_YES) is None
    assert classification_metrics.constant_answer(targets[:1], predictions[:1], "class", NO_YES) is None
    assert classification_metrics.constant_answer(targets[1:3], predictions[1:3], "class", NO_YES) is None  # all right
    assert classification_metrics.constant_answer(targets, np.full((4, 2), np.nan), "class", NO_YES) is None
    assert classification_metrics.constant_answer(column([1, 2]), column([1.5, 1.501]), "number", ()) == "about 1.5"
    assert classification_metrics.constant_answer(column([1, 2]), column([1.5, 1.6]), "number", ()) is None
    assert classification_metrics.constant_answer(column([2, 2]), column([2, 2]), "number", ()) is None
    same, of_rows = np.array([[0.9, 0.2], [0.6, 0.1]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    assert classification_metrics.constant_answer(of_rows, same, "classes", "ab") == "a"
    assert classification_metrics.constant_answer(of_rows, same, "classes", "ab", threshold=0.95) == "no label"
    assert classification_metrics.constant_answer(of_rows, same, "classes", "ab", threshold=0.7) is None


def test_case_49_several_labels():
    targets = np.array([[1, 0, 1]], np.float32)
    shares = np.full((1, 3), 0.5, np.float32)  # of zero logits
    scores = classification_metrics.score(("cross_entropy", "micro_f1"), targets, shares, "classes", "abc")
    assert scores["cross_entropy"].value == pytest.approx(0.693147, abs=1e-6)
    assert scores["micro_f1"].value == 0  # at the threshold is not above it
    above = classification_metrics.score(
        ("micro_f1", "macro_f1"), targets, shares, "classes", "abc", threshold=[0.4, 0.6, 0.6]
    )
    assert above["micro_f1"].value == pytest.approx(2 / 3)
    assert above["macro_f1"].value == 0.5  # b is neither present nor predicted, and left out
    empty = classification_metrics.score(
        ("micro_f1", "macro_f1", "weighted_f1", "exact_match"), 0 * targets, shares, "classes", "abc"
    )
    assert [empty[name].value for name in ("micro_f1", "macro_f1", "weighted_f1")] == [None] * 3
    assert empty["macro_f1"].reason == "no row has any label, and none was predicted"
    assert empty["exact_match"].value == 1


@pytest.mark.parametrize("batch", [1, 3, 4, 8])
def test_case_52_scores_are_of_all_rows_however_they_came(batch):
    targets, predictions = one_hot([1, 1, 0, 0, 0, 0, 1, 0], 2), one_hot([1, 0, 1, 0, 0, 0, 1, 1], 2)
    joined = np.concatenate([predictions[start : start + batch] for start in range(0, 8, batch)])
    found = values(classification_metrics.score(("f1", "n"), targets, joined, "class", NO_YES))
    assert found == {"f1": pytest.approx(0.5714, abs=5e-5), "n": 8}
    # the means of the batches' scores are others
    halves = [
        classification_metrics.score(["f1"], targets[a : a + 4], predictions[a : a + 4], "class", NO_YES)
        for a in (0, 4)
    ]
    assert np.mean([half["f1"].value for half in halves]) == pytest.approx(0.5833, abs=5e-5)
    accuracy = classification_metrics.score(
        ["accuracy"], one_hot([1, 1, 1, 1, 0], 2), one_hot([1] * 5, 2), "class", NO_YES
    )
    assert accuracy["accuracy"].value == pytest.approx(0.8)


def test_case_53_soft_targets():
    shares = scipy.special.softmax([[1, -1]], axis=1)
    soft = classification_metrics.score(ALL_CLASS, np.array([[0.6, 0.4]]), shares, "class", NO_YES)
    assert soft["cross_entropy"].value == pytest.approx(0.926928, abs=1e-6)
    assert soft["accuracy"].value == 1
    votes = classification_metrics.score(
        ALL_CLASS, one_hot([0, 0, 0, 1, 1], 2), np.repeat(shares, 5, axis=0), "class", NO_YES
    )
    assert votes["cross_entropy"].value == pytest.approx(soft["cross_entropy"].value, abs=1e-12)


def test_ties_go_to_the_first_class_even_when_rounding_parts_them():
    third = np.nextafter(np.float32(1 / 3), np.float32(1))
    targets = np.array([[1 / 3, third, 1 / 3], [0, 0.5, 0.5], [0.2, 0.3, 0.5]], np.float32)
    predictions = np.array([[0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.1, 0.1, 0.8]])
    assert classification_metrics.score(["accuracy"], targets, predictions, "class", "abc")["accuracy"].value == 1


def test_row_order_does_not_matter_and_one_hot_targets_are_hard_labels(rng):
    soft, shares = rng.dirichlet(np.ones(3), 50), rng.dirichlet(np.ones(3), 50)
    order = rng.permutation(50)
    names = [name for name in ALL_CLASS if "f1" != name != "acc_and_f1"]
    found = values(classification_metrics.score(names, soft, shares, "class", "abc"))
    assert values(classification_metrics.score(names, soft[order], shares[order], "class", "abc")) == pytest.approx(
        found
    )
    hard = one_hot(soft.argmax(axis=1), 3)
    same = values(classification_metrics.score(names, hard, shares, "class", "abc"))
    assert same | {"cross_entropy": 0} == pytest.approx(found | {"cross_entropy": 0})
    assert same["cross_entropy"] == pytest.approx(-np.log(shares[hard == 1]).mean())
    x, y = rng.normal(size=(2, 50, 1))
    found = values(classification_metrics.score(ALL_NUMBER, x, y, "number", ()))
    assert values(classification_metrics.score(ALL_NUMBER, x[order], y[order], "number", ())) == pytest.approx(found)


def test_soft_targets_of_several_labels_are_present_above_one_half():
    targets, shares = np.array([[0.4, 0.5, 0.6]]), np.array([[0.1, 0.2, 0.9]])
    assert classification_metrics.score(["exact_match"], targets, shares, "classes", "abc")["exact_match"].value == 1


def test_saturated_shares_have_finite_losses():
    shares = np.array([[1, 0], [0, 1]], np.float32)
    losses = classification_metrics.row_losses(one_hot([1, 1], 2), shares, "class")
    assert losses == pytest.approx([-math.log(np.finfo(np.float32).tiny), 0])
    wrong = classification_metrics.row_losses(np.zeros((1, 1)), np.ones((1, 1), np.float32), "classes")
    assert wrong == pytest.approx([25 * math.log(2)])  # half a spacing below 1, not 87 nats


def test_values_without_meaning_have_reasons():
    nothing = classification_metrics.score(ALL_CLASS, np.zeros((0, 2)), np.zeros((0, 2)), "class", NO_YES)
    assert nothing == {name: (0.0, None) if name == "n" else (None, "no rows") for name in ALL_CLASS}
    predictions = np.array([[0.4, 0.6], [np.nan, 0.1]])
    broken = classification_metrics.score(("accuracy", "n"), one_hot([0, 1], 2), predictions, "class", NO_YES)
    assert broken == {"accuracy": (None, "1 of 2 rows have predictions that are not finite"), "n": (2.0, None)}
    names = ("precision:b", "recall:c", "f1:c", "f1:b")
    scores = classification_metrics.score(names, one_hot([0, 1], 3), one_hot([0, 0], 3), "class", "abc")
    assert scores["precision:b"] == (None, "b is never predicted")
    assert scores["recall:c"] == (None, "no row is c")
    assert scores["f1:c"] == (None, "no row is c, and it is never predicted")
    assert scores["f1:b"] == (0.0, None)


def test_positive_label_and_defaults():
    targets, predictions = one_hot([0, 1, 2, 2], 3), one_hot([0, 1, 1, 2], 3)
    found = classification_metrics.score(["f1"], targets, predictions, "class", "abc", positive="c")
    assert found["f1"].value == pytest.approx(2 / 3)
    first = classification_metrics.score(
        ["f1"], one_hot([0, 0, 1], 2), one_hot([0, 1, 1], 2), "class", NO_YES, positive="no"
    )
    assert first["f1"].value == pytest.approx(2 / 3)
    for kind, labels in (("class", NO_YES), ("class", "abc"), ("class", "a"), ("classes", "abc"), ("number", ())):
        classification_metrics.check_names(classification_metrics.default_metrics(kind, labels), kind, labels)
    assert classification_metrics.default_metrics("class", NO_YES)[:2] == ("accuracy", "f1")


@pytest.mark.parametrize(("name", "kind", "labels", "positive", "message"), [
    ("f1", "class", "abc", None, "metric f1 needs a positive label, for there are 3 labels, or use f1:LABEL"),
    ("f1", "class", "abc", "d", "positive label 'd' is none of the labels: a, b, c"),
    ("f1:d", "class", "abc", None, "metric 'f1:d' is not known .*; known are .*recall:LABEL with a LABEL of a, b, c"),
    ("acuracy", "class", "abc", None, "metric 'acuracy' is not known for kind 'class'; known are accuracy, f1"),
    ("accuracy", "number", "", None, "metric 'accuracy' is not known for kind 'number'; known are pearson.* n$"),
    ("f1:a", "number", "a", None, "metric 'f1:a' is not known for kind 'number'"),
    ("matthews", "classes", "ab", None, "metric 'matthews' is not known for kind 'classes'"),
])  # fmt: skip
def test_unknown_names_are_told(name, kind, labels, positive, message):
    with pytest.raises(InputError, match=message):
        classification_metrics.check_names(["n", name], kind, labels, positive)


@pytest.mark.parametrize(("targets", "predictions", "message"), [
    (np.eye(2), np.eye(3), r"targets \(2, 2\) and predictions \(3, 3\) must both be \(rows, 2\)"),
    (np.eye(3), np.eye(3), r"must both be \(rows, 2\)"),
    (np.eye(2) + np.nan, np.eye(2), "some targets are not finite"),
    (np.eye(2), np.eye(2, dtype=int), "predictions are int64; they must be floating-point"),
])  # fmt: skip
def test_arrays_that_cannot_be_scored_are_refused(targets, predictions, message):
    with pytest.raises(ValueError, match=message):
        classification_metrics.score(["n"], targets, predictions, "class", NO_YES)
    with pytest.raises(ValueError, match=r"kind 'span' .*class, classes"):
        classification_metrics.score(["n"], np.eye(2), np.eye(2), "span", NO_YES)


def test_losses_are_better_where_they_are_lower():
    assert set(classification_metrics.LOWER_IS_BETTER) == {"cross_entropy", "mse", "mae"}


def test_confusion_counts_true_classes_down(rng):
    gold, shares = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60)
    counts = classification_metrics.confusion(one_hot(gold, 3), shares)
    expected = sklearn.metrics.confusion_matrix(gold, shares.argmax(axis=1), labels=range(3))
    np.testing.assert_array_equal(counts, expected)
    assert np.issubdtype(counts.dtype, np.integer)


def test_worst_rows_come_first_and_equal_ones_in_file_order():
    targets = one_hot([0, 0, 0, 0, 1], 2)
    predictions = np.array([[0.9, 0.1], [0.2, 0.8], [0.9, 0.1], [0.1, 0.9], [0.8, 0.2]])
    assert classification_metrics.worst_rows(targets, predictions, "class").tolist() == [3, 1, 4, 0, 2]
    assert classification_metrics.worst_rows(targets, predictions, "class", 2).tolist() == [3, 1]
    predictions[2] = np.nan
    assert classification_metrics.worst_rows(targets, predictions, "class", 1).tolist() == [2]
    assert classification_metrics.worst_rows(column([1, 2, 3]), column([1, 4, 1.5]), "number").tolist() == [1, 2, 0]
    several = np.array([[1, 0], [1, 1]], np.float32)
    assert classification_metrics.worst_rows(several, np.array([[0.9, 0.1], [0.9, 0.1]]), "classes").tolist() == [1, 0]


def test_report_and_json_say_what_is_undefined_and_what_was_left_out():
    targets, predictions = column([1, 1, 2, 3]), column([1, 1, 2, 2.5])
    scores = classification_metrics.score(ALL_NUMBER, targets, predictions, "number", ())
    intervals = classification_metrics.bootstrap(ALL_NUMBER, targets, predictions, "number", ())
    scores["spearman"] = score.Score(None, "the predictions are constant")
    lines = dict(line.split(maxsplit=1) for line in score.report_table(scores, intervals).splitlines())
    assert list(lines) == list(ALL_NUMBER)
    low, high, _, left_out = intervals["pearson"]
    assert left_out
    expected = f"{scores['pearson'].value:.4f}   95 % interval {low:.4f} to {high:.4f}   "
    assert lines["pearson"] == expected + f"({left_out} of 1,000 resamples left out)"
    assert lines["spearman"] == "undefined: the predictions are constant"
    assert lines["n"] == "4 rows scored"
    assert score.report_table({"n": score.Score(7.0)}, unit="words").split()[1:3] == ["7", "words"]
    marked = score.report_table({"matthews": score.Score(0.0, "predicts one class only: yes")})
    assert marked == "matthews    0.0000   (predicts one class only: yes)"
    assert score.report_table({"n_tokens": score.Score(1234.0)}).split() == ["n_tokens", "1,234"]
    shown = score.report_table({"f1:total": score.Score(0.25), "HasAns_total": score.Score(1.0)})
    assert shown.split() == ["f1", "of", "total", "0.2500", "HasAns_total", "1"]
    written = json.loads(json.dumps(score.as_json(scores, intervals), allow_nan=False))
    assert written["pearson"] == {
        "value": pytest.approx(scores["pearson"].value), "reason": None,
        "low": low, "high": high, "resamples": 1000, "left_out": left_out,
    }  # fmt: skip
    assert written["spearman"]["value"] is None
    assert written["n"] == {"value": 4.0, "reason": None}
    assert score.as_json({"n": scores["n"]}) == {"n": {"value": 4.0, "reason": None}}
