"""Reads model directories in Hugging Face layout: config.json, the weights and the tokenizer's files.

Reading is strict: every tensor is used, ignored with a reason in the report, or missing, which is an error.
Nothing in a directory is executed, and nothing is downloaded. export.py writes such directories.
"""

import json
import os
import pathlib
from collections.abc import Mapping, Sequence

from absl import logging

from bert import files, json_files
from bert.architectures import ModelConfig
from bert.errors import InputError
from bert.interop import accounting, labels, model_card, names, other_models, sentence_transformers
from bert.interop.formats import weight_files
from bert.interop.formats.safetensors_file import CHECKSUMS
from bert.interop.load_report import LoadReport
from bert.interop.model_directory import ModelDirectory, check_vocabulary, read_config
from bert.tokenizer import tokenizer_files
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.tokenizer import Tokenizer

CONFIG_FILE = "config.json"
TOKENIZER_FILES = (*tokenizer_files.WRITTEN, "special_tokens_map.json")
ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors", "adapter_model.bin", "pytorch_adapter.bin")
PROGRAMS = {"stablehlo": "model.stablehlo", "onnx": "model.onnx"}  # format of a program with its weights -> its file
# The mark in config.json of a directory written here. transformers keeps it when it saves such a model again, and adds
# a key of its own.
MARK, WRITER, OTHER_WRITER = "written_by", "bert-jax", "transformers_version"
TOKENIZER = "tokenizer_sha256"  # key of the weights' metadata, beside their checksums: the tokenizer's fingerprint
# Written anew on every save; all other keys of config.json that the configuration does not hold are carried along.
REWRITTEN = (
    *(MARK, OTHER_WRITER, "architectures", "dtype", "torch_dtype", "tie_word_embeddings", "pad_token_id"),
    *labels.KEYS,
)


def load_model_directory(directory: str | os.PathLike[str], fresh: Sequence[str] = ()) -> ModelDirectory:
    """The model in a directory with config.json and the weights, and usually tokenizer.json or vocab.txt.

    In a directory of sentence_transformers, these may be in a folder below.

    ``fresh``: parts that `with_fresh` initialises afterwards where they are incomplete. Raises InputError for a file
    that is absent or broken, a vocabulary with more entries than the model has rows, and as `accounting.read_parts`.
    """
    restore(directory)
    top = pathlib.Path(directory)
    folder = sentence_transformers.encoder_folder(top)
    if adapter := next((name for name in ADAPTER_FILES if (folder / name).exists()), None):
        raise InputError(
            f"{folder / adapter}: an adapter of peft that is not merged into weights; {other_models.MERGE}, or move "
            "the adapter_* files away to load the weights beside it without it"
        )
    _check_none_below(folder)
    config_file = read_config(folder / CONFIG_FILE)
    config, table = config_file.config, names.table(config_file.config)
    path = _weights(folder)
    report = LoadReport(str(path))
    tokenizer = _read_tokenizer(folder, config, report)
    file = weight_files.open_weights(path)
    metadata = weight_files.metadata_of(file)
    _check_settings(metadata, config, folder / CONFIG_FILE)
    if tokenizer and TOKENIZER in metadata:
        _check_tokenizer(metadata[TOKENIZER], tokenizer, folder)
    tensors = accounting.canonical_tensors(file, table, report)
    accounting.drop_copies(tensors, table, config_file.values, report)
    params, parts, class_names = accounting.read_parts(tensors, table, config_file, report, fresh)
    written = {*config.to_json(), *REWRITTEN}
    extra = {key: value for key, value in config_file.values.items() if key not in written}
    sentences = sentence_transformers.read(top, config, tokenizer, report)
    return ModelDirectory(
        config, params, parts, tokenizer, report, class_names, extra, sentences, model_card.changed(top)
    )


def _weights(folder: pathlib.Path) -> pathlib.Path:
    if path := weight_files.find(folder):
        return path
    if program := next((name for name in PROGRAMS.values() if (folder / name).is_file()), None):
        raise InputError(f"{folder}: holds {program}, which is an export to run, not to load; name its source")
    others = sorted(p.name for pattern in ("*.bin", "*.safetensors*", "*.ckpt*", "*.h5") for p in folder.glob(pattern))
    remark = f"; {', '.join(others[:3])} is no name of theirs or cannot be read" if others else ""
    known = f"neither {weight_files.SAFETENSORS} nor {weight_files.TORCH} nor an index of shards"
    raise InputError(f"{folder}: holds {known}{remark}")


def _check_none_below(folder: pathlib.Path) -> None:
    """Raises InputError for a folder without weights that has a model directory in it, naming that."""
    below = sorted(path.parent for path in folder.glob(f"*/{CONFIG_FILE}") if weight_files.find(path.parent))
    if below and not weight_files.find(folder):
        raise InputError(f"{folder}: holds no weights, but {below[0]} does; name that folder")


def settings_without_shape(config: ModelConfig) -> dict[str, str]:
    """Metadata of exported weights: the keys of config.json that change outputs but no shape."""
    values = config.to_json()
    values = {**values.get("encoder", {}), **values}  # of an encoder-decoder, whose halves are alike
    keys = ("hidden_act", "layer_norm_eps", "num_attention_heads", "is_decoder", "n_head", "afn",
            "activation_function", "layer_norm_epsilon")  # fmt: skip
    return {key: json.dumps(values[key]) for key in keys if key in values}


def _check_settings(metadata: Mapping[str, str], config: ModelConfig, source: pathlib.Path) -> None:
    """Refuses a config.json that was changed since the weights were written, for weights written here."""
    for key, value in settings_without_shape(config).items() if CHECKSUMS in metadata else ():
        if metadata.get(key, value) != value:
            both = f"{key} is {value}, but the weights were written with {metadata[key]:.100}"
            raise InputError(f"{source}: {both}; set it to that, or copy the directory again")


def _check_tokenizer(fingerprint: str, tokenizer: Tokenizer, folder: pathlib.Path) -> None:
    """Refuses files of the tokenizer that were damaged or changed since the weights were written, here."""
    if tokenizer.fingerprint != fingerprint:
        what = f"{', '.join(tokenizer_files.WRITTEN)} are not the tokenizer that the weights were written with"
        raise InputError(f"{folder}: {what}; one of them is missing, damaged or edited: restore it from a copy")
    vocab = folder / tokenizer_files.WRITTEN[1]
    if vocab.is_file() and json_files.read_text(vocab).split() != "\n".join(tokenizer.vocab).split():
        what = f"its entries are not those of {tokenizer_files.WRITTEN[0]}, with which the weights were written"
        raise InputError(f"{vocab}: {what}; it is damaged or edited: restore it from a copy")


def _read_tokenizer(folder: pathlib.Path, config: ModelConfig, report: LoadReport) -> Tokenizer | None:
    """The directory's tokenizer, its size checked against the table (before any weight is read)."""
    if not any(os.path.lexists(folder / name) for name in TOKENIZER_FILES[:2]):
        logging.info("%s: neither tokenizer.json nor vocab.txt; only token ids can be given to this model", folder)
        return None
    tokenizer = load_tokenizer(folder)
    check_vocabulary(tokenizer, config, folder, report)
    return tokenizer


def restore(directory: str | os.PathLike[str]) -> None:
    """Brings back the older model directory where a process was killed just while it replaced it."""
    files.recover_interrupted_replace(pathlib.Path(os.path.realpath(directory)), (CONFIG_FILE,))
