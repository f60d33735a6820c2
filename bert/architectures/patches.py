"""PicturesConfig: a Transformer that reads pictures cut into patches, ``patches``. The module is in
patches_encoder.py.

Source: Dosovitskiy et al. 2021, "An image is worth 16x16 words" (ViT).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert.architectures.transformer import TransformerConfig
from bert.errors import InputError, check_choice, check_range

# Of the cells of a grid: a table of rows and one of columns; sines, half of the width for each; or none.
GRID_POSITIONS = ("learned", "sinusoidal", "none")
_NAMES = (
    "height", "width", "channels", "patch_size", "positions", "hidden_size", "num_layers", "num_heads",
    "intermediate_size", "hidden_act", "layer_norm_eps", "hidden_dropout", "attention_dropout", "initializer_range",
)  # fmt: skip


class CutPictures:
    """What configurations of pictures that are cut into squares share."""

    height: int
    width: int
    channels: int
    patch_size: int

    def check_cut(self, positions: str, hidden_size: int) -> None:
        """Raises InputError for sizes that do not go together; ``positions``: of squares, states of ``hidden_size``."""
        for name in ("height", "width", "channels", "patch_size"):
            check_range(name, getattr(self, name), at_least=1, whole=True)
        if self.height % self.patch_size or self.width % self.patch_size:
            sides = f"pictures have {self.height} x {self.width} pixels"
            raise InputError(f"{sides}, no multiple of patch_size {self.patch_size}; set patch_size to a divisor")
        if positions == "sinusoidal" and hidden_size % 4:
            raise InputError(f"hidden_size is {hidden_size}; with sinusoidal positions it must be a multiple of 4")

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of squares."""
        return self.height // self.patch_size, self.width // self.patch_size

    @property
    def token_inputs(self) -> dict[str, tuple[int, ...]]:
        """See `architectures.inputs_of`."""
        return {"patches": (self.patch_size**2 * self.channels,)}


@dataclasses.dataclass(frozen=True)
class PicturesConfig(CutPictures, TransformerConfig):
    """Sizes of pictures and of the encoder. Raises InputError for a value out of range."""

    model_type: ClassVar[str] = "patches"
    json_names: ClassVar[Mapping[str, str]] = {name: name for name in _NAMES}
    type_vocab_size: ClassVar[int] = 1
    vocab_size: int = 1  # [CLS] alone
    height: int = 8  # of a picture, in pixels
    width: int = 8
    channels: int = 1  # numbers of a pixel
    patch_size: int = 2  # pixels of a patch's side; each patch is a position
    positions: str = "learned"  # of patches: learned (tables of rows and columns), sinusoidal, or none

    def __post_init__(self) -> None:
        check_choice("positions", self.positions, GRID_POSITIONS)
        self.check_cut(self.positions, self.hidden_size)
        rows, columns = self.grid
        object.__setattr__(self, "max_position_embeddings", 1 + rows * columns)
        super().__post_init__()

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, source: str = "config.json") -> PicturesConfig:
        return cls.from_fields(values, source, vocab_size=1)
