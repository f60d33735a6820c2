"""BertConfig: the configuration of BERT, as an encoder or, with causal attention, as a decoder.

The module is in bert_encoder.py, which needs JAX; this file does not. config_keys.py lists the other keys of
``config.json``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert.architectures import config_keys
from bert.architectures.transformer import TransformerConfig
from bert.errors import check_range

# our field -> name in config.json (Hugging Face, and Google's bert_config.json where it has the value)
_JSON_NAMES = {
    "vocab_size": "vocab_size",
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "intermediate_size": "intermediate_size",
    "max_position_embeddings": "max_position_embeddings",
    "type_vocab_size": "type_vocab_size",
    "hidden_act": "hidden_act",
    "layer_norm_eps": "layer_norm_eps",
    "hidden_dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
}


@dataclasses.dataclass(frozen=True)
class BertConfig(TransformerConfig):
    """An encoder's sizes and its way of computing. Raises InputError for a value out of range."""

    model_type: ClassVar[str] = "bert"
    json_names: ClassVar[Mapping[str, str]] = _JSON_NAMES
    type_vocab_size: int = 2  # segments A and B
    is_decoder: bool = False  # no position sees a later one

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("type_vocab_size", self.type_vocab_size, at_least=1, whole=True)

    @property
    def causal(self) -> bool:
        return self.is_decoder

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, source: str = "config.json") -> BertConfig:
        """The encoder that a Hugging Face ``config.json`` or Google's ``bert_config.json`` describes."""
        config_keys.refuse_other_models(values, source)
        return cls.from_fields(values, source, is_decoder=bool(values.get("is_decoder")))

    @classmethod
    def json_notes(cls, values: Mapping[str, Any], *, source: str = "config.json") -> list[str]:
        """One line each for keys and for classes that nothing here reads."""
        return config_keys.notes(values, _JSON_NAMES.values(), source)

    def to_json(self) -> dict[str, Any]:
        """The encoder's part of a Hugging Face ``config.json``."""
        return super().to_json() | ({"is_decoder": True} if self.is_decoder else {})
