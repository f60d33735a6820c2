"""Every setting of a batch, checked in one place."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert.data import masking, pairs
from bert.errors import InputError


@dataclasses.dataclass(frozen=True)
class BatchSettings:
    """What a batch looks like; every value is checked here.

    batch_size: rows of the global batch.
    max_length: tokens in a row.
    objective: "nsp", "sop" or "none" (`pairs.py`).
    packed: several examples in a row.
    max_examples: the most examples in a packed row; None: an eighth of max_length.
    mask_rate: share of the tokens to predict; mask_share of these become [MASK], random_share a random token, the
      rest stay (0.15, 0.8, 0.1: Devlin et al. 2018, section 3.1).
    whole_words: choose whole words.
    mask_budget: masked positions in a row (P). None: the rounded rate of a full row and one more (20 at 128, 78 at
      512; Google's settings are 20 and 77), for each example of a packed row rounds its own number. A smaller budget
      lowers the rate of every example, at random places.
    short_probability: share of shortened examples (0.1: Google's `short_seq_prob`).
    seed: of pairs, order and masks.
    """

    batch_size: int
    max_length: int
    objective: pairs.Objective = "nsp"
    packed: bool = True
    max_examples: int | None = None
    mask_rate: float = 0.15
    mask_share: float = 0.8
    random_share: float = 0.1
    whole_words: bool = False
    mask_budget: int | None = None
    short_probability: float = 0.1
    seed: int = 0

    def __post_init__(self):
        if self.objective not in pairs.OBJECTIVES:
            raise InputError(f"objective {self.objective!r} is unknown; choose one of {', '.join(pairs.OBJECTIVES)}")
        for name, low, high in (
            ("batch_size", 1, 1 << 20),
            ("max_length", 8, masking.MAX_LENGTH),
            ("max_examples", 1, self.max_length),
            ("mask_budget", 1, self.max_length),
            ("seed", 0, (1 << 32) - 1),  # of more bits JAX would take the lowest 32 alone
        ):
            value = getattr(self, name)
            if value is None and name in ("max_examples", "mask_budget"):
                continue
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not low <= value <= high:
                unset = ", or not set (in a config file 0)" if name in ("max_examples", "mask_budget") else ""
                raise InputError(f"{name} {value!r} must be a whole number from {low:,} to {high:,}{unset}")
        for name in ("mask_share", "random_share", "short_probability"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} {getattr(self, name)} must lie in 0 to 1")
        if not 0 < self.mask_rate < 1:
            raise InputError(f"mask_rate {self.mask_rate} must lie between 0 and 1; BERT uses 0.15")
        if self.mask_share + self.random_share > 1 + 1e-9:
            raise InputError(
                f"mask_share {self.mask_share} + random_share {self.random_share} must be at most 1; "
                "the rest of the chosen tokens stay as they are"
            )

    @property
    def examples_in_row(self) -> int:
        """E"""
        if not self.packed:
            return 1
        return self.max_examples or max(1, self.max_length // 8)

    @property
    def masks_in_row(self) -> int:
        """P"""
        return self.mask_budget or self._default_budget

    @property
    def _default_budget(self) -> int:
        return int(self.mask_rate * self.max_length + 0.5) + 1

    def mask_limits(self, tokens_N: np.ndarray, length_N: np.ndarray) -> np.ndarray:
        """int64 [N], the most masked positions of each example, so that its row keeps the budget."""
        wanted_N = masking.count_masks(tokens_N, self.mask_rate)
        if self.packed and self.masks_in_row < self._default_budget:
            share_N = self.masks_in_row * np.asarray(length_N, np.int64) // self.max_length
            wanted_N = np.minimum(wanted_N, np.maximum(share_N, 1))
        return np.minimum(wanted_N, self.masks_in_row)
