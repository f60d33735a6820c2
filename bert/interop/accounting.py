"""Accounts for every tensor of a file: used, a copy, ignored with a reason, replaced by a new part, or missing.

names/ has the names, and parameters.py converts the arrays.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from bert.architectures import config_keys
from bert.errors import InputError
from bert.interop import labels, other_models, parameters
from bert.interop.formats.tensors import Selected, Tensors
from bert.interop.load_report import MOST_NAMED, LoadReport
from bert.interop.model_directory import ConfigFile
from bert.interop.names.table import WITH_CLASSES, NameTable
from bert.types import Params

# Google's code and old versions of transformers keep the pooler whatever they train, and call both classifiers alike.
_AMBIGUOUS = (
    "{name} is taken for a classifier of sequences; of tokens it has the same name: if it is one, write "
    '"architectures": ["BertForTokenClassification"] into {file}'
)
# Part of a class of transformers -> what its "classifier" classifies.
_CLASSIFIERS = {
    "TokenClassification": "token_classifier",
    "SequenceClassification": "sequence_classifier",
    "MultipleChoice": None,
}


def canonical_tensors(file: Tensors, table: NameTable, report: LoadReport) -> Selected:
    """The file's tensors under the table's spelling, each once. InputError where two of a parameter differ."""
    names: dict[str, str] = {}
    for name in file:
        spelled = table.canonical(name)
        if spelled not in names:
            names[spelled] = name
        elif np.array_equal(file[name], file[names[spelled]]):
            report.ignored[name] = f"an equal copy of {names[spelled]}"
        else:
            both = f"{names[spelled]} and {name}"
            raise InputError(f"{report.source}: {both} are one parameter ({spelled}) and differ; remove one")
    return Selected({spelled: (file, name) for spelled, name in names.items()})


def classifier_kind(values: Mapping[str, Any], names: Collection[str], table: NameTable) -> tuple[str | None, bool]:
    """What a "classifier" of the file classifies, and whether that is a guess.

    Its configuration decides; where that does not say, a pooler means sequences (the guess), and none means tokens.
    """
    architecture = next(iter(config_keys.architectures(values)), "")
    for mark, kind in _CLASSIFIERS.items():
        if mark in architecture:
            return kind, False
    pooler = any(weight.name in names for weight in table.parts.get("pooler", ()))
    return ("sequence_classifier", True) if pooler else ("token_classifier", False)


def drop_copies(tensors: Selected, table: NameTable, values: Mapping[str, Any], report: LoadReport) -> None:
    """Drops a head's copy of the token table and other repeated tensors, and leaves each under one name.

    Raises InputError where a copy differs, or where the configuration promises a table of its own and none is there.
    """
    decoder = next(iter(table.copies), None)
    untied = values.get("tie_word_embeddings") is False and decoder and decoder not in tensors
    if untied and any(weight.name in tensors for weight in table.parts.get("mlm", ())[:1]):
        raise InputError(
            f"{report.source}: has no {decoder}, but tie_word_embeddings is false; get the whole file, or set it to "
            "true if the masked-word head uses the token table"
        )
    several = sum(copy in tensors for copy in table.copies) > MOST_NAMED
    for copy, original in table.copies.items():
        if copy not in tensors:
            continue
        if original not in tensors and copy != decoder:
            tensors.entries[original] = tensors.entries.pop(copy)
            continue
        if original in tensors and not np.array_equal(tensors[copy], tensors[original]):
            raise InputError(
                f"{report.source}: {tensors.own_name(copy)} differs from {tensors.own_name(original)}, which is read "
                "in its place: remove the one that is not in use, or tie them"
            )
        of = "others" if several else original  # one reason is one line of the report
        report.ignored[tensors.own_name(copy)] = f"an equal copy of {of}, which is read"
        del tensors.entries[copy]


def read_parts(
    tensors: Selected, table: NameTable, file: ConfigFile, report: LoadReport, fresh: Collection[str] = ()
) -> tuple[Params, tuple[str, ...], tuple[str, ...]]:
    """Parameters, their parts and the names of classes that a file holds; the report accounts for every tensor.

    ``tensors`` are under the table's names; ``fresh`` parts are made new afterwards, where the file has not all of one.
    Raises InputError for another model's weights, for one that is missing, of another shape, not finite or of a layer
    beyond the config's number of layers, and for names of classes that are not those of the weights.
    """
    other_models.refuse(tensors, table, file, report)
    report.notes += file.config.json_notes(file.values, source=file.path.name)
    kind, guessed = classifier_kind(file.values, tensors, table)
    parts = _leave_incomplete(tensors, table, table.parts_present(tensors, kind), fresh, report)
    if kind is not None and kind in parts and guessed and table.one_classifier_name:
        name = next(weight.name for weight in table.parts[kind] if weight.name in tensors)
        report.notes.append(_AMBIGUOUS.format(name=tensors.own_name(name), file=file.path.name))
    classes = table.classes_of(tensors, parts)
    class_names = labels.read(file.values, classes, str(file.path))
    params = parameters.to_params(tensors, table, file.config, parts, report, classes=classes)
    _account_for_rest(tensors, table, file, report)
    return params, parts, class_names


def _leave_incomplete(
    tensors: Selected, table: NameTable, parts: Collection[str], fresh: Collection[str], report: LoadReport
) -> tuple[str, ...]:
    """The parts without those of ``fresh`` of which a tensor is absent; the tensors left out are reported."""
    # A new classifier takes the place of one of the other kind, too.
    fresh = {*fresh, *(WITH_CLASSES if set(WITH_CLASSES) & set(fresh) else ())} - {"encoder"}
    incomplete = [part for part in parts if part in fresh and any(w.name not in tensors for w in table.parts[part])]
    for part in incomplete:
        left = [tensors.own_name(weight.name) for weight in table.parts[part] if weight.name in tensors]
        report.replaced |= dict.fromkeys(left, f"a piece of {part}, which is made new")
    return tuple(part for part in parts if part not in incomplete)


def _account_for_rest(tensors: Selected, table: NameTable, file: ConfigFile, report: LoadReport) -> None:
    """Reports the tensors that nothing here reads; `report.used` gets the file's own names."""
    used, left = set(report.used), []
    for name in tensors:
        own_name, layer = tensors.own_name(name), table.layer_of(name)
        if layer is not None and layer >= file.config.num_layers:
            rule = f"{file.path.name} says num_hidden_layers {file.config.num_layers}"
            raise InputError(f"{report.source}: holds {own_name}, but {rule}; set it to the number of layers there")
        if name not in used and own_name not in report.replaced:
            why = table.why_ignored(name)
            report.ignored[own_name] = why or "no part of the encoder or of a head known here"
            left += [] if why else [name]
    other_models.refuse_inside(left, used, table, report.source)
    report.used[:] = [tensors.own_name(name) for name in report.used]
