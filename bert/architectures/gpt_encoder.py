"""GPT and GPT-2: token and learned position embeddings, and a stack of causal blocks.

Source: Radford et al. 2018, "Improving language understanding by generative pre-training" (post-norm); Radford et al.
2019 (pre-norm, a norm after the last block).
"""

from typing import ClassVar

import flax.linen as nn
from jax import Array

from bert.architectures.gpt import GPTConfig
from bert.model import positions
from bert.model.blocks import Block, PreNormBlock
from bert.model.dropout import dropout
from bert.model.embeddings import Embedding
from bert.model.stack import StackedEncoder, rows_over_data
from bert.types import Batch


class GPTEmbeddings(nn.Module):
    """Sum of token and position embeddings, not normalised; [B, T] ids -> [B, T, D]."""

    config: GPTConfig

    def setup(self) -> None:
        self.token = Embedding(self.config, self.config.vocab_size)
        self.position = positions.embedding(self.config, "learned")

    def __call__(self, batch: Batch, key: Array | None) -> Array:
        x_BTD = rows_over_data(self.token(batch["token_ids"]) + self.position(batch["position_ids"]))
        return dropout(x_BTD, self.config.hidden_dropout, key).astype(self.config.dtype)


class GPTEncoder(StackedEncoder):
    """A batch (bert/data/batches.py) -> hidden states [B, T, D] in ``config.dtype``, none of which saw a later token.

    Reads ``token_ids``, ``position_ids`` and ``example_ids``, each int32 [B, T].
    """

    config: GPTConfig
    heads: ClassVar[str] = "bare"
    embeddings_class: ClassVar[type[nn.Module]] = GPTEmbeddings
    block_class: ClassVar[type[nn.Module]] = Block


class GPT2Encoder(GPTEncoder):
    """The same with norms before the sublayers, and one after the last block."""

    block_class: ClassVar[type[nn.Module]] = PreNormBlock
    final_norm: ClassVar[bool] = True
