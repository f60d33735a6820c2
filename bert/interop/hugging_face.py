"""Model directories in Hugging Face layout: config.json, model.safetensors and the tokenizer's files, in and out.

Reading is strict: every tensor is used, ignored for a reason that the report gives, or missing, which is an error.
Nothing in a directory is executed and nothing is fetched. Names of weights are in weight_names.py.
"""

import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import safetensors.numpy
from absl import logging

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop import accounting, weight_names, whole_directory
from bert.interop.tensors import open_safetensors
from bert.interop.weight_names import Params, Report
from bert.text.tokenizer import Tokenizer

CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json")
# Written anew on every save; everything else in config.json that BertConfig does not hold is carried along.
_REWRITTEN = ("architectures", "transformers_version", "dtype", "torch_dtype", "tie_word_embeddings", "pad_token_id")


class ModelDirectory(NamedTuple):
    """What a model directory holds.

    params: nested dict of float32 NumPy arrays, {"encoder": ..., "head": ...}.
    parts: what is there, keys of `weight_names.PARTS`: "encoder" and any of "pooler", "mlm", "next_sentence".
    tokenizer: None where the directory has no vocabulary.
    extra: the keys of config.json that do not describe the encoder (label names, a task's settings).
    """

    config: BertConfig
    params: Params
    parts: tuple[str, ...]
    tokenizer: Tokenizer | None
    report: Report
    extra: dict[str, Any]


def load_model_directory(directory: str | os.PathLike, *, fresh: Sequence[str] = (), seed: int = 0) -> ModelDirectory:
    """The model in a directory of Hugging Face layout.

    Args:
      directory: holds config.json and model.safetensors, and usually tokenizer.json or vocab.txt.
      fresh: parts that are made new, at random, where the file lacks them; without this they stay absent.
      seed: of the fresh parts.

    Raises:
      InputError: a file that is absent or broken; a weight that is missing, of another shape, or not finite; a
        vocabulary with more entries than the model has rows.
    """
    folder = pathlib.Path(directory)
    restore(folder)
    values = _read_config(folder)
    config = BertConfig.from_json(values, source=str(folder / CONFIG_FILE))
    tokenizer = _read_tokenizer(folder, config)
    report = Report(str(folder / WEIGHTS_FILE))
    tensors = accounting.canonical_tensors(open_safetensors(_weights_file(folder)), report)
    accounting.settle_decoder(tensors, report)
    parts = weight_names.parts_present(tensors)
    params = weight_names.to_params(tensors, config, parts, report)
    accounting.account_for_rest(tensors, config, report)
    absent = [part for part in fresh if part not in parts]
    if absent:
        _add_fresh(params, config, absent, seed)
        report.fresh += absent
    if report.ignored or report.fresh:
        logging.info("%s", report)
    known = {*config.to_json(), *_REWRITTEN}
    extra = {key: value for key, value in values.items() if key not in known}
    return ModelDirectory(config, params, (*parts, *absent), tokenizer, report, extra)


def _read_config(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / CONFIG_FILE
    if not folder.is_dir():
        raise InputError(f"{folder}: no such directory; name one that holds {CONFIG_FILE} and {WEIGHTS_FILE}")
    if not path.is_file():
        raise InputError(f"{path}: no such file; a model directory holds {CONFIG_FILE} and {WEIGHTS_FILE}")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: not JSON ({error}); the file is damaged") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: holds a {type(values).__name__}, not an object with names and values")
    return values


def _weights_file(folder: pathlib.Path) -> pathlib.Path:
    path = folder / WEIGHTS_FILE
    if path.is_file():
        return path
    others = sorted(p.name for pattern in ("*.bin", "*.safetensors*", "*.ckpt*", "*.h5") for p in folder.glob(pattern))
    found = f"; found {', '.join(others[:3])}, which cannot be read yet" if others else ""
    raise InputError(f"{path}: no such file{found}; save the model again as one {WEIGHTS_FILE}")


def _read_tokenizer(folder: pathlib.Path, config: BertConfig) -> Tokenizer | None:
    """The directory's tokenizer, its size checked against the table (before any weight is read)."""
    if not any((folder / name).is_file() for name in TOKENIZER_FILES[:2]):
        logging.info("%s: neither tokenizer.json nor vocab.txt; only token ids can be given to this model", folder)
        return None
    tokenizer = Tokenizer.load(folder)
    entries, rows = tokenizer.vocab_size, config.vocab_size
    if entries > rows:
        raise InputError(
            f"{folder}: the vocabulary has {entries} entries, the model {rows} rows (vocab_size in {CONFIG_FILE}); "
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
    return tokenizer


def _add_fresh(params: Params, config: BertConfig, parts: Sequence[str], seed: int) -> None:
    """Puts newly initialised parts of the pretraining head into the tree, as float32 NumPy arrays."""
    from bert.model.heads import PretrainingHead  # Linen is slow to import, and rarely needed here

    known = [part for part in weight_names.PARTS if part != "encoder"]
    for part in parts:
        if part not in known:
            raise InputError(f"{part!r} cannot be made new; it must be one of {', '.join(known)}")
    zeros_BP = np.zeros((1, 1), np.int32)
    batch = {"masked_positions": zeros_BP, "cls_positions": zeros_BP}
    hidden_BTD = np.zeros((1, 1, config.hidden_size), np.float32)
    table_VD = np.zeros((config.vocab_size, config.hidden_size), np.float32)
    made = PretrainingHead(config).init(jax.random.key(seed), hidden_BTD, batch, table_VD)["params"]
    head = params.setdefault("head", {})
    for part in parts:
        head[part] = jax.tree.map(np.asarray, made[part])


def save_model_directory(
    directory: str | os.PathLike,
    config: BertConfig,
    params: Params,
    tokenizer: Tokenizer | None,
    *,
    extra: Mapping[str, Any] | None = None,
) -> pathlib.Path:
    """Writes a model directory that transformers loads, and returns its path.

    It appears under its name only when it is complete; an older model directory of that name is replaced as a whole.

    Args:
      params: {"encoder": ..., "head": ...}, arrays of NumPy or JAX (all of each on this host); saved as float32.
      extra: further keys of config.json (label names, a task's settings); those that describe the encoder are ours.

    Raises:
      InputError: a parameter without a Hugging Face name, or an existing directory that holds other files.
    """
    check_replaceable(directory)
    restore(directory)
    target = pathlib.Path(directory).resolve()
    tensors = dict(weight_names.from_params(params, config))
    with whole_directory.replacing(target) as aside:
        safetensors.numpy.save_file(tensors, aside / WEIGHTS_FILE, metadata={"format": "pt"})
        # The library makes a file that only its owner can read; a model directory is to be shared as the user wants.
        os.chmod(aside / WEIGHTS_FILE, 0o666 & ~_umask())
        text = json.dumps(_config_values(config, tensors, tokenizer, extra or {}), indent=2, ensure_ascii=False)
        (aside / CONFIG_FILE).write_text(text + "\n", encoding="utf-8", newline="\n")
        if tokenizer:
            # Never a longest input beyond the positions: other programs would cut texts to it, and read past the table.
            longest = min(tokenizer.model_max_length, config.max_position_embeddings)
            Tokenizer(tokenizer.vocab, tokenizer.settings, longest).save(aside)
    return pathlib.Path(directory)


def _config_values(
    config: BertConfig, tensors: Mapping[str, np.ndarray], tokenizer: Tokenizer | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """The whole of config.json."""
    return {
        "architectures": [architecture(weight_names.parts_present(tensors))],
        **{key: value for key, value in extra.items() if key not in _REWRITTEN},
        **config.to_json(),
        "dtype": "float32",
        "tie_word_embeddings": True,
        "pad_token_id": tokenizer.pad_id if tokenizer else 0,
    }


def _umask() -> int:
    """The process's mask of permissions, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def architecture(parts: Sequence[str]) -> str:
    """The transformers class that reads these parts."""
    if {"mlm", "pooler", "next_sentence"} <= set(parts):
        return "BertForPreTraining"
    return "BertForMaskedLM" if "mlm" in parts else "BertModel"


def check_replaceable(directory: str | os.PathLike) -> None:
    """Refuses a directory that `save_model_directory` would not write to: nobody's files are deleted.

    A long run asks this before it starts.

    Raises:
      InputError: it is a file, or holds other files than a model directory's.
    """
    ours = (CONFIG_FILE, WEIGHTS_FILE, *TOKENIZER_FILES)
    whole_directory.check_replaceable(pathlib.Path(directory).resolve(), ours)


def restore(directory: str | os.PathLike) -> None:
    """Brings back the older model directory where a process was killed just while it replaced it; else does nothing."""
    whole_directory.restore(pathlib.Path(directory).resolve(), (CONFIG_FILE, WEIGHTS_FILE))
