"""BERT's encoder: token, position and type embeddings, and a stack of post-norm blocks.

Source: Devlin et al. 2018; google-research/bert ``modeling.py``.
"""

from typing import ClassVar

import flax.linen as nn
from jax import Array

from bert.architectures.bert import BertConfig
from bert.model import positions
from bert.model.blocks import Block, LayerNorm
from bert.model.dropout import dropout
from bert.model.embeddings import Embedding
from bert.model.stack import StackedEncoder, rows_over_data
from bert.types import Batch


class Embeddings(nn.Module):
    """Sum of token, position and type embeddings, normalised; [B, T] ids -> [B, T, D]."""

    config: BertConfig

    def setup(self) -> None:
        self.token = Embedding(self.config, self.config.vocab_size)
        self.position = positions.embedding(self.config, "learned")
        self.type = Embedding(self.config, self.config.type_vocab_size)
        self.norm = LayerNorm(self.config)

    def __call__(self, batch: Batch, key: Array | None) -> Array:
        x_BTD = self.token(batch["token_ids"]) + self.position(batch["position_ids"]) + self.type(batch["type_ids"])
        x_BTD = rows_over_data(x_BTD)
        return dropout(self.norm(x_BTD), self.config.hidden_dropout, key).astype(self.config.dtype)


class BertEncoder(StackedEncoder):
    """A batch (bert/data/batches.py) -> hidden states [B, T, D] in ``config.dtype``.

    Reads ``token_ids``, ``type_ids``, ``position_ids`` and ``example_ids``, each int32 [B, T].
    """

    config: BertConfig
    embeddings_class: ClassVar[type[nn.Module]] = Embeddings
    block_class: ClassVar[type[nn.Module]] = Block
