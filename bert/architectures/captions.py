"""Configurations of models that write captions: an encoder of pictures, and a decoder that reads its grid of cells.

``picture-transformer`` has the decoder of a Transformer, ``picture-rnn`` a recurrent one. The modules are in
captions_modules.py, which needs JAX.

Source: Xu et al. 2015, "Show, attend and tell" (attention to the cells of a grid, by a recurrent decoder).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bert.architectures.encoder_decoder import EncoderDecoderConfig
from bert.architectures.patches import GRID_POSITIONS, CutPictures
from bert.architectures.recurrent_decoder import RecurrentDecoderConfig
from bert.errors import InputError, check_choice, check_range

_GRID = ("height", "width", "channels", "patch_size", "cells", "cell_layers", "cell_positions", "reads", "word_dropout")


@dataclasses.dataclass(frozen=True)
class PictureGrid(CutPictures):
    """Sizes of pictures, and how they become a grid of cells, which the decoder reads."""

    height: int = 64  # of a picture, in pixels
    width: int = 64
    channels: int = 3  # numbers of a pixel
    patch_size: int = 8  # pixels of a cell's side; of a grid of features 1
    # What makes the cells. convolutions: 3 x 3 with stride 2, log2 of patch_size one after the other; patches: the
    # patches, in num_layers blocks of self-attention; linear: the patches, or features, through one layer.
    cells: str = "convolutions"
    # Of convolutions: so many 3 x 3 with stride 1 behind these, each added to what it reads, so that a cell sees
    # patch_size more pixels around it.
    cell_layers: int = 0
    cell_positions: str = "learned"  # added to cells: learned (tables of rows and columns), sinusoidal, or none
    # What the decoder reads of the cells: grid, which it attends to; mean, one vector; none, so that it writes without
    # the picture. The last two are for comparison.
    reads: str = "grid"
    # Share of the words before that the decoder reads as start tokens in training (Bowman et al. 2016, "Generating
    # sentences from a continuous space"), so that it looks at the picture instead of guessing from them.
    word_dropout: float = 0.0

    def check_grid(self, width: int) -> None:
        """Raises InputError for values that do not go together; ``width``: of a cell's state."""
        check_choice("cells", self.cells, ("convolutions", "patches", "linear"))
        check_choice("cell_positions", self.cell_positions, GRID_POSITIONS)
        check_choice("reads", self.reads, ("grid", "mean", "none"))
        check_range("cell_layers", self.cell_layers, at_least=0, whole=True)
        if self.cell_layers and self.cells != "convolutions":
            raise InputError(f"cell_layers is {self.cell_layers}, but cells is {self.cells!r}; set it to 0")
        check_range("word_dropout", self.word_dropout, at_least=0, below=1)
        self.check_cut(self.cell_positions, width)
        if self.cells == "convolutions" and (self.patch_size < 2 or self.patch_size & (self.patch_size - 1)):
            what = (
                f"patch_size is {self.patch_size}; with cells='convolutions' it must be 2, 4, 8 or another power of 2"
            )
            raise InputError(f"{what}, or set cells='linear', for a grid of features")


@dataclasses.dataclass(frozen=True)
class PictureTransformerConfig(PictureGrid, EncoderDecoderConfig):
    """Sizes of the grid and of the decoder."""

    model_type: ClassVar[str] = "picture-transformer"
    json_names: ClassVar[Mapping[str, str]] = {name: name for name in (*EncoderDecoderConfig.json_names, *_GRID)}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_grid(self.hidden_size)


@dataclasses.dataclass(frozen=True)
class PictureRecurrentConfig(PictureGrid, RecurrentDecoderConfig):
    """Sizes of the grid and of the recurrent decoder; ``hidden_size`` is the width of a cell.

    The first state is made of the mean of the cells (Xu et al. 2015, section 3.1.2).
    """

    model_type: ClassVar[str] = "picture-rnn"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_grid(self.hidden_size)
        if self.cells == "patches":
            raise InputError("cells is 'patches', which have blocks of self-attention; set convolutions or linear")
        if self.score == "none":
            raise InputError("score is 'none'; a decoder without attention is reads='mean'")
