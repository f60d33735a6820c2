"""What scores of several seeds say: the mean with its interval, and whether two systems differ."""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import scipy.stats

Pair = tuple[str, str]


class Interval(NamedTuple):
    """mean +- half_width, with 95 % confidence; None for one value."""

    mean: float
    half_width: float | None


def interval(values: Sequence[float]) -> Interval:
    """By Student's t distribution with n - 1 degrees of freedom: t(0.975) s / sqrt(n)."""
    n = len(values)
    if n < 2:
        return Interval(values[0], None)
    quantile = float(scipy.stats.t.ppf(0.975, n - 1))
    return Interval(statistics.fmean(values), quantile * statistics.stdev(values) / math.sqrt(n))


def welch(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p of equal means, by Welch's t test, for variances that may differ.

    A system with one value has no randomness: its value counts as known. Two known values are equal or not: 1 or 0.
    """
    random = [values for values in (first, second) if len(values) > 1]
    squares = [statistics.variance(values) / len(values) for values in random]  # of the standard errors
    difference = statistics.fmean(first) - statistics.fmean(second)
    if not sum(squares):
        return float(difference == 0)
    terms = sum(square**2 / (len(values) - 1) for square, values in zip(squares, random, strict=True))
    freedom = sum(squares) ** 2 / terms
    return 2 * float(scipy.stats.t.sf(abs(difference) / math.sqrt(sum(squares)), freedom))


def holm(p_values: Mapping[Pair, float]) -> dict[Pair, float]:
    """The p of several tests, adjusted so that one of all is wrongly below a level with at most that probability.

    Source: Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    adjusted, largest = dict[Pair, float](), 0.0
    for rank, pair in enumerate(sorted(p_values, key=lambda pair: p_values[pair])):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[pair]))
        adjusted[pair] = largest
    return adjusted


def significant(scores: Mapping[str, Sequence[float]], level: float = 0.05) -> list[Pair]:
    """(better, worse) of the systems whose means differ by Welch's test, with p adjusted over all pairs by Holm."""
    ordered = sorted(scores, key=lambda name: -statistics.fmean(scores[name]))
    p_values = {pair: welch(scores[pair[0]], scores[pair[1]]) for pair in itertools.combinations(ordered, 2)}
    adjusted = holm(p_values)
    return [pair for pair in p_values if adjusted[pair] < level]
