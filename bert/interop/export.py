"""Writing a model as a directory: weights in the format that is asked for, beside them config.json and the tokenizer.

Source: transformers ``modeling_utils.py`` for what its ``from_pretrained`` expects.
"""

import os
import pathlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

from bert import files
from bert.architectures.bert import BertConfig
from bert.errors import InputError
from bert.interop import hugging_face, names, parameters, programs, weight_files
from bert.interop import labels as labels_of
from bert.interop.hugging_face import CONFIG_FILE, MARK, OTHER_WRITER, REWRITTEN, TOKENIZER_FILES, WRITER
from bert.interop.model_directory import read_json
from bert.interop.programs import PROGRAMS
from bert.tokenizer import tokenizer_files
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import Params

LARGEST_FILE = 5_000_000_000  # bytes of weights in one file, as transformers has had it
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
FORMATS = ("huggingface", *PROGRAMS)
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")


def save_model_directory(
    directory: str | os.PathLike,
    config: BertConfig,
    params: Params,
    tokenizer: Tokenizer | None,
    *,
    labels: Sequence[str] = (),
    extra: Mapping[str, Any] | None = None,
    format: str = "huggingface",
    dtype: str = "float32",
    largest_file: int = LARGEST_FILE,
) -> pathlib.Path:
    """Writes a model directory and returns its path; in the format "huggingface", transformers loads it.

    It appears under its name only when it is complete; one of that name that was written here is replaced as a whole.

    Args:
      params: {"encoder": ..., "head": ...}, arrays of NumPy or JAX (all of each on this host).
      labels: names of the classifier's classes.
      extra: further keys of config.json (a task's settings); those that describe the encoder are ours.
      format: one of `FORMATS`.
      dtype: of the weights in a "huggingface" file, a key of `DTYPES`; the others hold float32.
      largest_file: bytes of weights beyond which they are split into several files with an index.

    Raises:
      InputError: an unknown format or dtype, or a directory that cannot be written or replaced; weights or labels that
        the format cannot hold; the package onnx is missing.
    """
    check_choices(format, dtype)
    target = pathlib.Path(os.path.realpath(directory))
    hugging_face.restore(target)
    check_replaceable(target, format, dtype)
    params = jax.tree.map(np.asarray, params)
    parameters.check_needs(params, names.table(config))
    _check_finite(params, target)
    values = _config_values(config, params, tokenizer, labels, extra or {}, dtype, source=str(target))
    with files.replacing(target) as aside:
        (aside / CONFIG_FILE).write_text(files.json_text(values, indent=2), encoding="utf-8", newline="\n")
        if format in PROGRAMS:
            programs.writer(format)(aside / PROGRAMS[format], config, params)
        else:
            tensors = _as_dtype(parameters.from_params(params, config), dtype, target)
            weight_files.write(aside, tensors, largest_file, hugging_face.settings_without_shape(config))
        # The library makes a file that only its owner can read; a model directory is to be shared as the user wants.
        for file in aside.iterdir():
            shutil.copymode(aside / CONFIG_FILE, file)
        if tokenizer:
            # Never a longest input beyond the positions: other programs would cut texts to it, and read past the table.
            longest = min(tokenizer.model_max_length, config.max_position_embeddings)
            tokenizer.save(aside, model_max_length=longest)
    return pathlib.Path(directory)


def check_choices(format: str, dtype: str) -> None:
    """Raises InputError for an unknown format or dtype, and for a dtype that the format cannot hold."""
    for name, value, allowed in (("format", format, FORMATS), ("dtype", dtype, tuple(DTYPES))):
        if value not in allowed:
            raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
    if format != "huggingface" and dtype != "float32":
        raise InputError(f"dtype is {dtype!r}, but a file of the format {format} holds float32; leave dtype out")


def _check_finite(params: Params, target: pathlib.Path) -> None:
    for path, value in parameters.flatten(params):
        bad = parameters.first_not_finite(value)
        if bad is not None:
            raise InputError(
                f"{target}: parameter {path} holds {value[bad]} at {list(bad)}; train again, or go back to an earlier "
                "checkpoint"
            )


def _as_dtype(
    tensors: Iterator[tuple[str, np.ndarray]], dtype: str, target: pathlib.Path
) -> Iterator[tuple[str, np.ndarray]]:
    """The tensors in that dtype. A value below its smallest becomes 0; one above its largest is refused."""
    for name, tensor in tensors:
        with np.errstate(over="ignore"):
            value = tensor.astype(DTYPES[dtype], copy=False)
            if value is not tensor and not np.isfinite(value).all():
                worst = np.abs(tensor).max()
                fitting = [other for other, kind in DTYPES.items() if np.isfinite(worst.astype(kind))]
                raise InputError(
                    f"{target}: {name} holds {worst:g}, which {dtype} cannot; choose {' or '.join(fitting)}"
                )
        yield name, value


def _config_values(
    config: BertConfig,
    params: Params,
    tokenizer: Tokenizer | None,
    class_names: Sequence[str],
    extra: Mapping[str, Any],
    dtype: str,
    *,
    source: str,
) -> dict[str, Any]:
    """The whole of config.json; ``source`` is the directory, for messages."""
    classes = parameters.class_count(params)
    if classes is not None and class_names and len(class_names) != classes:
        shown = ", ".join(class_names[:3]) + (", ..." if len(class_names) > 3 else "")
        raise InputError(f"{source}: {len(class_names)} labels ({shown}) for {classes} classes; name each once")
    class_names = class_names or [labels_of.stand_in(i) for i in range(classes or 0)]
    architecture = names.table(config).architecture(params.get("head", {}))
    return {
        MARK: WRITER,
        **({"architectures": [architecture]} if architecture else {}),
        **{key: value for key, value in extra.items() if key not in REWRITTEN},
        **config.to_json(),
        **labels_of.write(class_names, source),
        "dtype": dtype,
        "tie_word_embeddings": True,
        "pad_token_id": tokenizer.pad_id if tokenizer else 0,
    }


def check_replaceable(directory: str | os.PathLike, format: str = "huggingface", dtype: str = "float32") -> None:
    """Raises InputError for a directory that `save_model_directory` would not write to: nobody's files are deleted.

    That is one with other files in it, one that was not written here or cannot be made, and one whose weights a program
    or rounded weights would replace. A long run calls this before it starts.
    """
    target = pathlib.Path(os.path.realpath(directory))
    try:
        names = {entry.name for entry in target.iterdir()} if target.is_dir() else set()
    except OSError as error:
        raise InputError(f"{target}: cannot be read ({error.strerror}); choose another directory") from None
    shards = [name for name in names if _SHARD.fullmatch(name)]
    ours = [CONFIG_FILE, weight_files.SAFETENSORS, weight_files.INDEX, *shards, *PROGRAMS.values(), *TOKENIZER_FILES]
    files.check_replaceable(target, ours)
    _check_written_here(target)
    files.check_replaceable(target, _of_one_export(names, shards))
    weights = weight_files.find(target)
    if weights is None:
        return
    if format in PROGRAMS:
        raise InputError(f"{weights}: an export to run would replace these weights; choose a new or an empty directory")
    if dtype != "float32" and _dtype_of(target) != dtype:
        raise InputError(f"{weights}: weights in {dtype} would replace these; choose a new or an empty directory")


def _of_one_export(names: set[str], shards: list[str]) -> list[str]:
    """Those of the names that one export writes: one kind of weights, or one program, and a tokenizer as a whole."""
    kinds = ([weight_files.SAFETENSORS], [weight_files.INDEX, *shards], *([name] for name in PROGRAMS.values()))
    weights = next((kind for kind in kinds if kind[0] in names), [])
    return [CONFIG_FILE, *weights, *(tokenizer_files.WRITTEN if tokenizer_files.WRITTEN[0] in names else ())]


def _check_written_here(target: pathlib.Path) -> None:
    """Refuses a directory with files whose configuration does not say that `save_model_directory` wrote it."""
    try:
        if not target.is_dir() or not any(target.iterdir()):
            return
        values = read_json(target / CONFIG_FILE)
    except InputError:
        values = {}
    if values.get(MARK) != WRITER or OTHER_WRITER in values:
        raise InputError(
            f"{target}: not known to be an export of ours (the {CONFIG_FILE} of one says {MARK} {WRITER!r}, and no "
            f"{OTHER_WRITER}; earlier versions did not); choose a new or an empty directory, or move this one away"
        )


def _dtype_of(directory: pathlib.Path) -> str | None:
    """The precision in which the weights of a directory of ours are stored; None where nothing says so."""
    try:
        return read_json(directory / CONFIG_FILE).get("dtype")
    except InputError:  # what cannot be read tells nothing
        return None
