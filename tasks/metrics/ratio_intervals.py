"""95 % intervals of scores that are ratios of sums over rows, such as F1 over all entities and means of a question.

They are percentile bootstrap intervals over rows (Efron and Tibshirani 1993, section 13.3): they show how far a score
would move with other rows of the same kind, not with another training run. Axes: N row, R resample.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tasks.metrics.score import Interval
from tasks.metrics.weighted_metrics import draws

Ratio = tuple[np.ndarray, np.ndarray]  # [N] each: what every row adds above and below the line


def intervals(scores: Mapping[str, Sequence[Ratio]], *, seed: int = 0, resamples: int = 1000) -> dict[str, Interval]:
    """The same for the same seed. A score of two ratios is their harmonic mean, as F1 is of precision and recall."""
    count = max((len(above_N) for ratios in scores.values() for above_N, _ in ratios), default=0)
    drawn: dict[str, list[np.ndarray]] = {name: [] for name in scores}
    if count > 1:
        for weights_RN in draws(count, resamples, seed):
            for name, ratios in scores.items():
                drawn[name].append(_value(weights_RN, ratios))
    result = {}
    for name, parts in drawn.items():
        defined_R = np.concatenate([np.zeros(0), *parts])
        defined_R = defined_R[~np.isnan(defined_R)]
        enough = len(defined_R) > resamples / 2
        low, high = np.percentile(defined_R, [2.5, 97.5]).tolist() if enough else (None, None)
        result[name] = Interval(low, high, resamples, resamples - len(defined_R))
    return result


def _value(weights_RN: np.ndarray, ratios: Sequence[Ratio]) -> np.ndarray:
    values = []
    for above_N, below_N in ratios:
        below_R = weights_RN @ below_N
        values.append(np.divide(weights_RN @ above_N, below_R, out=np.full(len(below_R), np.nan), where=below_R > 0))
    if len(values) == 1:
        return values[0]
    first_R, second_R = values
    total_R = first_R + second_R
    return np.where(total_R == 0, 0.0, 2 * first_R * second_R / np.where(total_R == 0, 1.0, total_R))
