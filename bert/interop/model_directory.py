"""`ModelDirectory`, the result of loading; checks shared by all layouts; newly initialised parts."""

import dataclasses
import pathlib
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from bert import architectures, hub_names, json_files
from bert.architectures import ModelConfig
from bert.errors import InputError, check_choice
from bert.interop import names
from bert.interop.load_report import LoadReport
from bert.interop.names.table import HEAD_PARTS, WITH_CLASSES
from bert.interop.parameters import class_count
from bert.model.sentence_encoder import SentenceEncoder
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import Params


class ModelDirectory(NamedTuple):
    """What a model directory holds."""

    config: ModelConfig
    params: Params  # float32 NumPy arrays, {"encoder": ..., "head": ...}
    parts: tuple[str, ...]  # "encoder" and those of `HEAD_PARTS` that its head has
    tokenizer: Tokenizer | None  # None where there is no vocabulary
    report: LoadReport
    labels: tuple[str, ...]  # of the classifier's classes, in the order of its scores; else those of config.json
    extra: dict[str, Any]  # keys of config.json that describe neither the encoder nor the classes (a task's settings)
    sentences: SentenceEncoder | None = None  # how texts become vectors, where the directory declares it
    card: bytes | None = None  # README.md, where a person wrote or changed it


class ConfigFile(NamedTuple):
    """config.json or bert_config.json: its path, its object, and the configuration that this describes."""

    path: pathlib.Path
    values: dict[str, Any]
    config: ModelConfig


def read_config(path: pathlib.Path) -> ConfigFile:
    """The configuration in a file. Raises InputError as `read_json`, and for one of no model that is known here."""
    values = read_json(path)
    return ConfigFile(path, values, architectures.config_from_json(values, source=str(path)))


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """The object in a file of a model directory. Raises InputError where there is none, or as `read_object` does."""
    if not path.parent.is_dir():
        is_file, name_one = path.parent.is_file(), f"name a directory that holds {path.name} and the weights"
        way_out = "" if is_file else hub_names.advice(path.parent)
        what = "is a file" if is_file else "no such directory"
        raise InputError(f"{hub_names.shown(path.parent)}: {what}; {way_out or name_one}")
    try:
        return json_files.read_object(path, allow_surrogates=True)  # of settings that are only carried along
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; a model directory holds {path.name} and the weights") from None


def check_vocabulary(tokenizer: Tokenizer, config: ModelConfig, folder: pathlib.Path, report: LoadReport) -> None:
    """Raises InputError for a vocabulary larger than the model's table, and for one that ends texts with another token
    than the model; the report notes a smaller vocabulary."""
    end = getattr(config, "end_id", None)
    if end is not None and end != tokenizer.sep_id:
        what = f"eos_token_id is {end}, but the tokenizer ends a text with {tokenizer.sep_id}"
        raise InputError(f"{folder}: {what}; set eos_token_id to that if the model was trained so")
    entries, rows = tokenizer.vocab_size, min(config.vocab_size, getattr(config, "source_rows", config.vocab_size))
    both = f"{folder}: the model has {rows} rows, the vocabulary {entries} entries"
    if entries > rows:
        raise InputError(f"{both}, more than its vocab_size; they belong to different models")
    if entries < rows:
        report.notes.append(f"{both}; the last {rows - entries} rows are unused and never predicted")


def check_fresh(parts: Sequence[str]) -> None:
    """Raises InputError for an unknown part and for two classifiers, before a large file is read."""
    for part in parts:
        check_choice("a part to be made new", part, HEAD_PARTS)
    if set(WITH_CLASSES) <= set(parts):
        raise InputError(f"{' and '.join(WITH_CLASSES)} cannot both be made new; a head has one classifier: choose one")


def with_fresh(
    model: ModelDirectory, parts: Sequence[str], labels: Sequence[str] | None = None, seed: int = 0
) -> ModelDirectory:
    """A model with the parts of a head that ``model`` lacks newly initialised; its report says which.

    A new classifier needs ``labels``, the names of its classes, and replaces one of others (in another order they are
    the same). Raises InputError for an unknown part, one without the part that it reads, or one without labels.
    """
    check_fresh(parts)
    known = names.table(model.config).parts
    # Without a pooler a classifier reads the hidden state itself.
    parts = [part for part in parts if part in known or part != "pooler"]
    if unknown := [part for part in parts if part not in known]:
        raise InputError(f"{model.report.source}: a {model.config.model_type!r} model has no {unknown[0]} head")
    head, replaced = dict(model.params["head"]), dict(model.report.replaced)
    classifier = next((part for part in WITH_CLASSES if part in parts), None)
    if classifier:
        replaced |= _drop_other_classifier(head, model, classifier, labels)
    absent = [part for part in parts if part not in head]
    if classifier in absent:
        if not labels:
            raise InputError(f"{classifier} can only be made new with names for its classes; give labels")
        model = model._replace(labels=tuple(labels))
    for part in absent:
        for needed in names.table(model.config).needs.get(part, ()):
            if needed not in (*head, *absent):
                raise InputError(f"{model.report.source}: has no {needed}, which a new {part} reads; make both new")
        head[part] = _fresh(part, model.config, len(model.labels), seed)
    report = dataclasses.replace(
        model.report,
        used=[name for name in model.report.used if name not in replaced],
        fresh=[*model.report.fresh, *absent],
        replaced=replaced,
    )
    return model._replace(params={**model.params, "head": head}, parts=("encoder", *head), report=report)


def _drop_other_classifier(
    head: Params, model: ModelDirectory, wanted: str, labels: Sequence[str] | None
) -> dict[str, str]:
    """Takes a classifier of another kind or of other classes out of ``head``.

    Returns the file's names of its tensors, with the reason and their shapes there.
    """
    present = next((part for part in WITH_CLASSES if part in head), None)
    if present is None or (present == wanted and (labels is None or sorted(labels) == sorted(model.labels))):
        return {}
    del head[present]
    shapes: dict[str, tuple[int, ...]] = {}
    tables = names.tables(model.config)
    for table in tables:
        sizes = table.axis_sizes(model.config, class_count(model.params))
        for weight in table.parts[present]:
            shapes |= {weight.path: weight.shape(sizes), weight.name: weight.file_shape(sizes)}
    used = {name: shapes.get(tables[0].canonical(name)) for name in model.report.used}
    classes = f"{len(labels)} classes ({', '.join(labels)})" if labels else "its classes"
    return {name: f"shape {list(shape)}; {wanted} is made new for {classes}" for name, shape in used.items() if shape}


def _fresh(part: str, config: ModelConfig, classes: int, seed: int) -> Params:
    """Newly initialised parameters of a part, as float32 NumPy arrays."""
    from bert.model import heads  # Linen is slow to import, and rarely needed here

    key = jax.random.fold_in(jax.random.key(seed), zlib.crc32(part.encode()))  # independent of the other parts
    hidden_BTD = np.zeros((1, 1, config.hidden_size), np.float32)
    table_VD = [np.zeros((config.vocab_size, architectures.table_width(config)), np.float32)] if part == "mlm" else []
    init = jax.jit(heads.part(part, config, classes).init)  # one program instead of one for each small operation
    params: Params = jax.tree.map(np.asarray, init(key, hidden_BTD, *table_VD)["params"])
    return params
