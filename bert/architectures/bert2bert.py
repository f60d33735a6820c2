"""BertToBertConfig: an encoder and a decoder that are both a BERT. The modules are in bert2bert_stacks.py, which needs
JAX.

Source: Rothe et al. 2020, "Leveraging pre-trained checkpoints for sequence generation tasks"; transformers
``models/encoder_decoder`` for the keys of config.json.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from bert.architectures import config_keys
from bert.architectures.bert import BertConfig
from bert.architectures.encoder_decoder import flops_of_two_stacks
from bert.errors import InputError, check_range

_HALVES = ("encoder", "decoder")
_OF_RUN = ("hidden_dropout", "attention_dropout", "initializer_range")  # they may differ: the encoder's count
# Our field -> name in config.json.
_OWN_NAMES = {"start_id": "decoder_start_token_id", "end_id": "eos_token_id", "share": "tie_encoder_decoder"}
_READ = (*_HALVES, *_OWN_NAMES.values(), "tie_word_embeddings")


@dataclasses.dataclass(frozen=True)
class BertToBertConfig(BertConfig):
    """The sizes of each half, which are equal but for their vocabularies; those of the target are ``vocab_size``."""

    model_type: ClassVar[str] = "encoder-decoder"
    source_vocab_size: int = 0  # rows of the encoder's token table; 0: as many as the decoder's
    share: bool = False  # one set of weights for both halves, but for what reads the source
    tied: bool = True  # the decoder's token table scores words; else they have a table of their own
    start_id: int = 0  # the token that stands before the first word of the target
    end_id: int | None = None  # the token behind its last word, for other programs; the tokenizer has the same

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("source_vocab_size", self.source_vocab_size, at_least=0, whole=True)
        check_range("start_id", self.start_id, at_least=0, at_most=self.vocab_size - 1, whole=True)
        if self.end_id is not None:
            check_range("end_id", self.end_id, at_least=0, at_most=self.vocab_size - 1, whole=True)
        if self.share and self.source_rows != self.vocab_size:
            both = f"the source has {self.source_rows} entries, the target {self.vocab_size}"
            raise InputError(f"share is True, but {both}; shared weights need one vocabulary")

    @property
    def source_rows(self) -> int:
        return self.source_vocab_size or self.vocab_size

    def of_source(self) -> BertToBertConfig:
        """As the encoder's module reads it."""
        return dataclasses.replace(self, vocab_size=self.source_rows, source_vocab_size=0, start_id=0, end_id=None)

    @classmethod
    def from_json(cls, values: Mapping[str, Any], *, source: str = "config.json") -> BertToBertConfig:
        """The model that a ``config.json`` of transformers' EncoderDecoderModel describes."""
        encoder, decoder = (_half(values, name, source) for name in _HALVES)
        for field in dataclasses.fields(BertConfig):
            ours, theirs = getattr(encoder, field.name), getattr(decoder, field.name)
            if ours != theirs and field.name not in ("vocab_size", "is_decoder", *_OF_RUN):
                key = cls.json_names[field.name]
                rule = f"{key} of the encoder is {ours}, of the decoder {theirs}"
                raise InputError(f"{source}: {rule}; only halves that differ in vocab_size alone can be loaded")
        if values.get("decoder_start_token_id") is None:
            what = "decoder_start_token_id is missing"
            raise InputError(f"{source}: {what}; set it to the id of the token before the first word, such as [CLS]")
        tied = values["decoder"].get("tie_word_embeddings", values.get("tie_word_embeddings"))
        fields = {name.name: getattr(encoder, name.name) for name in dataclasses.fields(BertConfig)}
        fields |= {"vocab_size": decoder.vocab_size, "share": bool(values.get("tie_encoder_decoder"))}
        fields |= {"source_vocab_size": encoder.vocab_size * (encoder.vocab_size != decoder.vocab_size)}
        fields |= {"start_id": values["decoder_start_token_id"], "end_id": values.get("eos_token_id")}
        try:
            return cls(**fields, tied=tied is not False)
        except InputError as error:
            raise InputError(f"{source}: {config_keys.respelled(str(error), _OWN_NAMES)}") from None

    @classmethod
    def json_notes(cls, values: Mapping[str, Any], *, source: str = "config.json") -> list[str]:
        """One line each for keys that nothing here reads."""
        halves = [config_keys.notes(values[name], cls.json_names.values(), f"{source}: {name}") for name in _HALVES]
        return [*config_keys.notes_of_own(values, _READ, source), *halves[0], *halves[1]]

    def to_json(self) -> dict[str, Any]:
        """The model's part of a Hugging Face ``config.json``."""
        half = {name: getattr(self, ours) for ours, name in self.json_names.items()} | {"model_type": "bert"}
        of_decoder = {"is_decoder": True, "add_cross_attention": True, "tie_word_embeddings": self.tied}
        return {
            "model_type": self.model_type,
            "is_encoder_decoder": True,
            "encoder": half | {"vocab_size": self.source_rows},
            "decoder": half | of_decoder,
            "decoder_start_token_id": self.start_id,
            "tie_encoder_decoder": self.share,
            "tie_word_embeddings": self.tied,
            **({} if self.end_id is None else {"eos_token_id": self.end_id}),
        }

    def matmul_flops_per_token(self, length: int) -> float:
        """As `EncoderDecoderConfig.matmul_flops_per_token`."""
        return flops_of_two_stacks(self, super().matmul_flops_per_token(length), length)


def _half(values: Mapping[str, Any], name: str, source: str) -> BertConfig:
    """The BERT that is one half. Raises InputError, naming the half, for what is none."""
    half = values.get(name)
    if not isinstance(half, Mapping):
        raise InputError(f"{source}: {name} is missing; an encoder-decoder has the configurations of both halves")
    config = BertConfig.from_json({**half, "add_cross_attention": False}, source=f"{source}: {name}")
    if config.is_decoder != (name == "decoder"):
        rule = "a decoder's attention is causal, an encoder's is not"
        raise InputError(f"{source}: {name}: is_decoder is {config.is_decoder}; {rule}")
    return config
