"""Tensor names of an encoder and a decoder that are both a BERT, in Hugging Face's files: BERT's under two prefixes.

Source: transformers ``models/encoder_decoder`` and ``models/bert``.
"""

import dataclasses
import functools
from collections.abc import Iterable

from bert.architectures.bert2bert import BertToBertConfig
from bert.interop.names import bert
from bert.interop.names.table import NameTable, Weight

_BLOCKS, _LAYER = "encoder/decoder/blocks", "decoder.bert.encoder.layer.{layer}.crossattention"
_TOKENS = "embeddings.word_embeddings.weight"
_SCORES = "decoder.cls.predictions"
_CROSS = {"query": "self.query", "key": "self.key", "value": "self.value", "output": "output.dense"}
_MEMORY = tuple(
    Weight(f"{_BLOCKS}/memory_attention/{ours}/{part}", axes, f"{_LAYER}.{theirs}.{name}", transposed=part == "kernel")
    for ours, theirs in _CROSS.items()
    for part, axes, name in (("kernel", "DD", "weight"), ("bias", "D", "bias"))
) + tuple(
    Weight(f"{_BLOCKS}/memory_norm/{ours}", "D", f"{_LAYER}.output.LayerNorm.{theirs}")
    for ours, theirs in (("scale", "weight"), ("bias", "bias"))
)


def _moved(weights: Iterable[Weight], paths: tuple[str, str], names: tuple[str, str], rows: str) -> tuple[Weight, ...]:
    """The weights with other beginnings of their paths and names; ``rows``: the letter of the token table's."""
    return tuple(
        dataclasses.replace(
            weight,
            path=weight.path.replace(*paths, 1),
            name=weight.name.replace(*names, 1),
            axes=str(weight.axes).replace("V", rows),
        )
        for weight in weights
    )


@functools.lru_cache(maxsize=8)
def table(config: BertToBertConfig) -> NameTable:
    """Of halves with weights of their own; shared ones are written under the names of both."""
    of_bert = bert.HUGGING_FACE.parts
    source = _moved(of_bert["encoder"], ("encoder/", "encoder/source/"), ("bert.", "encoder."), "E")
    target = _moved(of_bert["encoder"], ("encoder/", "encoder/decoder/"), ("bert.", "decoder.bert."), "V")
    words = _moved(of_bert["mlm"], ("head/mlm/", "encoder/decoder/words/"), ("cls.", "decoder.cls."), "V")
    twins: dict[str, str] = {}
    if config.share:
        for one, other in zip(source, target, strict=True):
            twins |= zip(one.names(config.num_layers), other.names(config.num_layers), strict=True)
    ignored = {r"^(encoder|decoder\.bert)\.embeddings\.(position_ids|token_type_ids)$": "a buffer; computed here"}
    if config.tied:
        scored = f"encoder.{_TOKENS}" if config.share else f"decoder.bert.{_TOKENS}"
        copies = {f"{_SCORES}.decoder.weight": scored, f"{_SCORES}.decoder.bias": f"{_SCORES}.bias"}
    else:
        copies = {}
        ignored[rf"^{_SCORES.replace('.', '[.]')}\.bias$"] = "without effect beside that of the output table"
        words = tuple(
            dataclasses.replace(weight, name=f"{_SCORES}.decoder.bias") if weight.axes == "V" else weight
            for weight in words
        )
        words = (*words, Weight("encoder/decoder/table/embedding", "VD", f"{_SCORES}.decoder.weight"))
    return NameTable(
        parts={
            "encoder": (*source, *(() if config.share else target), *_MEMORY, *words),
            "pooler": _moved(of_bert["pooler"], ("", ""), ("bert.", "encoder."), "E"),
        },
        sizes={**bert.HUGGING_FACE.sizes, "E": "source_rows"},
        needs={},
        spellings=bert.HUGGING_FACE.spellings[:3],
        ignored=ignored,
        copies=copies | {copy: original for original, copy in twins.items()},
        twins=twins,
        architectures=(("EncoderDecoderModel", frozenset()),),
        other_models={
            pattern.replace(r"^bert\.", r"^(encoder|decoder\.bert)\."): kind
            for pattern, kind in bert.HUGGING_FACE.other_models.items()
            if "crossattention" not in pattern
        },
    )
