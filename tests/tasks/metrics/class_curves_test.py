"""Curves of classifiers equal scikit-learn's; calibration and residuals what their definitions say."""

import numpy as np
import pytest
from sklearn import metrics

from tasks.metrics import class_curves, class_table


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def trapezoid(points: list[list[float]]) -> float:
    x, y = np.array(points).T
    return float(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum())


def steps(points: list[list[float]]) -> float:
    """Average precision: the precision at each recall, by how much recall it adds."""
    recall, precision = np.array(points).T
    return float(((recall[1:] - recall[:-1]) * precision[1:]).sum())


@pytest.mark.parametrize("ties", [False, True])
def test_points_are_scikit_learns_and_their_areas_those_of_the_table(rng, ties):
    truth_N, share_N = rng.random(150) < 0.3, rng.random(150)
    share_N = np.round(share_N, 1) if ties else share_N
    roc, precision_recall = class_curves.points(truth_N, share_N)
    false, true, _ = metrics.roc_curve(truth_N, share_N, drop_intermediate=False)
    np.testing.assert_allclose(roc, np.stack([false, true], -1), atol=1e-12)
    precision, recall, _ = metrics.precision_recall_curve(truth_N, share_N)
    np.testing.assert_allclose(precision_recall, np.stack([recall, precision], -1)[::-1], atol=1e-12)
    areas = class_table.areas(truth_N, share_N)
    assert trapezoid(roc) == pytest.approx(metrics.roc_auc_score(truth_N, share_N), abs=1e-9)
    assert areas["roc_auc"].value == pytest.approx(trapezoid(roc), abs=1e-9)
    assert steps(precision_recall) == pytest.approx(metrics.average_precision_score(truth_N, share_N), abs=1e-9)
    assert areas["average_precision"].value == pytest.approx(steps(precision_recall), abs=1e-9)


def test_of_many_points_the_ends_stay(rng):
    truth_N, share_N = rng.random(5000) < 0.3, rng.random(5000)
    roc, precision_recall = class_curves.points(truth_N, share_N)
    assert len(roc) == len(precision_recall) == class_curves.POINTS
    assert (roc[0], roc[-1]) == ([0, 0], [1, 1])
    assert trapezoid(roc) == pytest.approx(metrics.roc_auc_score(truth_N, share_N), abs=5e-3)


def test_one_against_the_rest_and_of_two_classes_the_second(rng):
    share_NC = rng.dirichlet(np.ones(3), 90)
    targets_NC = np.eye(3)[rng.integers(0, 3, 90)]
    made = class_curves.of_classes(targets_NC, share_NC, "class", ("a", "b", "c"))
    for c, label in enumerate("abc"):
        area = metrics.roc_auc_score(targets_NC[:, c], share_NC[:, c])
        assert trapezoid(made["roc"][label]) == pytest.approx(area, abs=1e-9)
    two = class_curves.of_classes(targets_NC[:, :2] + targets_NC[:, 2:] / 2, share_NC[:, :2], "class", ("a", "b"))
    assert list(two["roc"]) == list(two["precision_recall"]) == ["b"]


def test_a_class_without_rows_or_with_all_has_no_curve_and_nan_has_none(rng):
    share_NC = rng.random((20, 3))
    targets_NC = np.zeros((20, 3))
    targets_NC[:, 0] = 1
    targets_NC[:5, 1] = 1
    assert list(class_curves.of_classes(targets_NC, share_NC, "classes", ("all", "some", "none"))["roc"]) == ["some"]
    share_NC[3, 1] = np.nan
    assert class_curves.of_classes(targets_NC, share_NC, "classes", ("all", "some", "none")) == {}
    assert class_curves.residuals(targets_NC[:, :1], share_NC[:, 1:2]) == {}


def test_calibration_is_the_mean_distance_of_probability_and_share_right():
    """Two bins by hand: 3 rows at 0.65 of which 1 is right, 1 row at 1.0 that is right."""
    share_NC = np.array([[0.65, 0.35], [0.65, 0.35], [0.35, 0.65], [0.0, 1.0]])
    targets_NC = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    made = class_curves.calibration(targets_NC, share_NC, "class")
    assert [row["count"] for row in made["bins"]] == [3, 1]
    np.testing.assert_allclose([row["probability"] for row in made["bins"]], [0.65, 1.0])
    np.testing.assert_allclose([row["right"] for row in made["bins"]], [1 / 3, 1.0])
    assert made["error"] == pytest.approx(3 / 4 * (0.65 - 1 / 3))
    each = class_curves.calibration(np.array([[1.0, 0.0]]), np.array([[0.72, 0.18]]), "classes")
    assert [(row["count"], row["right"]) for row in each["bins"]] == [(1, 0.0), (1, 1.0)]


def test_residuals_are_counted(rng):
    targets, predictions = rng.normal(size=(50, 1)), rng.normal(size=(50, 1))
    made = class_curves.residuals(targets, predictions)["residuals"]
    assert sum(made["counts"]) == 50
    assert (made["edges"][0], made["edges"][-1]) == pytest.approx(
        ((predictions - targets).min(), (predictions - targets).max())
    )
