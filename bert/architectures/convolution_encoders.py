"""Convolutional networks: `StridedEncoder`, whose levels halve the text, and `DilatedEncoder`, with a stack a side.

Axes: B row, T position, D hidden width, J width of one side, I width of embeddings, E example, P position.

Source: strided: Ronneberger et al. 2015 (U-Net) for the way back; dilated: Kalchbrenner et al. 2016 (ByteNet).
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from bert.architectures.convolution import DilatedConfig, StridedConfig
from bert.model import convolutions, matmul
from bert.model.blocks import ACTIVATION_FUNCTIONS
from bert.model.convolutions import GatedBlock
from bert.model.dropout import by_number
from bert.model.embeddings import Embedding
from bert.model.reading import TOKENS, Reads, States, at
from bert.model.stack import rows_over_data
from bert.model.two_sides import TwoSidedEncoder
from bert.model.weights import Weights
from bert.types import Batch

_OF_RELU = 2**0.5  # He et al. 2015, section 2.2: a ReLU halves the mean square


class StridedEncoder(nn.Module):
    """A batch (bert/data/batches.py) -> hidden states [B, T, D] of a way up to one vector and back to the tokens.

    Reads ``token_ids`` and ``example_ids``; one example a row, for at an odd place it would be cut elsewhere.
    """

    config: StridedConfig
    packing: ClassVar[str] = "refused"
    objectives: ClassVar[tuple[str, ...]] = ("mlm",)
    read_at: ClassVar[str] = "top"

    def setup(self) -> None:
        config = self.config
        embedded, D, K = config.embedding_size, config.hidden_size, config.kernel_size
        self.token = Embedding(config, config.vocab_size, embedded)
        self.up = [Weights((K, D if level else embedded, D), gain=_OF_RELU) for level in range(config.num_layers)]
        self.back = [Weights((K, D, D), gain=_OF_RELU) for _ in range(config.num_layers)]
        self.skip = Weights((embedded, D))

    def __call__(self, batch: Batch, *, train: bool = False, reads: Reads = TOKENS) -> States:
        """What is read (bert/model/reading.py); of the example in a row, the vector that the last level makes."""
        levels, masks = self._levels(batch, train)
        states = {"examples": levels[-1][:, :1]} if "examples" in reads else {}
        # The way back is part of the encoder, though only the states of tokens come from it.
        if (of_tokens := [name for name in reads if name != "examples"]) or self.is_initializing():
            hidden_BTD = self._way_back(levels, masks)
            states |= {name: at(hidden_BTD, reads[name]) for name in of_tokens}
        return states

    def _way_back(self, levels: list[Array], masks: list[Array]) -> Array:
        """Hidden states of the tokens, [B, T, D], from the levels and their masks."""
        skips = [matmul.dense(levels[0], *self.skip(), self.config.dtype, self.config.dtype), *levels[1:]]
        x_BTD = skips[-1]
        for level in reversed(range(self.config.num_layers)):
            kernel_KDD, bias_D = self.back[level]()
            x_BTD = convolutions.transposed(x_BTD, kernel_KDD, bias_D, skips[level].shape[1], self.config.dtype)
            x_BTD = jnp.where(masks[level], self._active(x_BTD) + skips[level], 0.0)
        return x_BTD

    def levels(self, batch: Batch) -> list[Array]:
        """The embeddings [B, T, I], then each level [B, S, D], 0 where there is padding."""
        return self._levels(batch, train=False)[0]

    def _levels(self, batch: Batch, train: bool) -> tuple[list[Array], list[Array]]:
        """The levels, and the mask of each: where twice its place is a token of the level below."""
        dropped = by_number(self.config.hidden_dropout, self.make_rng("dropout") if train else None)
        dtype = self.config.dtype
        masks = [(batch["example_ids"] != 0)[..., None]]
        x_BTI = rows_over_data(self.token(batch["token_ids"]))
        levels = [dropped(jnp.where(masks[0], x_BTI, 0.0), 0).astype(dtype)]
        for depth, weights in enumerate(self.up, 1):
            masks.append(masks[-1][:, ::2])
            x_BSD = self._active(convolutions.strided(levels[-1], *weights(), dtype))
            levels.append(dropped(jnp.where(masks[-1], x_BSD, 0.0), depth))
        return levels, masks

    def _active(self, x: Array) -> Array:
        return ACTIVATION_FUNCTIONS[self.config.activation](x)

    def token_table(self) -> Any:
        """Token embeddings float32 [V, I]."""
        return self.token.embedding

    def depth_of(self, path: Sequence[str]) -> int:
        """0 for the embeddings, from 1 for the levels, on the way up and back; 1 for what leads past all of them."""
        return 0 if path[0] == "token" else 1 if path[0] == "skip" else int(path[0].rpartition("_")[2]) + 1


class DilatedEncoder(TwoSidedEncoder):
    """A batch (bert/data/batches.py) -> hidden states [B, T, D]; the first half sees what is left of it, and itself.

    Reads ``token_ids``, ``position_ids`` and ``example_ids``; taps that leave the example read zeros.
    """

    config: DilatedConfig

    def setup(self) -> None:
        config = self.config
        J = config.hidden_size // 2
        self.token = Embedding(config, config.vocab_size, config.embedding_size)
        steps = [tuple(2**layer * k for k in range(config.kernel_size)) for layer in range(config.num_layers)]
        self.enter_left, self.enter_right = (Weights((config.embedding_size, J)) for _ in range(2))
        self.left = [GatedBlock(config, J, tuple(-step for step in reversed(of))) for of in steps]
        self.right = [GatedBlock(config, J, of) for of in steps]

    def sides(self, batch: Batch, train: bool) -> tuple[Array, Array]:
        dropped = by_number(self.config.hidden_dropout, self.make_rng("dropout") if train else None)
        dtype = self.config.dtype
        x_BTI = dropped(rows_over_data(self.token(batch["token_ids"])), 0)
        sides = []
        for side, (enter, blocks) in enumerate(((self.enter_left, self.left), (self.enter_right, self.right))):
            x_BTJ = matmul.dense(x_BTI, *enter(), dtype, dtype)
            for depth, block in enumerate(blocks, 1):
                x_BTJ = dropped(block(x_BTJ, batch), 2 * depth - 1 + side)
            sides.append(x_BTJ)
        return sides[0], sides[1]

    def depth_of(self, path: Sequence[str]) -> int:
        """0 for the embeddings and what follows them, from 1 for the layers, whose number ends their name."""
        number = path[0].rpartition("_")[2]
        return int(number) + 1 if number.isdecimal() else 0
