"""Settings of pretraining batches, and their checks."""

from __future__ import annotations

import dataclasses

import numpy as np

from bert import objectives
from bert.data import masking, pairs
from bert.errors import InputError, check_choice, check_range


@dataclasses.dataclass(frozen=True)
class BatchSettings:
    """What a batch of pretraining looks like."""

    batch_size: int  # rows over all devices
    max_length: int  # tokens a row, [CLS] and [SEP] among them
    # Of pairs. nsp: next sentence; sop: sentence order (ALBERT); none: no pairs (RoBERTa). In pretraining, where not
    # set: nsp beside masked words, none beside other objectives.
    objective: pairs.Objective = "nsp"
    packed: bool = True  # several short examples in a row
    max_examples: int = 0  # examples per row at most; 0: an eighth of max_length
    mask_rate: float = 0.15  # share of tokens chosen for prediction; BERT section 3.1
    mask_share: float = 0.8  # of the chosen: replaced by [MASK]
    random_share: float = 0.1  # of the chosen: replaced by a random token; the rest stay
    whole_words: bool = False  # choose whole words instead of single pieces
    # Predictions a row at most; fewer than the rate needs lower it for every example, at random places. 0: what the
    # rate needs, rounded, and one more for the examples of a packed row (20 at 128, 78 at 512; Google: 20 and 77).
    mask_budget: int = 0
    short_probability: float = 0.1  # share of examples with a random shorter length; BERT
    seed: int = 0  # of pairs, data order and masks
    predicts: str = "mlm"  # a key of `objectives.OBJECTIVES`

    def __post_init__(self) -> None:
        check_choice("objective", self.objective, pairs.OBJECTIVES)
        objectives.pairs_of(self.predicts, self.objective)
        for name, low, high in (
            ("batch_size", 1, 1 << 20),
            ("max_length", 8, masking.MAX_LENGTH),
            ("max_examples", 0, self.max_length),
            ("mask_budget", 0, self.max_length),
            ("seed", 0, (1 << 32) - 1),  # JAX would take only the lowest 32 of more bits
        ):
            check_range(name, getattr(self, name), at_least=low, at_most=high, whole=True)
        for name in ("mask_share", "random_share", "short_probability"):
            check_range(name, getattr(self, name), at_least=0, at_most=1)
        if self.whole_words and not objectives.OBJECTIVES[self.predicts].masked:
            raise InputError(f"whole_words is True, but objective={self.predicts} masks no words; set it to False")
        check_range("mask_rate", self.mask_rate, above=0, below=1, hint="; BERT uses 0.15")
        if self.mask_share + self.random_share > 1 + 1e-9:
            what = f"mask_share {self.mask_share} + random_share {self.random_share}"
            raise InputError(f"{what} must be at most 1; the rest of the chosen tokens stay as they are")

    @property
    def examples_in_row(self) -> int:
        """E"""
        return (self.max_examples or max(1, self.max_length // 8)) if self.packed else 1

    @property
    def masks_in_row(self) -> int:
        """P"""
        if not objectives.OBJECTIVES[self.predicts].masked:
            return self.max_length - (self.predicts == "causal")  # which does not predict the first token of a row
        return self.mask_budget or int(self.mask_rate * self.max_length + 0.5) + 1

    def mask_limits(self, tokens_N: np.ndarray, length_N: np.ndarray) -> np.ndarray:
        """int64 [N], the most predictions of each example, so that its row keeps the budget."""
        if not objectives.OBJECTIVES[self.predicts].masked:
            return np.asarray(tokens_N if self.predicts == "blank" else length_N - 1, np.int64)
        wanted_N = masking.count_masks(tokens_N, self.mask_rate)
        if self.packed and self.masks_in_row < dataclasses.replace(self, mask_budget=0).masks_in_row:
            share_N = self.masks_in_row * np.asarray(length_N, np.int64) // self.max_length
            wanted_N = np.minimum(wanted_N, np.maximum(share_N, 1))
        return np.asarray(np.minimum(wanted_N, self.masks_in_row))
