"""A Transformer over the patches of pictures: [CLS], then the patches row by row, through blocks with norms in front.

Source: Dosovitskiy et al. 2021, sections 3.1 and D.3 ([CLS], pre-norm, a norm after the last block).
"""

from typing import ClassVar

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from bert.architectures.patches import PicturesConfig
from bert.model.blocks import PreNormBlock
from bert.model.dropout import dropout
from bert.model.embeddings import Embedding
from bert.model.grid import PatchEmbedding
from bert.model.stack import StackedEncoder, rows_over_data
from bert.types import Batch


class PictureEmbeddings(nn.Module):
    """Patches and their places, behind the vector of [CLS]; -> [B, T, D]."""

    config: PicturesConfig

    def setup(self) -> None:
        self.token = Embedding(self.config, self.config.vocab_size)
        self.patch = PatchEmbedding(self.config, self.config.grid, self.config.positions)

    def __call__(self, batch: Batch, key: Array | None) -> Array:
        position_BT = batch["position_ids"]
        patch_BTD = self.patch(batch["patches"], jnp.maximum(position_BT - 1, 0))
        x_BTD = jnp.where((position_BT == 0)[..., None], self.token(batch["token_ids"]), patch_BTD)
        return dropout(rows_over_data(x_BTD), self.config.hidden_dropout, key).astype(self.config.dtype)


class PicturesEncoder(StackedEncoder):
    """A batch (bert/data/batches.py) -> hidden states [B, T, D] in ``config.dtype``; a picture is an example.

    Reads ``patches`` float32 [B, T, K], anything at [CLS], and ``token_ids``, ``position_ids`` and ``example_ids``,
    int32 [B, T] each.
    """

    config: PicturesConfig
    final_norm: ClassVar[bool] = True
    embeddings_class: ClassVar[type[nn.Module]] = PictureEmbeddings
    block_class: ClassVar[type[nn.Module]] = PreNormBlock
