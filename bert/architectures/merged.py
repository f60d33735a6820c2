"""MergedBertConfig: a BERT whose queries and keys are one matrix a head, ``bert-merged``, for small models.

The module is in merged_encoder.py. transformers has no such model; bert/query_key.py converts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert.architectures.bert import BertConfig
from bert.errors import InputError


@dataclasses.dataclass(frozen=True)
class MergedBertConfig(BertConfig):
    """A BERT's sizes; the scores of a layer have ``num_heads * hidden_size^2`` parameters."""

    model_type: ClassVar[str] = "bert-merged"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_decoder:
            raise InputError("is_decoder is True, but a 'bert-merged' encoder sees both sides; set model_type to bert")

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, source: str = "config.json") -> MergedBertConfig:
        return cls.from_fields(values, source)

    def matmul_flops_per_token(self, length: int) -> float:
        N, D = self.num_heads, self.hidden_size
        more_weights, more_scores = (N - 2) * D**2, length * (N - 1) * D
        return super().matmul_flops_per_token(length) + self.num_layers * 2.0 * (more_weights + more_scores)
