"""ConvS2SConfig: a convolutional encoder and decoder. The modules are in convs2s_stacks.py, which needs JAX.

Source: Gehring et al. 2017, "Convolutional sequence to sequence learning".
"""

import dataclasses
from typing import ClassVar

from bert.architectures.plain_config import PlainConfig
from bert.errors import check_range


@dataclasses.dataclass(frozen=True)
class ConvS2SConfig(PlainConfig):
    """Sizes of an encoder and a decoder with as many blocks each, and one token table for source, target and scores.

    Kernels vary as the paper's: those before a gate by 4 / inputs, and less where their input has dropout.
    """

    model_type: ClassVar[str] = "convs2s"
    whole: ClassVar[tuple[str, ...]] = ("kernel_size",)
    type_vocab_size: ClassVar[int] = 1
    embedding_size: int = 256  # width of the embeddings, and of the attention of each block of the decoder
    hidden_size: int = 256  # width of the blocks
    num_layers: int = 4  # blocks of the encoder, and of the decoder
    max_length: int = 512  # longest side, in tokens; each has as many learned positions
    kernel_size: int = 3  # positions that a state of a block reads of the block below it
    weight_norm: bool = False  # the length of each output's kernel is a parameter of its own, as in the paper
    start_id: int = 1  # the token that stands before the first word of the target

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("start_id", self.start_id, at_least=0, at_most=self.vocab_size - 1, whole=True)

    @property
    def widths(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The width of each block, of the encoder and of the decoder."""
        return ((self.hidden_size,) * self.num_layers,) * 2

    @property
    def receptive_field(self) -> int:
        """Tokens of the source that a state has read, and words before that a state of the target has."""
        return 1 + self.num_layers * (self.kernel_size - 1)

    def matmul_flops_per_token(self, length: int) -> float:
        """Of a token of the target and one of the source, in rows of that length: both stacks, and what joins them."""
        E, D, L = self.embedding_size, self.hidden_size, self.num_layers
        both = 2 * (2 * E * D + L * self.kernel_size * D * 2 * D)
        return 2.0 * (both + L * 2 * D * E) + L * 4.0 * length * E
