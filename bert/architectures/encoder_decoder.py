"""EncoderDecoderConfig: the Transformer of two stacks. The modules are in encoder_decoder_stacks.py, which needs JAX.

Source: Vaswani et al. 2017, "Attention is all you need"; Wu et al. 2021, "Good for misconceived reasons" (tiny).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bert.architectures.transformer import TransformerConfig
from bert.errors import check_choice, check_range

_KEYS = (
    "vocab_size", "hidden_size", "num_layers", "num_heads", "intermediate_size", "max_position_embeddings",
    "hidden_act", "layer_norm_eps", "hidden_dropout", "attention_dropout", "initializer_range", "norm", "start_id",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class EncoderDecoderConfig(TransformerConfig):
    """Sizes of an encoder and a decoder with as many blocks each, and one token table for source, target and scores."""

    model_type: ClassVar[str] = "transformer"
    json_names: ClassVar[Mapping[str, str]] = {name: name for name in _KEYS}  # only this library reads it
    type_vocab_size: ClassVar[int] = 1
    hidden_size: int = 512  # width of the hidden states
    num_layers: int = 6  # blocks of the encoder, and of the decoder
    num_heads: int = 8  # of each attention
    intermediate_size: int = 2048  # width of the feed-forward part
    hidden_act: str = "relu"  # of the feed-forward part
    layer_norm_eps: float = 1e-5  # torch.nn.Transformer
    attention_dropout: float = 0.0  # of attention weights; the paper has none
    # Standard deviation of random weights; 0.044 is that of the paper's tables at width 512, 1 / sqrt(width), which
    # that of Glorot's square kernels equals.
    initializer_range: float = 0.044
    norm: str = "post"  # post: the sums of the sublayers are normalised (the paper); pre: what they read
    start_id: int = 1  # the token that stands before the first word of the target

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("norm", self.norm, ("post", "pre"))
        check_range("start_id", self.start_id, at_least=0, at_most=self.vocab_size - 1, whole=True)

    def matmul_flops_per_token(self, length: int) -> float:
        """Of a token of the target and one of the source, in rows of that length: both stacks, and what joins them."""
        return flops_of_two_stacks(self, super().matmul_flops_per_token(length), length)


def flops_of_two_stacks(config: TransformerConfig, of_one: float, length: int) -> float:
    """``of_one`` twice, and what joins the stacks."""
    between = 4 * config.hidden_size**2
    return 2 * of_one + config.num_layers * (2.0 * between + 4.0 * length * config.hidden_size)
