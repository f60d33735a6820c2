"""Models that write captions: an encoder makes a grid of cells of a picture, and a decoder reads it word by word.

Axes: B row, S cell, K numbers of a patch, X row of a grid, Y column, C channel, U target position, D hidden width.

Source: Xu et al. 2015 (attention to a grid); Dosovitskiy et al. 2021 (patches).
"""

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from bert.architectures.captions import PictureRecurrentConfig, PictureTransformerConfig
from bert.architectures.encoder_decoder_stacks import EncoderDecoder, ScaledEmbeddings
from bert.architectures.recurrent_decoder_modules import RecurrentDecoder, RecurrentEncoderDecoder
from bert.model import convolutions
from bert.model.blocks import LayerNorm, PreNormBlock
from bert.model.decoders import Memory
from bert.model.dropout import dropout, kept
from bert.model.embeddings import Embedding
from bert.model.grid import GridPositions, PatchEmbedding
from bert.model.reading import TOKENS, Reads, States, of_tokens
from bert.model.stack import StackedEncoder, rows_over_data
from bert.model.weights import Weights
from bert.types import Batch


class CellEmbeddings(nn.Module):
    """Patches, or the features of cells, through one layer, and their places; -> [B, S, D]."""

    config: Any  # a `PictureGrid`

    def setup(self) -> None:
        self.patch = PatchEmbedding(self.config, self.config.grid, self.config.cell_positions)

    def __call__(self, batch: Batch, key: Array | None) -> Array:
        x_BSD = rows_over_data(self.patch(batch["patches"], batch["position_ids"]))
        return dropout(x_BSD, self.config.hidden_dropout, key).astype(self.config.dtype)


class PatchCells(StackedEncoder):
    """States of the patches of pictures, which have attended to each other, [B, S, D]."""

    config: Any
    final_norm: ClassVar[bool] = True
    embeddings_class: ClassVar[type[nn.Module]] = CellEmbeddings
    block_class: ClassVar[type[nn.Module]] = PreNormBlock


class LinearCells(nn.Module):
    """The embeddings of cells as they are, normalised."""

    config: Any

    def setup(self) -> None:
        self.embeddings, self.norm = CellEmbeddings(self.config), LayerNorm(self.config)

    def __call__(self, batch: Batch, *, train: bool = False, reads: Reads = TOKENS) -> States:
        key = self.make_rng("dropout") if train else None
        x_BSD = self.norm(self.embeddings(batch, key)).astype(self.config.dtype)
        return of_tokens(x_BSD, batch, reads)


class ConvolutionCells(nn.Module):
    """Cells [B, S, D] by convolutions with stride 2, each normalised over its channels, and the places of the cells.

    A cell sees its own patch and as many pixels less one before it: 15 of patches of 8; each of ``cell_layers`` adds a
    patch on either side.
    """

    config: Any

    def setup(self) -> None:
        config = self.config
        levels = config.patch_size.bit_length() - 1
        widths = [config.channels, *(max(16, config.hidden_size >> i) for i in range(levels - 1, 0, -1))]
        widths += [config.hidden_size] * (1 + config.cell_layers)
        self.convolution = [Weights((3, 3, a, b), gain=2**0.5) for a, b in itertools.pairwise(widths)]
        self.norm = [LayerNorm(config) for _ in self.convolution]
        self.position = GridPositions(config, config.grid, config.cell_positions)

    def __call__(self, batch: Batch, *, train: bool = False, reads: Reads = TOKENS) -> States:
        config, patches_BSK = self.config, batch["patches"]
        (X, Y), p, (B, S, _) = config.grid, config.patch_size, patches_BSK.shape
        if self.is_initializing() and S < X * Y:  # batches of one place, which no parameter depends on
            patches_BSK = jnp.pad(patches_BSK, ((0, 0), (0, X * Y - S), (0, 0)))
        x_BXYC = patches_BSK.reshape(B, X, Y, p, p, config.channels).swapaxes(2, 3)
        x_BXYC = x_BXYC.reshape(B, X * p, Y * p, config.channels)
        for i, (convolution, norm) in enumerate(zip(self.convolution, self.norm, strict=True)):
            shrinks = i < len(self.norm) - config.cell_layers
            y_BXYC = convolutions.in_two(x_BXYC, *convolution(), config.dtype, 1 + shrinks)
            y_BXYC = jax.nn.relu(norm(y_BXYC)).astype(config.dtype)
            x_BXYC = y_BXYC if shrinks else x_BXYC + y_BXYC
        x_BSD = x_BXYC.reshape(B, X * Y, -1)[:, :S]
        key = self.make_rng("dropout") if train else None
        places_BS = jnp.broadcast_to(jnp.arange(S), (B, S))
        x_BSD = rows_over_data(x_BSD + self.position(places_BS))
        return of_tokens(dropout(x_BSD, config.hidden_dropout, key).astype(config.dtype), batch, reads)


CELLS: dict[str, type[nn.Module]] = {"convolutions": ConvolutionCells, "patches": PatchCells, "linear": LinearCells}


class OfPictures(nn.Module):
    """What decoders of pictures share: the first base class, before that of the decoder."""

    packing: ClassVar[str] = "refused"

    def memory(self, batch: Batch, *, train: bool = False) -> Memory:
        """What the decoder reads of the cells, as `captions.PictureGrid.reads` says."""
        cells_BSD, ids_BS = self.source(batch, train=train)["tokens"], batch["example_ids"]
        if self.config.reads == "grid":
            return Memory(cells_BSD, ids_BS)
        mean_B1D = cells_BSD.mean(1, keepdims=True)
        return Memory(mean_B1D if self.config.reads == "mean" else jnp.zeros_like(mean_B1D), ids_BS[:, :1])

    def teacher_forced(self, memory: Memory, batch: Batch, *, train: bool = False) -> Array:
        """As of the decoder, with the words dropped in training that `captions.PictureGrid.word_dropout` says."""
        if train and self.config.word_dropout:
            ids_BU, key = batch["target_ids"], self.make_rng("dropout")
            read_BU = jnp.where(kept(key, ids_BU.shape, self.config.word_dropout), ids_BU, self.config.start_id)
            batch = {**batch, "target_ids": read_BU}
        scores: Array = super().teacher_forced(memory, batch, train=train)  # type: ignore[misc]
        return scores


class PictureTransformer(OfPictures, EncoderDecoder):
    """An `EncoderDecoder` whose source is a picture, its patches in ``patches``, float32 [B, S, K]; one in a row."""

    config: PictureTransformerConfig

    def setup(self) -> None:
        super().setup()
        self.words = ScaledEmbeddings(self.config)

    def _encoder(self) -> Any:
        return CELLS[self.config.cells](self.config)

    def _embedded(self, words: Batch, key: Array | None) -> Any:
        return self.words(words, key)

    def token_table(self) -> Any:
        """Token embeddings float32 [V, D], of words alone."""
        return self.words.token.embedding


class PictureRecurrent(OfPictures, RecurrentEncoderDecoder):
    """A `RecurrentEncoderDecoder` whose source is a picture, as of `PictureTransformer`."""

    config: PictureRecurrentConfig

    def setup(self) -> None:
        config = self.config
        self.source, self.decoder = CELLS[config.cells](config), RecurrentDecoder(config, of_grid=True)
        self.token = Embedding(config, config.vocab_size, config.embedding_size)
        if not config.tied:
            self.output_token = Embedding(config, config.vocab_size, config.output_size)

    def _embedded(self, ids: Array) -> Array:
        embedded: Array = self.token(ids)
        return embedded

    def token_table(self) -> Any:
        """Token embeddings float32 [V, I]."""
        return self.token.embedding

    def depth_of(self, path: Sequence[str]) -> int:
        """0 for what reads the picture and the embeddings; above it the decoder."""
        return 0 if path[0] in ("source", "token") else self.config.num_layers + 1
