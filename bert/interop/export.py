"""Writing a model as a directory: weights in the format that is asked for, beside them config.json and the tokenizer.

Source: transformers ``modeling_utils.py`` for what its ``from_pretrained`` expects.
"""

import json
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop import hugging_face, parameters, weight_files, whole_directory
from bert.interop import labels as labels_of
from bert.interop.hugging_face import CONFIG_FILE, REWRITTEN, TOKENIZER_FILES
from bert.interop.parameters import Params
from bert.text.tokenizer import Tokenizer

LARGEST_FILE = 5_000_000_000  # bytes of weights in one file, as transformers has had it
DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
PROGRAMS = {
    "stablehlo": "model.stablehlo",
    "onnx": "model.onnx",
}  # format -> its file: weights and what to do with them
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

    It appears under its name only when it is complete; an older model directory of that name is replaced as a whole.

    Args:
      params: {"encoder": ..., "head": ...}, arrays of NumPy or JAX (all of each on this host).
      labels: names of the classifier's classes.
      extra: further keys of config.json (a task's settings); those that describe the encoder are ours.
      format: one of `FORMATS`.
      dtype: of the weights in a "huggingface" file, a key of `DTYPES`; the others hold float32.
      largest_file: bytes of weights beyond which they are split into several files with an index.

    Raises:
      InputError: a parameter without a Hugging Face name or too large for the dtype, another number of labels than
        classes, or an existing directory that holds other files.
    """
    check_choices(format, dtype)
    check_replaceable(directory)
    hugging_face.restore(directory)
    target = pathlib.Path(directory).resolve()
    with whole_directory.replacing(target) as aside:
        if format == "huggingface":
            weight_files.write(aside, _as_dtype(parameters.from_params(params, config), dtype), largest_file)
        else:
            _program_writer(format)(aside / PROGRAMS[format], config, params)
        # The library makes a file that only its owner can read; a model directory is to be shared as the user wants.
        for file in aside.iterdir():
            os.chmod(file, 0o666 & ~_umask())
        values = _config_values(config, params, tokenizer, labels, extra or {}, dtype)
        text = json.dumps(values, indent=2, ensure_ascii=False)
        (aside / CONFIG_FILE).write_text(text + "\n", encoding="utf-8", newline="\n")
        if tokenizer:
            # Never a longest input beyond the positions: other programs would cut texts to it, and read past the table.
            longest = min(tokenizer.model_max_length, config.max_position_embeddings)
            Tokenizer(tokenizer.vocab, tokenizer.settings, longest).save(aside)
    return pathlib.Path(directory)


def check_choices(format: str, dtype: str) -> None:
    """Refuses a format or dtype that there is not, and a dtype that the format cannot hold.

    Raises:
      InputError: naming the value and those that may be chosen.
    """
    for name, value, allowed in (("format", format, FORMATS), ("dtype", dtype, tuple(DTYPES))):
        if value not in allowed:
            raise InputError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}")
    if format != "huggingface" and dtype != "float32":
        raise InputError(f"dtype is {dtype!r}, but a file of the format {format} holds float32; leave dtype out")


def _program_writer(format: str) -> Callable[[pathlib.Path, BertConfig, Params], None]:
    if format == "onnx":
        from bert.interop import onnx  # these two build a model, which is slow to import and rarely needed

        return onnx.write
    from bert.interop import stablehlo

    return stablehlo.write


def _as_dtype(tensors: Iterator[tuple[str, np.ndarray]], dtype: str) -> Iterator[tuple[str, np.ndarray]]:
    for name, tensor in tensors:
        with np.errstate(over="ignore"):
            value = tensor.astype(DTYPES[dtype], copy=False)
        if not np.isfinite(value).all():
            worst = tensor.ravel()[~np.isfinite(value).ravel()][0]
            raise InputError(f"{name} holds {worst:g}, which {dtype} cannot; choose bfloat16 or float32")
        yield name, value


def _config_values(
    config: BertConfig,
    params: Params,
    tokenizer: Tokenizer | None,
    names: Sequence[str],
    extra: Mapping[str, Any],
    dtype: str,
) -> dict[str, Any]:
    """The whole of config.json."""
    classes = parameters.class_count(params)
    if classes is not None and names and len(names) != classes:
        raise InputError(f"{len(names)} labels ({', '.join(names[:3])}, ...) for {classes} classes; name each once")
    names = names or [f"LABEL_{i}" for i in range(classes or 0)]
    return {
        "architectures": [architecture(params.get("head", {}))],
        **{key: value for key, value in extra.items() if key not in REWRITTEN},
        **config.to_json(),
        **labels_of.write(names),
        "dtype": dtype,
        "tie_word_embeddings": True,
        "pad_token_id": tokenizer.pad_id if tokenizer else 0,
    }


def _umask() -> int:
    """The process's mask of permissions, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


# The transformers class that reads these parts; the first that has all of its own.
_ARCHITECTURES = (
    ("BertForSequenceClassification", {"pooler", "sequence_classifier"}),
    ("BertForTokenClassification", {"token_classifier"}),
    ("BertForQuestionAnswering", {"span"}),
    ("BertForPreTraining", {"mlm", "pooler", "next_sentence"}),
    ("BertForMaskedLM", {"mlm"}),
    ("BertForNextSentencePrediction", {"pooler", "next_sentence"}),
)


def architecture(parts: Mapping[str, Any] | Sequence[str]) -> str:
    """The transformers class that reads these parts."""
    return next((name for name, needed in _ARCHITECTURES if needed <= set(parts)), "BertModel")


def check_replaceable(directory: str | os.PathLike) -> None:
    """Refuses a directory that `save_model_directory` would not write to: nobody's files are deleted.

    A long run asks this before it starts.

    Raises:
      InputError: it is a file, or holds other files than a model directory's.
    """
    target = pathlib.Path(directory).resolve()
    shards = [p.name for p in target.iterdir() if _SHARD.fullmatch(p.name)] if target.is_dir() else []
    ours = (CONFIG_FILE, weight_files.SAFETENSORS, weight_files.INDEX, *shards, *PROGRAMS.values(), *TOKENIZER_FILES)
    whole_directory.check_replaceable(target, ours)
