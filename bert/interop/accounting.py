"""Which tensor of a Hugging Face file is which parameter: spellings, copies, buffers and leftovers.

Every tensor is used, or ignored for a reason that the report gives. The names themselves are in weight_names.py.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop import weight_names
from bert.interop.report import Report
from bert.interop.tensors import Renamed, Tensors

_DECODER_WEIGHT, _DECODER_BIAS, _BIAS = (
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "cls.predictions.bias",
)
_BUFFERS = ("bert.embeddings.position_ids", "bert.embeddings.token_type_ids")


def canonical_tensors(file: Tensors, report: Report) -> Renamed:
    """The file's tensors under the table's spelling of their names; buffers are left to the report.

    Raises:
      InputError: the weights are another model's, or two tensors of the file mean the same parameter and differ.
    """
    names: dict[str, str] = {}
    for name in file:
        spelled = weight_names.canonical(name)
        if spelled in _BUFFERS:
            report.ignored[name] = "a buffer; computed here"
        elif spelled not in names:
            names[spelled] = name
        elif np.array_equal(file[name], file[names[spelled]]):
            report.ignored[name] = f"an equal copy of {names[spelled]}"
        else:
            raise InputError(
                f"{report.source}: {names[spelled]} and {name} are one parameter ({spelled}) and differ; remove one"
            )
    _refuse_other_models(names, report.source)
    return Renamed(file, names)


def _refuse_other_models(names: Mapping[str, str], source: str) -> None:
    """A table of tokens under a prefix of its own ("roberta.", "electra.") is the sign of another kind of model."""
    table = weight_names.TOKEN_TABLE.hugging_face.name
    tail = table.removeprefix("bert")
    other = next((name for name in names if name.endswith(tail) and name != table), None)
    if table not in names and other:
        raise InputError(
            f"{source}: the weights stand under {other.removesuffix(tail)!r} ({names[other]}); only BERT's, under "
            "'bert' or under no prefix, can be loaded: another model needs its own program, another prefix renaming"
        )


def classifier_kind(values: Mapping[str, Any], tensors: Tensors) -> str | None:
    """What a "classifier" of the file classifies: as config.json says, else sequences if there is a pooler."""
    told = values.get("architectures")
    architecture = str(told[0]) if isinstance(told, list) and told else ""
    if "TokenClassification" in architecture:
        return "token_classifier"
    if "SequenceClassification" in architecture:
        return "sequence_classifier"
    if "MultipleChoice" in architecture:
        return None
    pooler = weight_names.PARTS["pooler"][0].hugging_face.name
    return "sequence_classifier" if pooler in tensors else "token_classifier"


def settle_decoder(tensors: Renamed, report: Report) -> None:
    """Takes the masked-word head's copy of the token table out, and leaves its bias under one name.

    Raises:
      InputError: the copy differs from the table (the head is not tied to it), or the two biases differ.
    """
    table = weight_names.TOKEN_TABLE.hugging_face.name
    for copy, original in ((_DECODER_WEIGHT, table), (_DECODER_BIAS, _BIAS)):
        if copy not in tensors:
            continue
        if original not in tensors and copy == _DECODER_BIAS:
            tensors.names[original] = tensors.names.pop(copy)
            continue
        if original in tensors and not np.array_equal(tensors[copy], tensors[original]):
            raise InputError(
                f"{report.source}: {tensors.names[copy]} differs from {tensors.names[original]}; here the masked-word "
                "head has no table and no second bias of its own: remove the one that is not in use, or tie them"
            )
        report.ignored[tensors.names.pop(copy)] = f"an equal copy of {original}, which the head uses"


def account_for_rest(tensors: Renamed, config: BertConfig, report: Report) -> None:
    """Reports the tensors that nothing here reads; `report.used` gets the file's own names.

    Raises:
      InputError: the file holds a block beyond the config's number of layers.
    """
    used = set(report.used)
    for name in tensors:
        if name.startswith(f"bert.encoder.layer.{config.num_layers}."):
            raise InputError(
                f"{report.source}: holds {tensors.names[name]}, but config.json says num_hidden_layers "
                f"{config.num_layers}; set it to the number of layers in the file"
            )
        if name not in used:
            report.ignored[tensors.names[name]] = "no part of the encoder or of a head known here"
    report.used[:] = [tensors.names[name] for name in report.used]
