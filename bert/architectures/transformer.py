"""TransformerConfig: what configurations of Transformers share: sizes, activation, dropout, and how they are computed.

A model's own file adds its fields and its names in ``config.json``.

Source: Devlin et al. 2018 (base, large); Turc et al. 2019, "Well-Read Students Learn Better" (tiny to medium).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from bert.architectures import config_keys
from bert.errors import InputError, check_choice, check_range

# The fields that a released size decides; its feed-forward width is always four times its hidden width.
SIZED = ("num_layers", "hidden_size", "num_heads", "intermediate_size")
SIZES = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
# "gelu" is the exact one (erf); released configs also say gelu_new, gelu_fast and gelu_pytorch_tanh for the tanh form.
ACTIVATIONS = ("gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "relu", "silu", "swish", "tanh")
# Names in transformers for another way of computing the same function.
_SAME_ACTIVATION = {"gelu_python": "gelu", "gelu_python_tanh": "gelu_pytorch_tanh"}
DTYPES = ("float32", "bfloat16")
LAYER_LOOPS = ("auto", "scan", "unroll")
ATTENTIONS = ("core", "fused")


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """Sizes and the way of computing. Raises InputError for a value out of range."""

    model_type: ClassVar[str]
    json_names: ClassVar[Mapping[str, str]]  # our field -> name in config.json
    vocab_size: int  # rows of the token table
    hidden_size: int = 768  # width of the hidden states
    num_layers: int = 12  # blocks
    num_heads: int = 12  # attention heads of a block
    intermediate_size: int = 3072  # width of the feed-forward part; BERT: 4 hidden_size
    max_position_embeddings: int = 512  # longest sequence, in tokens
    hidden_act: str = "gelu"  # of the feed-forward part; gelu is the exact one (erf)
    layer_norm_eps: float = 1e-12  # google-research/bert, modeling.py
    hidden_dropout: float = 0.1  # of embeddings and hidden states; BERT appendix A.2: 0.1
    attention_dropout: float = 0.1  # of attention weights; BERT appendix A.2: 0.1
    # Standard deviation of random weights, before those beyond two of them are drawn again; BERT appendix A.2: 0.02.
    initializer_range: float = 0.02
    # Of matrix products; parameters, softmax, norms and losses stay float32. bfloat16 is faster on accelerators, and
    # rounds; float32 itself is rounded there by default (TF32 on NVIDIA, bfloat16 passes on TPU) unless
    # JAX_DEFAULT_MATMUL_PRECISION=highest is set.
    dtype: str = "float32"
    layer_loop: str = "auto"  # scan (one block compiled), unroll (faster on CPU), or auto: unroll on one CPU device
    remat: bool = False  # compute blocks again in the backward pass: less memory, a third more arithmetic
    # core, or fused: cuDNN's kernel on NVIDIA GPUs in bfloat16, for less memory; it needs attention_dropout=0.
    attention: str = "core"

    def __post_init__(self) -> None:
        for name in ("vocab_size", "hidden_size", "num_layers", "num_heads", "intermediate_size",
                     "max_position_embeddings"):  # fmt: skip
            check_range(name, getattr(self, name), at_least=1, whole=True)
        if self.hidden_size % self.num_heads:
            rule = f"hidden_size {self.hidden_size} must be a multiple of num_heads {self.num_heads}"
            nearest = max(1, round(self.hidden_size / self.num_heads)) * self.num_heads
            raise InputError(f"{rule}; the nearest is {nearest}")
        for name in ("hidden_dropout", "attention_dropout"):
            check_range(name, getattr(self, name), at_least=0, below=1)
        for name in ("layer_norm_eps", "initializer_range"):
            check_range(name, getattr(self, name), above=0, below=3e38)  # beyond is infinite in float32
        object.__setattr__(self, "hidden_act", _SAME_ACTIVATION.get(str(self.hidden_act), self.hidden_act))
        choices = {"hidden_act": ACTIVATIONS, "dtype": DTYPES, "layer_loop": LAYER_LOOPS, "attention": ATTENTIONS}
        for name, allowed in choices.items():
            check_choice(name, getattr(self, name), allowed)

    @property
    def causal(self) -> bool:
        """Whether no position sees a later one."""
        return False

    @property
    def max_length(self) -> int:
        return self.max_position_embeddings

    def check_training(self) -> None:
        """Raises InputError where an encoder can be run as the configuration says, but not trained."""
        if self.attention == "fused" and self.attention_dropout:
            what = "attention is 'fused', which has no dropout on attention weights"
            raise InputError(f"{what}; set attention_dropout=0 or attention='core'")

    @classmethod
    def of_size(cls, size: str, *, vocab_size: int, **changes: Any) -> Self:
        """The model of that size (tiny, mini, small, medium, base, large), with changes by field name."""
        check_choice("size", size, tuple(SIZES))
        layers, width, heads = SIZES[size]
        sizes = dict(zip(SIZED, (layers, width, heads, 4 * width), strict=True))
        return cls(**{"vocab_size": vocab_size, **sizes, **changes})

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, source: str = "config.json") -> Self:
        """The model that a ``config.json`` describes; here, one that only this library reads."""
        return cls.from_fields(values, source)

    @classmethod
    def json_notes(cls, values: Mapping[str, Any], *, source: str = "config.json") -> list[str]:
        """One line each for keys that nothing here reads."""
        return config_keys.notes_of_own(values, cls.json_names.values(), source)

    @classmethod
    def from_fields(cls, values: Mapping[str, Any], source: str, **fields: Any) -> Self:
        """The configuration with the values of config.json that it has names for, and ``fields``.

        Raises InputError, naming ``source`` and the file's keys.
        """
        fields = {ours: values[name] for ours, name in cls.json_names.items() if values.get(name) is not None} | fields
        missing = [
            cls.json_names[name]
            for name in ("vocab_size", "hidden_size", "num_layers", "num_heads")
            if name not in fields
        ]
        if missing:
            what = f"{', '.join(missing)} missing"
            raise InputError(f"{source}: {what}; a {cls.model_type} configuration names them")
        try:
            if "intermediate_size" not in fields and isinstance(fields["hidden_size"], int):
                fields["intermediate_size"] = 4 * fields["hidden_size"]
            return cls(**fields)
        except InputError as error:
            raise InputError(f"{source}: {config_keys.respelled(str(error), cls.json_names)}") from None

    def to_json(self) -> dict[str, Any]:
        """The model's part of a Hugging Face ``config.json``."""
        return {
            "model_type": self.model_type,
            **{name: getattr(self, ours) for ours, name in self.json_names.items()},
        }

    def matmul_flops_per_token(self, length: int) -> float:
        """Arithmetic of one token's forward pass in matrix products (2 per multiply-add), in a row of that length.

        The usual count, without heads: every block at every position, though of the last only what is read is computed.
        """
        weights = 4 * self.hidden_size**2 + 2 * self.hidden_size * self.intermediate_size
        return self.num_layers * (2.0 * weights + 4.0 * length * self.hidden_size)
