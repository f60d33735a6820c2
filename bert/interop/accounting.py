"""Which tensor of a file is which parameter: spellings, copies, buffers, parts to be made new, and leftovers.

Every tensor is used, or ignored or replaced for a reason that the report gives. The names themselves are in
bert.py.
"""

import pathlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from bert.architectures import config_keys
from bert.architectures.bert import BertConfig
from bert.errors import InputError
from bert.interop import labels, other_models, parameters
from bert.interop.formats.tensors import Selected, Tensors
from bert.interop.load_report import Report
from bert.interop.names import bert
from bert.interop.names.bert import PARTS, WITH_CLASSES, Column
from bert.interop.parameters import Params

_DECODER_WEIGHT, _DECODER_BIAS, _BIAS = (
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "cls.predictions.bias",
)
# Google's code and old versions of transformers keep the pooler whatever they train, and call both classifiers alike.
_AMBIGUOUS = (
    "{name} is taken for a classifier of sequences; of tokens it has the same name: if it is one, write "
    '"architectures": ["BertForTokenClassification"] into {file}'
)
_TRANSFORM = "cls.predictions.transform.dense.weight"
_BUFFERS = ("bert.embeddings.position_ids", "bert.embeddings.token_type_ids")


def canonical_tensors(file: Tensors, report: Report) -> Selected:
    """The file's tensors under the table's spelling of their names; buffers are left to the report.

    Raises InputError where two tensors are the same parameter and differ.
    """
    names: dict[str, str] = {}
    for name in file:
        spelled = bert.canonical(name)
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
    return Selected({spelled: (file, name) for spelled, name in names.items()})


def classifier_kind(
    values: Mapping[str, Any], names: Collection[str], column: Column = "hugging_face"
) -> tuple[str | None, bool]:
    """What a "classifier" of the file classifies, and whether that is a guess.

    As its configuration says; else sequences if there is a pooler, which is the guess, and tokens if there is none.
    """
    architecture = next(iter(config_keys.architectures(values)), "")
    if "TokenClassification" in architecture:
        return "token_classifier", False
    if "SequenceClassification" in architecture:
        return "sequence_classifier", False
    if "MultipleChoice" in architecture:
        return None, False
    pooler = any(weight.outside(column).name in names for weight in PARTS["pooler"])
    return ("sequence_classifier", True) if pooler else ("token_classifier", False)


def settle_decoder(tensors: Selected, values: Mapping[str, Any], report: Report) -> None:
    """Drops the masked-word head's copy of the token table, and leaves its bias under one name.

    Raises InputError where a copy differs, or where the configuration promises a table of its own and none is there.
    """
    if values.get("tie_word_embeddings") is False and _DECODER_WEIGHT not in tensors and _TRANSFORM in tensors:
        raise InputError(
            f"{report.source}: has no {_DECODER_WEIGHT}, but tie_word_embeddings is false in the configuration; get "
            "the whole file, or set it to true if the masked-word head uses the token table"
        )
    table = bert.TOKEN_TABLE.hugging_face.name
    for copy, original in ((_DECODER_WEIGHT, table), (_DECODER_BIAS, _BIAS)):
        if copy not in tensors:
            continue
        if original not in tensors and copy == _DECODER_BIAS:
            tensors.places[original] = tensors.places.pop(copy)
            continue
        if original in tensors and not np.array_equal(tensors[copy], tensors[original]):
            raise InputError(
                f"{report.source}: {tensors.own_name(copy)} differs from {tensors.own_name(original)}; here the "
                "masked-word head has no table and no second bias of its own: remove the one that is not in use, or "
                "tie them"
            )
        report.ignored[tensors.own_name(copy)] = f"an equal copy of {original}, which the head uses"
        del tensors.places[copy]


def read_parts(
    tensors: Selected,
    values: Mapping[str, Any],
    config: BertConfig,
    report: Report,
    *,
    config_file: str,
    column: Column = "hugging_face",
    fresh: Collection[str] = (),
    reason: Callable[[str], str | None] = lambda name: None,
) -> tuple[Params, tuple[str, ...], tuple[str, ...]]:
    """Parameters, their parts and the names of classes that a file holds; the report accounts for every tensor.

    Args:
      tensors: under the table's names.
      values: of the configuration file, whose name is ``config_file``.
      fresh: parts of which the file may hold a piece or nothing, for they are then made new.
      reason: why a tensor that is in no part is ignored; None where the format has no reason of its own.

    Raises InputError for another model's weights, for one that is missing, of another shape, not finite or of a block
    beyond the config's number of layers, and for names of classes that are not those of the weights.
    """
    file = pathlib.PurePath(config_file).name
    other_models.refuse(tensors, values, report, file, column)
    report.notes += BertConfig.json_notes(values, source=file)
    kind, guessed = classifier_kind(values, tensors, column)
    parts = bert.parts_present(tensors, column, classifier=kind)
    parts = _leave_incomplete(tensors, parts, fresh, report, column)
    if kind is not None and kind in parts and guessed:
        name = next(name for w in PARTS[kind] if (name := w.outside(column).name) in tensors)
        report.notes.append(_AMBIGUOUS.format(name=tensors.own_name(name), file=file))
    classes = bert.classes_of(tensors, parts, column)
    names = labels.read(values, classes, config_file)
    params = parameters.to_params(tensors, config, parts, report, column=column, classes=classes)
    _account_for_rest(tensors, config, report, config_file, column, reason)
    return params, parts, names


def _leave_incomplete(
    tensors: Selected, parts: Collection[str], fresh: Collection[str], report: Report, column: Column
) -> tuple[str, ...]:
    """The parts without those that are to be made new and of which a tensor is absent; what they left is reported."""
    # A new classifier takes the place of one of the other kind, too.
    fresh = {*fresh, *(WITH_CLASSES if set(WITH_CLASSES) & set(fresh) else ())} - {"encoder"}
    whole = []
    for part in parts:
        names = [weight.outside(column).name for weight in PARTS[part]]
        if part not in fresh or all(name in tensors for name in names):
            whole.append(part)
            continue
        left = [tensors.own_name(name) for name in names if name in tensors]
        report.replaced |= dict.fromkeys(left, f"a piece of {part}, which is made new")
    return tuple(whole)


def _account_for_rest(
    tensors: Selected,
    config: BertConfig,
    report: Report,
    config_file: str,
    column: Column,
    reason: Callable[[str], str | None],
) -> None:
    """Reports the tensors that nothing here reads; `report.used` gets the file's own names."""
    used, left = set(report.used), []
    for name in tensors:
        own_name, block = tensors.own_name(name), bert.block_of(name, column)
        if block is not None and block >= config.num_layers:
            raise InputError(
                f"{report.source}: holds {own_name}, but {pathlib.PurePath(config_file).name} says num_hidden_layers "
                f"{config.num_layers}; set it to the number of layers in the file"
            )
        if name not in used and own_name not in report.replaced:
            why = reason(name)
            report.ignored[own_name] = why or "no part of the encoder or of a head known here"
            left += [] if why else [name]
    other_models.refuse_inside(left, used, report.source)
    report.used[:] = [tensors.own_name(name) for name in report.used]
