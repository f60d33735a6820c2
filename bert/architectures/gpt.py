"""GPTConfig and GPT2Config: causal Transformers. The modules are in gpt_encoder.py, which needs JAX.

Source: Radford et al. 2018 and 2019; transformers ``models/openai`` and ``models/gpt2`` for the keys of config.json.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert.architectures import config_keys
from bert.architectures.transformer import TransformerConfig
from bert.errors import InputError, check_choice

# our field -> name in config.json
_JSON_NAMES = {
    "vocab_size": "vocab_size",
    "hidden_size": "n_embd",
    "num_layers": "n_layer",
    "num_heads": "n_head",
    "max_position_embeddings": "n_positions",
    "layer_norm_eps": "layer_norm_epsilon",
    "hidden_dropout": "resid_pdrop",
    "attention_dropout": "attn_pdrop",
    "initializer_range": "initializer_range",
}
# What the original code calls gelu is the tanh form.
_AFN = {"gelu": "gelu_new", "relu": "relu", "silu": "silu", "swish": "silu"}
_HARMLESS = """
    n_ctx embd_pdrop predict_special_tokens reorder_and_upcast_attn summary_activation summary_first_dropout
    summary_proj_to_labels summary_type summary_use_proj
"""
# Keys of other arithmetic, with the only value that is computed here.
_ONLY = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False,
         "is_encoder_decoder": False, "tie_word_embeddings": True}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class GPTConfig(TransformerConfig):
    """The first GPT: BERT's block with causal attention, no segments and no norm of the embeddings."""

    model_type: ClassVar[str] = "openai-gpt"
    json_names: ClassVar[Mapping[str, str]] = _JSON_NAMES
    type_vocab_size: ClassVar[int] = 1
    hidden_act: str = "gelu_new"
    layer_norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model_type == "openai-gpt" and self.intermediate_size != 4 * self.hidden_size:
            rule = f"it must be 4 hidden_size, {4 * self.hidden_size}, in an openai-gpt"
            raise InputError(f"intermediate_size is {self.intermediate_size}; {rule}: set it so, or take a gpt2")

    @property
    def causal(self) -> bool:
        return True

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, source: str = "config.json") -> GPTConfig:
        """The model that a Hugging Face ``config.json`` describes."""
        for name, only in _ONLY.items():
            if values.get(name, only) not in (only, None):
                raise InputError(f"{source}: {name} is {values[name]!r:.100}; only {only} can be computed here")
        if values.get("quantization_config"):
            raise InputError(f"{source}: quantization_config is there; dequantize the model and save it again")
        return cls.from_fields(values, source, **cls._other_fields(values, source))

    @classmethod
    def _other_fields(cls, values: Mapping[str, Any], source: str) -> dict[str, Any]:
        """Fields whose value in config.json is not ours."""
        afn = values.get("afn") or "gelu"
        check_choice(f"{source}: afn", afn, tuple(_AFN))
        return {"hidden_act": _AFN[afn]}

    @classmethod
    def json_notes(cls, values: Mapping[str, Any], *, source: str = "config.json") -> list[str]:
        """One line each for keys and for classes that nothing here reads."""
        held = (*cls.json_names.values(), *_HARMLESS.split(), *_ONLY, "afn", "activation_function", "n_inner")
        family = "GPT2" if cls.model_type == "gpt2" else "OpenAIGPT"
        notes = config_keys.notes(values, held, source, family=family)
        if (rate := values.get("embd_pdrop")) not in (None, values.get("resid_pdrop", 0.1)):
            notes.append(f"{source}: embd_pdrop is {rate!r}; embeddings have the dropout of resid_pdrop here")
        return notes

    def to_json(self) -> dict[str, Any]:
        """The model's part of a Hugging Face ``config.json``."""
        return super().to_json() | {"embd_pdrop": self.hidden_dropout} | self._other_values()

    def _other_values(self) -> dict[str, Any]:
        names = {ours: theirs for theirs, ours in reversed(_AFN.items())}
        check_choice("hidden_act", self.hidden_act, tuple(names))
        return {"afn": names[self.hidden_act]}


@dataclasses.dataclass(frozen=True)
class GPT2Config(GPTConfig):
    """GPT-2: norms before the sublayers, and one after the last block."""

    model_type: ClassVar[str] = "gpt2"
    json_names: ClassVar[Mapping[str, str]] = _JSON_NAMES | {
        "intermediate_size": "n_inner",
        "hidden_act": "activation_function",
    }

    @classmethod
    def _other_fields(cls, values: Mapping[str, Any], source: str) -> dict[str, Any]:
        return {}

    def _other_values(self) -> dict[str, Any]:
        return {}
