"""Configurations of convolutional networks: ``strided`` and ``dilated``. The modules are in convolution_encoders.py."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bert.architectures.plain_config import PlainConfig, TwoSidedConfig
from bert.architectures.transformer import ACTIVATIONS
from bert.errors import InputError


@dataclasses.dataclass(frozen=True)
class StridedConfig(PlainConfig):
    """Sizes of a network whose every level has half as many positions, down to one; ``num_layers`` is their number."""

    model_type: ClassVar[str] = "strided"
    whole: ClassVar[tuple[str, ...]] = ("kernel_size",)
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"activation": ACTIVATIONS}
    hidden_size: int = 256  # width of all levels above the embeddings
    num_layers: int = 9  # levels; L of them make one vector of 2^L tokens
    kernel_size: int = 3  # positions of a level that one of the next reads
    activation: str = "relu"  # of the levels

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_length > (most := 2**self.num_layers):
            needed = (self.max_length - 1).bit_length()
            rule = f"max_length is {self.max_length}, but {self.num_layers} levels make one vector of {most} tokens"
            raise InputError(f"{rule}; set num_layers to {needed} at least, or lower max_length")

    @property
    def receptive_field(self) -> int:
        """Tokens that a state of the last level has read."""
        return receptive_field(self.kernel_size, self.num_layers)

    def matmul_flops_per_token(self, length: int) -> float:
        """Way up and way back, 2 per multiply-add; the levels have 1/2, 1/4, ... of the positions."""
        level = self.kernel_size * self.hidden_size
        up = self.embedding_size / 2 + self.hidden_size * (0.5 - 0.5**self.num_layers)
        back = self.hidden_size * (1 - 0.5**self.num_layers) + self.embedding_size / self.kernel_size
        return 2.0 * level * (up + back)


@dataclasses.dataclass(frozen=True)
class DilatedConfig(TwoSidedConfig):
    """Sizes of two one-sided stacks of dilated convolutions."""

    model_type: ClassVar[str] = "dilated"
    whole: ClassVar[tuple[str, ...]] = ("kernel_size",)
    hidden_size: int = 256
    num_layers: int = 6  # layer l, from 0, reads positions at multiples of 2^l
    kernel_size: int = 3  # positions that one of the next layer reads

    @property
    def receptive_field(self) -> int:
        """Tokens that a state of one side has read, its own among them."""
        return receptive_field(self.kernel_size, self.num_layers)

    def matmul_flops_per_token(self, length: int) -> float:
        width = self.hidden_size // 2
        return 2.0 * 2 * width * (self.embedding_size + self.num_layers * self.kernel_size * 2 * width)


def receptive_field(kernel_size: int, num_layers: int) -> int:
    """Tokens read by a state where each layer doubles the distance of the taps: ``1 + (k - 1) (2^L - 1)``."""
    return 1 + (kernel_size - 1) * (2**num_layers - 1)
