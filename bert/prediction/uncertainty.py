"""How unsure a model is about a row, to choose what to annotate next.

A row has one or more decisions, each a distribution p over classes: the class of a text; for each of several labels p
and 1 - p; the tag of each word or token; the candidates for an answer. The row's uncertainty is the mean over its
decisions (for tags the token entropy of Settles and Craven) of

    entropy       -sum_c p_c ln p_c, in nats
    margin        p_1 - p_2, of the two most probable classes: here a small value means unsure
    disagreement  1 - sum_c p_c^2: the probability that two annotators differ, if each chooses class c with p_c

Axes: K decision of all rows, one after the other, C class, N row.

Sources: Settles and Craven 2008, section 3.1; Scheffer et al. 2001 (margin); Simpson 1949 (disagreement).
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert.errors import check_choice


def _entropy(p_KC: np.ndarray) -> np.ndarray:
    logs_KC = np.log(p_KC, out=np.zeros_like(p_KC), where=p_KC > 0)
    return -(p_KC * logs_KC).sum(1)


def _margin(p_KC: np.ndarray) -> np.ndarray:
    ascending_KC = np.sort(np.pad(p_KC, ((0, 0), (1, 0))))  # a single class is compared with 0
    return ascending_KC[:, -1] - ascending_KC[:, -2]


def _disagreement(p_KC: np.ndarray) -> np.ndarray:
    return 1 - (p_KC**2).sum(1)


MEASURES = {"entropy": _entropy, "margin": _margin, "disagreement": _disagreement}


def of_rows(measure: str, p_KC: np.ndarray, starts: np.ndarray | None = None) -> np.ndarray:
    """float64 [N]: the uncertainty of each row; NaN for a row without decisions.

    Args:
      measure: of `MEASURES`.
      p_KC: float [K, C]; a decision whose probabilities are all 0 (nobody voted) does not count.
      starts: int [N + 1], where each row begins in K; None: each row is one decision.
    """
    check_choice("measure", measure, MEASURES)
    p_KC = p_KC.astype(np.float64)
    starts = np.arange(len(p_KC) + 1) if starts is None else starts
    row_K, counts_K = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), p_KC.any(1)
    total_N, decisions_N = (
        np.bincount(row_K, weights=weights_K, minlength=len(starts) - 1)
        for weights_K in (np.where(counts_K, MEASURES[measure](p_KC), 0), counts_K)
    )
    return np.divide(total_N, decisions_N, out=np.full(len(total_N), np.nan), where=decisions_N > 0)


def added(
    predictions: list[dict[str, Any]], measure: str, p_KC: np.ndarray, starts: np.ndarray | None = None, name: str = ""
) -> list[dict[str, Any]]:
    """The predictions, each with its uncertainty under ``name`` (else the measure's), None for NaN; as they are where
    ``measure`` is empty. Arguments as of `of_rows`."""
    if not measure:
        return predictions
    values = of_rows(measure, p_KC, starts).tolist()
    return [
        {**row, name or measure: None if math.isnan(value) else value}
        for row, value in zip(predictions, values, strict=True)
    ]


def order(measure: str, value_N: Sequence[float | None]) -> list[int]:
    """The numbers of the rows, the least sure first; equal ones in their order, those without a value last."""
    values = np.array(value_N, np.float64)  # None becomes NaN
    indices: list[int] = np.argsort(values if measure == "margin" else -values, kind="stable").tolist()
    return indices
