"""Writes a model directory: the weights in one of several formats, config.json and the tokenizer.

Source: transformers ``modeling_utils.py`` for what its ``from_pretrained`` expects.
"""

import importlib
import os
import pathlib
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np
from absl import logging

from bert import architectures, files
from bert.architectures import ModelConfig
from bert.errors import InputError, check_choice
from bert.interop import hugging_face, model_card, names, parameters, sentence_transformers
from bert.interop import labels as labels_of
from bert.interop.formats import weight_files
from bert.interop.hugging_face import CONFIG_FILE, MARK, OTHER_WRITER, PROGRAMS, REWRITTEN, TOKENIZER_FILES, WRITER
from bert.interop.model_directory import read_json
from bert.model.sentence_encoder import SentenceEncoder
from bert.tokenizer import tokenizer_files
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import Params

LARGEST_FILE = 5_000_000_000  # bytes of weights in one file, as in transformers
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
FORMATS = ("huggingface", *PROGRAMS)
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_ANOTHER = "choose a new or an empty directory"


def save_model_directory(
    directory: str | os.PathLike[str],
    config: ModelConfig,
    params: Params,
    tokenizer: Tokenizer | None,
    *,
    labels: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    sentences: SentenceEncoder | None = None,
    card: bytes | None = None,
    format: str = "huggingface",
    dtype: str = "float32",
    largest_file: int = LARGEST_FILE,
) -> pathlib.Path:
    """Writes a model directory and returns its path; in the format "huggingface", transformers loads a BERT's.

    It appears under its name only when it is complete; one of that name that was written here is replaced as a whole.

    Args:
      params: {"encoder": ..., "head": ...}, arrays of NumPy or JAX (all of each on this host).
      labels: names of the classifier's classes.
      extra: further keys of config.json (a task's settings); those that describe the encoder are ours.
      sentences: how texts become vectors; in the format "huggingface", sentence_transformers then loads the directory.
      card: README.md, where a person wrote it; else one is made of what is known (model_card.py).
      dtype: of the weights in a "huggingface" file; the others hold float32.
      largest_file: bytes of weights beyond which they are split into several files with an index.

    Raises InputError for what the format cannot hold, for a directory that cannot be written or replaced, and where the
    package onnx is missing.
    """
    check_choices(format, dtype)
    target = pathlib.Path(os.path.realpath(directory))
    hugging_face.restore(target)
    check_replaceable(target, format, dtype)
    card = _card_to_keep(target, card)
    params = parameters.with_implied_parts(jax.tree.map(np.asarray, params), names.table(config))
    parameters.check_needs(params, names.table(config))
    for path, value in parameters.flatten(params):
        if (bad := parameters.first_not_finite(value)) is not None:
            raise InputError(f"{target}: parameter {path} holds {value[bad]} at {list(bad)}; use an earlier checkpoint")
    values = {
        MARK: WRITER,
        "tie_word_embeddings": True,
        **_model_keys(config, params, labels, extra or {}, str(target)),
        "dtype": dtype,
        "pad_token_id": tokenizer.pad_id if tokenizer else 0,
    }
    with files.replacing(target) as aside:
        (aside / CONFIG_FILE).write_text(files.json_text(values, indent=2), encoding="utf-8", newline="\n")
        if format in PROGRAMS:
            if sentences:
                logging.warning("%s: a program ends at the hidden states; not in it: %s", target, sentences)
            # onnx.py or stablehlo.py, which build a model: slow to import, and rarely needed
            importlib.import_module(f"bert.interop.{format}").write(aside / PROGRAMS[format], config, params)
        else:
            tensors = _as_dtype(parameters.from_params(params, config), dtype, target)
            metadata = hugging_face.settings_without_shape(config)
            if tokenizer:
                metadata[hugging_face.TOKENIZER] = tokenizer.fingerprint
            weight_files.write(aside, tensors, largest_file, metadata)
            if sentences:
                sentence_transformers.write(aside, sentences, config)
        if card is None:
            contents = model_card.Contents(
                name=model_card.name_of(target),
                config=config,
                parts=tuple(params.get("head", {})),
                parameters=sum(value.size for _, value in parameters.flatten(params)),
                architecture=next(iter(values.get("architectures", ())), None),
                tokenizer=tokenizer,
                labels=labels,
                extra=extra or {},
                sentences=None if format in PROGRAMS else sentences,
                format=format,
                dtype=dtype,
            )
            card = model_card.text(contents).encode()
        (aside / model_card.FILE).write_bytes(card)
        # The library makes a file that only its owner can read; a model directory is shared as the user wants.
        for file in (path for path in aside.rglob("*") if path.is_file()):
            shutil.copymode(aside / CONFIG_FILE, file)
        if tokenizer:  # at most the positions: other programs cut texts to it, and would read past the table
            tokenizer.save(aside, model_max_length=min(tokenizer.model_max_length, config.max_length))
    return pathlib.Path(directory)


def _card_to_keep(target: pathlib.Path, card: bytes | None) -> bytes | None:
    """The card that a person wrote: the source's, or that in the directory that is replaced."""
    written = model_card.changed(target)
    if written and card and written != card:
        both = "was changed, and so was that of the source"
        raise InputError(f"{target / model_card.FILE}: {both}; move one of them away")
    if written or card:
        logging.info("%s: is kept as a person wrote it; move it away to get a new one", target / model_card.FILE)
    return card or written


def check_choices(format: str, dtype: str) -> None:
    """Raises InputError for an unknown format or dtype, and for a dtype that the format cannot hold."""
    check_choice("format", format, FORMATS)
    check_choice("dtype", dtype, tuple(DTYPES))
    if format in PROGRAMS and dtype != "float32":
        raise InputError(f"dtype is {dtype!r}, but a file of the format {format} holds float32; leave dtype out")


def _as_dtype(tensors: parameters.Named, dtype: str, target: pathlib.Path) -> parameters.Named:
    """The tensors in that dtype. A value below its smallest becomes 0; one above its largest is refused."""
    for name, tensor in tensors:
        with np.errstate(over="ignore"):
            value = tensor.astype(DTYPES[dtype], copy=False)
            if value is not tensor and not np.isfinite(value).all():
                worst = np.abs(tensor).max()
                fitting = " or ".join(other for other, kind in DTYPES.items() if np.isfinite(worst.astype(kind)))
                raise InputError(f"{target}: {name} holds {worst:g}, which {dtype} cannot; choose {fitting}")
        yield name, value


def _model_keys(
    config: ModelConfig, params: Params, class_names: Sequence[str], extra: Mapping[str, Any], source: str
) -> dict[str, Any]:
    """The keys of config.json on the encoder, the classes and the task; ``source``: the directory, for messages."""
    classes = parameters.class_count(params)
    if classes is not None and class_names and len(class_names) != classes:
        shown = ", ".join(class_names[:3]) + (", ..." if len(class_names) > 3 else "")
        raise InputError(f"{source}: {len(class_names)} labels ({shown}) for {classes} classes; name each once")
    architecture = names.table(config).architecture(params.get("head", {}), causal=architectures.is_causal(config))
    return {
        **({"architectures": [architecture]} if architecture else {}),
        **{key: value for key, value in extra.items() if key not in REWRITTEN},
        **config.to_json(),
        **labels_of.write(class_names or [labels_of.stand_in(i) for i in range(classes or 0)], source),
    }


def model_files(entries: Iterable[str]) -> list[str]:
    """Those of these names (as of `files.names_in`) that an export may have; all of a model, and nothing else."""
    ours = {CONFIG_FILE, model_card.FILE, weight_files.SAFETENSORS, weight_files.INDEX, *PROGRAMS.values()}
    ours |= {*TOKENIZER_FILES}
    return sorted(name for name in entries if name in ours or _SHARD.fullmatch(name) or _is_module(name))


def _is_module(name: str) -> bool:
    """Whether it is a file that declares vectors of texts."""
    return name in sentence_transformers.WRITTEN or bool(re.fullmatch(sentence_transformers.FOLDERS, name))


def check_replaceable(directory: str | os.PathLike[str], format: str = "huggingface", dtype: str = "float32") -> None:
    """Raises InputError for a directory that `save_model_directory` would not write to: no user's file is deleted.

    That is one with other files in it, one that was not written here or cannot be created, and one whose weights a
    program or rounded weights would replace. A long run calls this before it starts.
    """
    target = pathlib.Path(os.path.realpath(directory))
    try:
        entries = files.names_in(target)
    except OSError as error:
        raise InputError(f"{target}: cannot be read ({error.strerror}); choose another directory") from None
    files.check_replaceable(target, model_files(entries))
    values = _written_values(target) if entries else {}
    # What one export writes: one kind of weights, or one program, and a tokenizer as a whole.
    shards = [name for name in entries if _SHARD.fullmatch(name)]
    kinds = ([weight_files.SAFETENSORS], [weight_files.INDEX, *shards], *([name] for name in PROGRAMS.values()))
    written = next((kind for kind in kinds if kind[0] in entries), [])
    written += tokenizer_files.WRITTEN if tokenizer_files.WRITTEN[0] in entries else ()
    modules = [name for name in entries if _is_module(name)]
    written += modules if sentence_transformers.MODULES in entries else ()
    files.check_replaceable(target, [CONFIG_FILE, model_card.FILE, *written])
    weights = weight_files.find(target)
    if weights and format in PROGRAMS:
        raise InputError(f"{weights}: an export to run would replace these weights; {_ANOTHER}")
    if weights and dtype not in ("float32", values.get("dtype")):
        raise InputError(f"{weights}: weights in {dtype} would replace these; {_ANOTHER}")


def _written_values(target: pathlib.Path) -> dict[str, Any]:
    """config.json of a directory with files; InputError where it does not say that `save_model_directory` wrote it."""
    try:
        values = read_json(target / CONFIG_FILE)
    except InputError:
        values = {}
    if values.get(MARK) != WRITER or OTHER_WRITER in values:
        raise InputError(
            f"{target}: not known to be an export of ours (its {CONFIG_FILE} must say {MARK} {WRITER!r}, and no "
            f"{OTHER_WRITER}; earlier versions did not); {_ANOTHER}, or move this one away"
        )
    return values
