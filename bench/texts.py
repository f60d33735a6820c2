"""Texts to classify: random words, and the lengths of SST-2, of MRPC, or all equal.

Every implementation imports this in its own environment, so it needs only NumPy.
Axes: N example, B example of a batch, T position.
"""

import dataclasses
import functools
import json
import pathlib

import numpy as np

from bench.work import FIRST_WORD, VOCABULARY, config_of
from bert.architectures.bert import BertConfig

LONGEST = 128  # tokens of an example at most

# The smallest number of tokens in an example, then how many examples have that many tokens, one more, two more, ...
# Counted by `bench.lengths` on GLUE's training parts: tokens of the released uncased vocabulary, [CLS] and [SEP]
# included, at most LONGEST.
# fmt: off
COUNTS = {
    "sst2": (3, [
        1978, 5322, 6065, 5345, 4749, 4155, 3713, 3267, 2947, 2650, 2413, 2138, 1950, 1777, 1661, 1515, 1373, 1285,
        1132, 1106, 1046, 909, 820, 806, 733, 692, 628, 538, 491, 442, 448, 400, 337, 304, 286, 242, 195, 203, 192, 155,
        148, 130, 89, 82, 85, 73, 55, 42, 50, 40, 36, 19, 21, 22, 15, 8, 6, 3, 2, 5, 5, 1, 2, 2,
    ]),
    "mrpc": (19, [
        2, 0, 1, 3, 2, 1, 7, 16, 9, 26, 18, 24, 33, 45, 38, 46, 43, 57, 73, 76, 62, 79, 79, 82, 70, 92, 112, 85, 89, 78,
        79, 83, 101, 85, 105, 106, 98, 83, 82, 99, 109, 93, 115, 85, 78, 105, 73, 67, 70, 59, 67, 59, 45, 39, 35, 41,
        22, 26, 17, 20, 15, 10, 14, 6, 8, 9, 1, 2, 4, 2, 3, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 2, 0, 0, 1,
    ]),
}
# fmt: on


@dataclasses.dataclass(frozen=True)
class Texts:
    """Classification of ``count`` examples into two classes: one epoch of fine-tuning, or one pass of inference.

    Attributes:
      step: finetune (a step trains on one batch) or classify (a step classifies all examples, batch by batch).
      size: a name of `BertConfig.of_size`. batch: examples in a batch. dtype: of matrix products.
      lengths: a name in COUNTS, a file written by `bench.lengths`, or one number of tokens for all examples.
      dropout: rate for hidden states, attention weights and the input of the classifier.
    """

    step: str
    size: str
    lengths: str
    count: int
    batch: int = 32
    dtype: str = "float32"
    dropout: float = 0.1

    @property
    def config(self) -> BertConfig:
        return config_of(self.size, self.dtype, self.dropout)

    @functools.cached_property
    def length_N(self) -> np.ndarray:
        """Quantiles of the lengths in random order, with the longest, which decides how long rows must be."""
        first, counts = _counts(self.lengths)
        all_lengths = np.repeat(first + np.arange(len(counts)), counts)
        chosen = all_lengths[((np.arange(self.count) + 0.5) / self.count * len(all_lengths)).astype(np.int64)]
        chosen[-1] = all_lengths[-1]
        return np.random.default_rng(0).permutation(chosen)

    @functools.cached_property
    def token_ids(self) -> list[np.ndarray]:
        """The tokens of each example, all of them in segment A."""
        rng = np.random.default_rng(1)
        return [rng.integers(FIRST_WORD, VOCABULARY, length) for length in self.length_N]

    @functools.cached_property
    def label_N(self) -> np.ndarray:
        return np.random.default_rng(2).integers(0, 2, self.count)

    @property
    def steps(self) -> int:
        """Steps per epoch."""
        return -(-self.count // self.batch)

    def parts(self) -> list[np.ndarray]:
        """The examples batch by batch, in their order."""
        return [np.arange(self.count)[i * self.batch :][: self.batch] for i in range(self.steps)]

    def chosen(self, step: int) -> np.ndarray:
        """Examples of a fine-tuning step, in the usual random order; ours follow bert/data/encoded_examples.py."""
        order_N = np.random.default_rng((0, 0)).permutation(self.count)
        return order_N[step * self.batch :][: self.batch]

    def padded(self, chosen: np.ndarray) -> dict[str, np.ndarray]:
        """Inputs of transformers' models and exports, int64 [B, T], padded to the longest example."""
        ids_BT = np.zeros((len(chosen), int(self.length_N[chosen].max())), np.int64)
        mask_BT = np.zeros_like(ids_BT)
        for row, i in enumerate(chosen):
            ids_BT[row, : self.length_N[i]] = self.token_ids[i]
            mask_BT[row, : self.length_N[i]] = 1
        return {"input_ids": ids_BT, "attention_mask": mask_BT, "token_type_ids": np.zeros_like(ids_BT)}


def _counts(lengths: str) -> tuple[int, list[int]]:
    if lengths.isdecimal():
        return int(lengths), [1]
    first, counts = COUNTS[lengths] if lengths in COUNTS else json.loads(pathlib.Path(lengths).read_text())
    return first, counts
