"""Intervals of scores by resampling rows, against scoring each resample."""

import math

import numpy as np
import pytest

from tasks.metrics import classification_metrics, weighted_metrics
from tests.tasks.metrics.targets import NO_YES, column, one_hot


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def resampled_by_hand(names, targets, predictions, kind, labels, seed, count):
    """The bootstrap again, row by row: draw rows, score them, take percentiles."""
    rng, drawn = np.random.default_rng(seed), {name: [] for name in names}
    for rows in rng.integers(0, len(targets), (count, len(targets))):
        for name, result in classification_metrics.score(names, targets[rows], predictions[rows], kind, labels).items():
            drawn[name] += [] if result.value is None else [result.value]
    return {
        name: (*np.percentile(kept, [2.5, 97.5]), count, count - len(kept)) if kept else (None, None, count, count)
        for name, kept in drawn.items()
    }


@pytest.mark.parametrize("kind", ["class", "classes", "number"])
def test_intervals_are_those_of_scored_resamples(rng, kind):
    labels = "" if kind == "number" else "abc"
    shares = rng.dirichlet(np.ones(3), 6)
    targets = one_hot([0, 1, 1, 1, 0, 1], 3)  # so few that some resamples are constant
    names = [name for name in classification_metrics.default_metrics(kind, labels) if name != "n"]
    if kind == "number":
        targets, shares, names = column([1, 1, 1, 2, 3, 2]), shares[:, :1].round(1), [*names, "corr"]
    found = classification_metrics.bootstrap(names, targets, shares, kind, labels, seed=3, resamples=200)
    expected = resampled_by_hand(names, targets, shares, kind, labels, 3, 200)
    assert set(found) == set(expected)
    for name in names:
        assert found[name] == pytest.approx(expected[name], abs=1e-9), name
    assert any(interval.left_out for interval in found.values())
    assert found == classification_metrics.bootstrap(names, targets, shares, kind, labels, seed=3, resamples=200)
    assert found != classification_metrics.bootstrap(names, targets, shares, kind, labels, seed=4, resamples=200)


def test_resamples_with_constant_predictions_are_left_out():
    # of which the mean, as rounded, differs from each
    targets, predictions = column(range(10)), column([0.3, 0.3, 0.9, *[0.3] * 7])
    found = classification_metrics.bootstrap(["pearson", "spearman"], targets, predictions, "number", (), seed=2)
    drawn = np.random.default_rng(2).integers(0, 10, (1000, 10))
    constant = (drawn != 2).all(axis=1) | (drawn == 2).all(axis=1)
    assert found["pearson"].left_out == found["spearman"].left_out == constant.sum() > 300


def test_chunks_of_resamples_do_not_change_the_interval(rng, monkeypatch):
    targets, shares = one_hot(rng.integers(0, 2, 400), 2), rng.dirichlet(np.ones(2), 400)
    whole = np.concatenate(list(weighted_metrics.draws(400, 1000, 0)))
    assert (whole.shape, set(whole.sum(axis=1))) == ((1000, 400), {400.0})
    found = classification_metrics.bootstrap(("accuracy", "n"), targets, shares, "class", NO_YES)
    accuracy = classification_metrics.score(["accuracy"], targets, shares, "class", NO_YES)["accuracy"].value
    assert set(found) == {"accuracy"}
    # the normal approximation is close for 400 rows
    half = 1.96 * math.sqrt(accuracy * (1 - accuracy) / 400)
    assert found["accuracy"][:2] == pytest.approx((accuracy - half, accuracy + half), abs=0.01)


def test_no_interval_without_a_value_or_with_one_row():
    constant = classification_metrics.bootstrap(["pearson", "mse"], column([1, 2, 3]), column([2, 2, 2]), "number", ())
    assert constant["pearson"] == (None, None, 1000, 1000)
    assert constant["mse"].low is not None
    one = classification_metrics.bootstrap(["accuracy"], one_hot([1], 2), one_hot([1], 2), "class", NO_YES)
    assert one["accuracy"] == (None, None, 1000, 1000)
    # two rows: half of the resamples hold one row twice, and have no correlation
    two = classification_metrics.bootstrap(
        ["pearson"], column([1, 2]), column([2, 4]), "number", (), resamples=999, seed=1
    )
    assert 400 < two["pearson"].left_out < 600
    assert (two["pearson"].low is None) == (two["pearson"].left_out >= 999 / 2)
