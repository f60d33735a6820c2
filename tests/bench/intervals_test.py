"""Intervals and tests over seeds, against scipy and values worked by hand."""

import math

import pytest
import scipy.stats

from bench.intervals import Interval, holm, interval, significant, welch

FIRST, SECOND = [71.2, 70.4, 72.9, 71.0, 69.8], [69.9, 70.1, 70.0, 69.5, 70.3]


def test_the_interval_is_that_of_students_t():
    low, high = scipy.stats.t.interval(0.95, 4, loc=sum(FIRST) / 5, scale=scipy.stats.sem(FIRST))
    mean, half_width = interval(FIRST)
    assert (mean - half_width, mean + half_width) == pytest.approx((low, high))
    # values 1, 2, 3: s = 1, t(0.975, 2) = 4.3027
    assert interval([1.0, 2.0, 3.0]).half_width == pytest.approx(4.3027 / math.sqrt(3), abs=1e-4)


def test_one_value_has_no_interval():
    assert interval([3.5]) == Interval(3.5, None)


def test_welch_is_that_of_scipy():
    assert welch(FIRST, SECOND) == pytest.approx(scipy.stats.ttest_ind(FIRST, SECOND, equal_var=False).pvalue)
    assert welch(FIRST, SECOND[:3]) == pytest.approx(scipy.stats.ttest_ind(FIRST, SECOND[:3], equal_var=False).pvalue)


def test_a_system_without_randomness_counts_as_known():
    assert welch(FIRST, [70.0]) == pytest.approx(scipy.stats.ttest_1samp(FIRST, 70.0).pvalue)
    assert welch([70.0], FIRST) == welch(FIRST, [70.0])
    assert welch([70.0] * 5, [70.0]) == 1
    assert welch([70.0] * 5, [71.0]) == 0


def test_holm_multiplies_the_smallest_p_by_the_number_of_tests():
    p_values = {("a", "b"): 0.01, ("a", "c"): 0.04, ("b", "c"): 0.03}
    assert holm(p_values) == pytest.approx({("a", "b"): 0.03, ("b", "c"): 0.06, ("a", "c"): 0.06})
    assert holm({("a", "b"): 0.7, ("a", "c"): 0.8}) == {("a", "b"): 1.0, ("a", "c"): 1.0}


def test_significant_pairs_name_the_better_one_first():
    scores = {"low": [50.0, 51.0, 52.0], "high": [80.0, 81.0, 82.0], "close": [50.5, 51.5, 52.5]}
    assert significant(scores) == [("high", "close"), ("high", "low")]
