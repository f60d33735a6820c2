"""Reading model directories in Hugging Face layout: config.json, the weights and the tokenizer's files.

Reading is strict: every tensor is used, ignored for a reason that the report gives, or missing, which is an error.
Nothing in a directory is executed and nothing is fetched. Names of weights are in weight_names.py, their files in
weight_files.py; writing such a directory is export.py.
"""

import json
import os
import pathlib
from typing import Any

from absl import logging

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop import accounting, labels, parameters, weight_files, weight_names, whole_directory
from bert.interop.model_directory import ModelDirectory
from bert.interop.report import Report
from bert.text.tokenizer import Tokenizer

CONFIG_FILE = "config.json"
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json")
# Written anew on every save; everything else in config.json that BertConfig does not hold is carried along.
REWRITTEN = (
    *("architectures", "transformers_version", "dtype", "torch_dtype", "tie_word_embeddings", "pad_token_id"),
    *labels.KEYS,
)


def load_model_directory(directory: str | os.PathLike) -> ModelDirectory:
    """The model in a directory of Hugging Face layout.

    Args:
      directory: holds config.json and the weights, and usually tokenizer.json or vocab.txt.

    Raises:
      InputError: a file that is absent or broken; a weight that is missing, of another shape, or not finite; a
        vocabulary with more entries than the model has rows; names of classes that are not those of the weights.
    """
    folder = pathlib.Path(directory)
    restore(folder)
    values = read_json(folder / CONFIG_FILE)
    config = BertConfig.from_json(values, source=str(folder / CONFIG_FILE))
    tokenizer = _read_tokenizer(folder, config)
    path = _weights(folder)
    report = Report(str(path))
    tensors = accounting.canonical_tensors(weight_files.open_weights(path), report)
    accounting.settle_decoder(tensors, report)
    parts = weight_names.parts_present(tensors, classifier=accounting.classifier_kind(values, tensors))
    if "sequence_classifier" in parts and "pooler" not in parts:
        parts += ("pooler",)  # it reads the pooler's output, which is then among the missing
    classes = weight_names.classes_of(tensors, parts)
    names = labels.read(values, classes, str(folder / CONFIG_FILE))
    params = parameters.to_params(tensors, config, parts, report, classes=classes or 2)
    accounting.account_for_rest(tensors, config, report)
    known = {*config.to_json(), *REWRITTEN}
    extra = {key: value for key, value in values.items() if key not in known}
    return ModelDirectory(config, params, parts, tokenizer, report, names, extra)


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """The object in a configuration file.

    Raises:
      InputError: there is none, or it is not an object.
    """
    if not path.parent.is_dir():
        raise InputError(f"{path.parent}: no such directory; name one that holds {path.name} and the weights")
    if not path.is_file():
        raise InputError(f"{path}: no such file; a model directory holds {path.name} and the weights")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); the file is damaged") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: holds a {type(values).__name__}, not an object with names and values")
    return values


def _weights(folder: pathlib.Path) -> pathlib.Path:
    path = weight_files.find(folder)
    if path:
        return path
    others = sorted(p.name for pattern in ("*.bin", "*.safetensors*", "*.ckpt*", "*.h5") for p in folder.glob(pattern))
    found = f"; found {', '.join(others[:3])}, which is no name of theirs or cannot be read" if others else ""
    raise InputError(
        f"{folder}: holds neither {weight_files.SAFETENSORS} nor {weight_files.TORCH} nor an index of shards{found}"
    )


def _read_tokenizer(folder: pathlib.Path, config: BertConfig) -> Tokenizer | None:
    """The directory's tokenizer, its size checked against the table (before any weight is read)."""
    if not any((folder / name).is_file() for name in TOKENIZER_FILES[:2]):
        logging.info("%s: neither tokenizer.json nor vocab.txt; only token ids can be given to this model", folder)
        return None
    tokenizer = Tokenizer.load(folder)
    check_vocabulary(tokenizer, config, folder)
    return tokenizer


def check_vocabulary(tokenizer: Tokenizer, config: BertConfig, folder: pathlib.Path) -> None:
    """Refuses a vocabulary larger than the model's table; says so where it is smaller.

    Raises:
      InputError: an entry has no row.
    """
    entries, rows = tokenizer.vocab_size, config.vocab_size
    if entries > rows:
        raise InputError(
            f"{folder}: the vocabulary has {entries} entries, the model {rows} rows (vocab_size in its configuration); "
            "they belong to different models"
        )
    if entries < rows:
        logging.info(
            "%s: the model has %d rows, the vocabulary %d entries; the last %d rows are unused and never predicted",
            folder,
            rows,
            entries,
            rows - entries,
        )


def restore(directory: str | os.PathLike) -> None:
    """Brings back the older model directory where a process was killed just while it replaced it; else does nothing."""
    whole_directory.restore(pathlib.Path(directory).resolve(), (CONFIG_FILE,))
