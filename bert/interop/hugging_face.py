"""Model directories in Hugging Face layout: config.json, model.safetensors and the tokenizer's files, in and out.

Reading is strict: every tensor is used, ignored for a reason that the report gives, or missing, which is an error.
Nothing in a directory is executed and nothing is fetched. Names of weights are in weight_names.py.
"""

import json
import os
import pathlib
import shutil
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import safetensors.numpy
from absl import logging

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop import weight_names
from bert.interop.tensors import Renamed, Tensors, open_safetensors
from bert.interop.weight_names import Params, Report
from bert.text.tokenizer import Tokenizer

CONFIG_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"
TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json")
# Written anew on every save; everything else in config.json that BertConfig does not hold is carried along.
_REWRITTEN = ("architectures", "transformers_version", "dtype", "torch_dtype", "tie_word_embeddings", "pad_token_id")
_DECODER_WEIGHT, _DECODER_BIAS, _BIAS = (
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "cls.predictions.bias",
)


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
    values = _read_config(folder)
    config = BertConfig.from_json(values, source=str(folder / CONFIG_FILE))
    tokenizer = _read_tokenizer(folder, config)
    report = Report(str(folder / WEIGHTS_FILE))
    tensors = _canonical(open_safetensors(_weights_file(folder)), report)
    _settle_decoder(tensors, report)
    parts = weight_names.parts_present(tensors)
    params = weight_names.to_params(tensors, config, parts, report)
    _account_for_rest(tensors, config, report)
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
            *(folder, rows, entries, rows - entries),
        )
    return tokenizer


def _canonical(file: Tensors, report: Report) -> Renamed:
    """The file's tensors under the table's spelling of their names; buffers are left to the report.

    Raises:
      InputError: two tensors of the file mean the same parameter and differ.
    """
    names: dict[str, str] = {}
    for name in file:
        spelled = weight_names.canonical(name)
        if spelled in ("bert.embeddings.position_ids", "bert.embeddings.token_type_ids"):
            report.ignored[name] = "a buffer; computed here"
        elif spelled not in names:
            names[spelled] = name
        elif np.array_equal(file[name], file[names[spelled]]):
            report.ignored[name] = f"an equal copy of {names[spelled]}"
        else:
            raise InputError(
                f"{report.source}: {names[spelled]} and {name} are one parameter ({spelled}) and differ; remove one"
            )
    return Renamed(file, names)


def _settle_decoder(tensors: Renamed, report: Report) -> None:
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


def _account_for_rest(tensors: Renamed, config: BertConfig, report: Report) -> None:
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
    target = pathlib.Path(directory).resolve()
    tensors = dict(weight_names.from_params(params, config))
    aside = target.with_name(f".{target.name}.unfinished")  # a killed run leaves it; the next save clears it away
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        safetensors.numpy.save_file(tensors, aside / WEIGHTS_FILE, metadata={"format": "pt"})
        text = json.dumps(_config_values(config, tensors, tokenizer, extra or {}), indent=2, ensure_ascii=False)
        (aside / CONFIG_FILE).write_text(text + "\n", encoding="utf-8", newline="\n")
        if tokenizer:
            # Never a longest input beyond the positions: other programs would cut texts to it, and read past the table.
            longest = min(tokenizer.model_max_length, config.max_position_embeddings)
            Tokenizer(tokenizer.vocab, tokenizer.settings, longest).save(aside)
        _put_in_place(aside, target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
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
    target = pathlib.Path(directory).resolve()
    if not target.exists():
        return
    if not target.is_dir():
        raise InputError(f"{target}: is a file; choose a directory")
    ours = {CONFIG_FILE, WEIGHTS_FILE, *TOKENIZER_FILES}
    others = sorted(entry.name for entry in target.iterdir() if entry.name not in ours)
    if others:
        raise InputError(f"{target}: holds other files ({', '.join(others[:3])}); choose a new or an empty directory")


def _put_in_place(aside: pathlib.Path, target: pathlib.Path) -> None:
    """Renames; an older directory steps aside first, and comes back if the new one cannot take its place."""
    if not target.exists():
        _rename_into(aside, target)
        return
    old = target.with_name(f".{target.name}.replaced")
    shutil.rmtree(old, ignore_errors=True)
    target.rename(old)
    try:
        _rename_into(aside, target)
    except BaseException:
        old.rename(target)
        raise
    shutil.rmtree(old)


def _rename_into(aside: pathlib.Path, target: pathlib.Path) -> None:
    aside.rename(target)
