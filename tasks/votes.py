"""Turns the tags of several annotators into target distributions.

Two votes for B and one for O give (2/3, 0, 1/3), so disagreement is kept. Axes: K token, C tag, A annotator.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from ml_collections import ConfigDict

from bert.errors import InputError, check_choice
from tasks.files.records import comma_numbers

NONE = -1  # in place of a tag: this annotator gave none
CHOICES = ("soft", "majority")
_EQUAL = 1 - 1e-9  # weights of 0.1 and 0.2 do not quite sum to 0.3, and their order decides about the last digit


@dataclasses.dataclass(frozen=True)
class VoteSettings:
    """How votes count."""

    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)  # of annotators' votes; 1 if not named
    # soft: the shares of the votes are the target; majority: the tag with the largest share, of equal ones O where it
    # is among them, else the first of the tags.
    votes: str = "soft"

    def __post_init__(self) -> None:
        check_choice("config.votes", self.votes, CHOICES)


def settings_of(config: ConfigDict) -> VoteSettings:
    """The settings ``annotator_weights`` ("anna=2,ben=0.5") and ``votes``."""
    weights = comma_numbers("config.annotator_weights", config.annotator_weights, "NAME=NUMBER", zero=True)
    return VoteSettings(weights, config.votes)


def check_names(settings: VoteSettings, known: Sequence[str]) -> None:
    """Refuses a weight for somebody who annotated nothing, and weights that leave no vote."""
    unknown = [name for name in settings.weights if name not in known]
    if unknown:
        shown = ", ".join(sorted(known)[:10]) + (" ..." if len(known) > 10 else "")
        raise InputError(f"config.annotator_weights names {unknown[0]!r}; the annotators are {shown}")
    if known and all(settings.weights.get(name) == 0 for name in known):
        raise InputError("config.annotator_weights is 0 for every annotator, so nobody votes; leave one above 0")


def counts(tags_AK: Sequence[tuple[str, np.ndarray]], classes: int, weights: Mapping[str, float]) -> np.ndarray:
    """float64 [K, C]: summed weights of the votes for each tag; ``tags_AK``: (annotator, int [K] tags or `NONE`)."""
    total_KC = np.zeros((len(tags_AK[0][1]), classes))
    for name, tags_K in tags_AK:
        tagged = np.flatnonzero(tags_K != NONE)
        total_KC[tagged, tags_K[tagged]] += weights.get(name, 1.0)
    return total_KC


def target(counts_KC: np.ndarray, settings: VoteSettings, outside: int | None) -> tuple[np.ndarray, np.ndarray]:
    """(float32 [K, C] distributions, bool [K]: whether anybody voted; a row without votes is 0).

    ``outside``: index of the tag O, which wins a tie; None where there is none.
    """
    sums_K1 = counts_KC.sum(1, keepdims=True)
    if settings.votes == "majority":
        counts_KC = np.eye(counts_KC.shape[1])[majority(counts_KC, outside)] * sums_K1
    share_KC = np.divide(counts_KC, sums_K1, out=np.zeros_like(counts_KC), where=sums_K1 > 0)
    return share_KC.astype(np.float32), sums_K1[:, 0] > 0


def majority(counts_KC: np.ndarray, outside: int | None) -> np.ndarray:
    """int64 [K]: the tag with the most votes; of equal ones ``outside``, else the first."""
    most_KC = counts_KC >= counts_KC.max(1, keepdims=True) * _EQUAL
    best_K = most_KC.argmax(1)
    return best_K if outside is None else np.where(most_KC[:, outside], outside, best_K)
