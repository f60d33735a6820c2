"""The pretraining step that is timed: its random batch, and the arithmetic that it needs.

Every implementation imports this in its own environment, so it needs only NumPy. Texts to classify are in texts.py.
"""

import argparse
import dataclasses
from typing import Any

import numpy as np

from bert.architectures.bert import BertConfig

VOCABULARY, MASK, FIRST_WORD = 30522, 103, 1000  # in the released uncased vocabulary


@dataclasses.dataclass(frozen=True)
class Work:
    """A pretraining step: masked words and next sentence, AdamW.

    Attributes:
      size: a name of `BertConfig.of_size`. batch: number of rows. length: tokens in each row, none of them padding.
      dtype: of matrix products. dropout: rate for hidden states and attention weights.
    """

    size: str
    batch: int
    length: int
    dtype: str = "float32"
    dropout: float = 0.1

    @property
    def config(self) -> BertConfig:
        return config_of(self.size, self.dtype, self.dropout)

    @property
    def masked(self) -> int:
        """Masked positions in a row: 15 %, as in BERT's README (20 of 128, 77 of 512)."""
        return {128: 20, 512: 77}.get(self.length, round(0.15 * self.length))

    @property
    def flops(self) -> float:
        """FLOPs that a step needs, forward and backward, with the vocabulary at the masked positions only."""
        config, tokens = self.config, self.batch * self.length
        head = 2.0 * self.masked * config.hidden_size * (config.hidden_size + config.vocab_size)
        return 3.0 * (tokens * config.matmul_flops_per_token(self.length) + self.batch * head)

    def arrays(self) -> dict[str, np.ndarray]:
        """The batch (keys: bert/data/batches.py): one example per row, segment B in the second half."""
        rng = np.random.default_rng(0)
        B, T, P = self.batch, self.length, self.masked
        token_ids = rng.integers(FIRST_WORD, VOCABULARY, (B, T)).astype(np.int32)
        places = np.sort(np.stack([rng.choice(np.arange(1, T), P, replace=False) for _ in range(B)]), 1).astype(
            np.int32
        )
        masked_ids = np.take_along_axis(token_ids, places, 1)
        np.put_along_axis(token_ids, places, MASK, 1)
        return {
            "token_ids": token_ids,
            "type_ids": np.broadcast_to(np.arange(T) >= T // 2, (B, T)).astype(np.int32),
            "position_ids": np.broadcast_to(np.arange(T), (B, T)).astype(np.int32),
            "example_ids": np.ones((B, T), np.int32),
            "cls_positions": np.zeros((B, 1), np.int32),
            "masked_positions": places,
            "masked_ids": masked_ids,
            "masked_weights": np.ones((B, P), np.float32),
            "next_sentence_labels": rng.integers(0, 2, (B, 1)).astype(np.int32),
            "next_sentence_weights": np.ones((B, 1), np.float32),
        }


def config_of(size: str, dtype: str, dropout: float) -> BertConfig:
    """The encoder of that size with the released vocabulary."""
    return BertConfig.of_size(
        size, vocab_size=VOCABULARY, dtype=dtype, hidden_dropout=dropout, attention_dropout=dropout
    )


def parser(doc: str, kind: type = Work) -> argparse.ArgumentParser:
    """A parser with a flag for each field of the dataclass ``kind``; implementations add their own flags."""
    flags = argparse.ArgumentParser(description=doc)
    for field in dataclasses.fields(kind):
        required = field.default is dataclasses.MISSING
        flags.add_argument(
            f"--{field.name}", type=field.type, required=required, default=None if required else field.default
        )
    return flags


def work_of(options: argparse.Namespace, kind: type = Work) -> Any:
    """The ``kind`` that the flags describe."""
    return kind(**{field.name: getattr(options, field.name) for field in dataclasses.fields(kind)})
