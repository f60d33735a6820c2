"""Uncertainty of rows from distributions: formulas, means over the decisions of a row, the order."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats

from bert.errors import InputError
from bert.prediction import uncertainty

RNG = np.random.default_rng(0)
P_KC = RNG.dirichlet(np.full(4, 0.5), 9)


def test_each_measure_of_one_decision_a_row():
    """Against SciPy, the two largest, and the probability that two draws differ, by counting all pairs."""
    np.testing.assert_allclose(uncertainty.of_rows("entropy", P_KC), scipy.stats.entropy(P_KC, axis=1))
    largest = [sorted(p_C)[-2:] for p_C in P_KC]
    np.testing.assert_allclose(uncertainty.of_rows("margin", P_KC), [b - a for a, b in largest])
    pairs = [sum(p * q for p, q in itertools.permutations(p_C, 2)) for p_C in P_KC]
    np.testing.assert_allclose(uncertainty.of_rows("disagreement", P_KC), pairs)


@pytest.mark.parametrize(("measure", "sure", "unsure"), [
    ("entropy", 0, math.log(4)), ("margin", 1, 0), ("disagreement", 0, 3 / 4),
])  # fmt: skip
def test_a_certain_and_a_uniform_distribution(measure, sure, unsure):
    p_KC = np.array([[0, 1, 0, 0], [0.25] * 4])
    np.testing.assert_array_equal(uncertainty.of_rows(measure, p_KC), [sure, unsure])
    assert uncertainty.order(measure, [sure, unsure, unsure]) == [1, 2, 0]


def test_a_single_class_is_certain():
    assert [uncertainty.of_rows(measure, np.ones((1, 1)))[0] for measure in uncertainty.MEASURES] == [0, 1, 0]


@pytest.mark.parametrize("measure", uncertainty.MEASURES)
def test_a_row_is_the_mean_of_its_decisions(measure):
    """Decisions without votes do not count; a row without any other has no value and comes last."""
    p_KC = P_KC.copy()
    p_KC[[1, 6]] = 0
    each_K = uncertainty.of_rows(measure, P_KC)
    values = uncertainty.of_rows(measure, p_KC, np.array([0, 3, 3, 6, 7, 9]))
    wanted = [each_K[[0, 2]].mean(), np.nan, each_K[3:6].mean(), np.nan, each_K[7:].mean()]
    np.testing.assert_allclose(values, wanted)
    by_value = sorted((0, 2, 4), key=lambda n: values[n], reverse=measure != "margin")
    assert uncertainty.order(measure, values) == [*by_value, 1, 3]
    rows = uncertainty.added([{"n": n} for n in range(5)], measure, p_KC, np.array([0, 3, 3, 6, 7, 9]))
    assert [row["n"] for row in rows] == list(range(5))
    assert [row[measure] for row in rows] == [None if np.isnan(value) else value for value in values]
    assert uncertainty.order(measure, [row[measure] for row in rows]) == [*by_value, 1, 3]


def test_an_unknown_measure_is_refused():
    with pytest.raises(InputError, match=r"'entrpy'.*entropy, margin"):
        uncertainty.of_rows("entrpy", P_KC)
