"""Reads Google's TensorFlow 1 releases without TensorFlow: bert_config.json, vocab.txt and bert_model.ckpt.*.

Training state in a checkpoint (Adam's moments, the step) is ignored and counted.

Source: google-research/bert, README, for the layout of the releases.
"""

import glob
import os
import pathlib
import re
from collections.abc import Sequence

from absl import logging

from bert.architectures import ModelConfig
from bert.errors import InputError, printable
from bert.interop import accounting
from bert.interop.formats.tensor_bundle import is_v1, open_bundle
from bert.interop.formats.tensors import Selected
from bert.interop.load_report import LoadReport
from bert.interop.model_directory import ModelDirectory, check_vocabulary, read_config
from bert.interop.names import bert
from bert.tokenizer.tokenizer import Tokenizer
from bert.tokenizer.tokenizer_files import GOOGLE_MAX_WORD_CHARS
from bert.tokenizer.wordpiece import WordPiece

CONFIG_FILE, VOCABULARY, CHECKPOINT, STATE = "bert_config.json", "vocab.txt", "bert_model.ckpt", "checkpoint"
_SUFFIX = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")  # of the files of one checkpoint, after its prefix
_LARGEST_STATE = 1 << 20  # bytes; the file names each checkpoint


def find(path: pathlib.Path) -> pathlib.Path | None:
    """The prefix of the checkpoint's files, PREFIX.index and PREFIX.data-*: of a folder, or ``path`` itself.

    In a folder: the newest according to TensorFlow's file "checkpoint", else the only one. InputError for several
    without a newest one, and for bert_config.json without a checkpoint beside it.
    Of a file: also where it only seems to be meant as a checkpoint, which `load_checkpoint` then explains.
    """
    if not path.is_dir():
        prefix = path.with_name(_SUFFIX.sub("", path.name))
        return prefix if is_v1(path) or any(path.parent.glob("*.index")) else None
    is_google = (path / CONFIG_FILE).is_file()
    indexed = sorted(p.name.removesuffix(".index") for p in path.glob("*.index"))
    whole = [name for name in indexed if any(path.glob(f"{glob.escape(name)}.data-*"))]
    # An index alone is no checkpoint, and other programs have such files, too.
    names = whole if whole or not is_google else indexed
    if names and (newest := _newest(path)) in names:
        return path / newest
    if len(names) > 1:
        raise InputError(f"{path}: holds several checkpoints ({', '.join(names[:4])}); name one, as {path / names[0]}")
    if names:
        return path / names[0]
    if is_v1(path / CHECKPOINT):
        return path / CHECKPOINT
    if is_google and not (path / "config.json").is_file():
        others = sorted(p.name for pattern in ("*.ckpt*", "*.data-*") for p in path.glob(pattern))
        what = f"{others[0]} has no {_SUFFIX.sub('', others[0])}.index beside it" if others else "holds no checkpoint"
        raise InputError(f"{path}: {what}; a checkpoint is PREFIX.index and PREFIX.data-*: put all its files there")
    return None


def _newest(folder: pathlib.Path) -> str:
    """The checkpoint that TensorFlow's file "checkpoint" names; "" without such a file, or where it is of no use."""
    state = folder / STATE
    if not state.is_file():
        return ""
    with state.open("rb") as file:
        text = file.read(_LARGEST_STATE).decode(errors="replace")
    entry = re.search(r'^model_checkpoint_path: "(.*)"$', text, re.MULTILINE)
    # The path is that of the machine that wrote it; the checkpoint is beside the file that names it.
    name = pathlib.PurePosixPath(entry[1]).name if entry else ""
    if name and (folder / f"{name}.index").is_file():
        return name
    what = f"names {printable(entry[1])}, which is not there" if entry else "names nothing"
    logging.warning("%s: %s; it is ignored", state, what)
    return ""


def load_checkpoint(prefix: pathlib.Path, fresh: Sequence[str] = ()) -> ModelDirectory:
    """The model in a TensorFlow 1 checkpoint, with the configuration and vocabulary beside it.

    Words are split up to Google's 200 characters; whether texts are lower-cased follows from the vocabulary. ``fresh``
    and errors: as in `hugging_face.load_model_directory`.
    """
    folder = prefix.parent
    variables = open_bundle(prefix)
    if "_CHECKPOINTABLE_OBJECT_GRAPH" in variables:
        raise InputError(
            f"{prefix}: is a TensorFlow 2 checkpoint of objects (Keras); only Google's TensorFlow 1 layout can be "
            "read: load its Hugging Face version"
        )
    config_file = read_config(folder / CONFIG_FILE)
    report = LoadReport(str(prefix))
    tokenizer = _read_tokenizer(folder, config_file.config, report)
    tensors = Selected({name: (variables, name) for name in variables})
    params, parts, class_names = accounting.read_parts(tensors, bert.GOOGLE, config_file, report, fresh)
    return ModelDirectory(config_file.config, params, parts, tokenizer, report, class_names, {})


def _read_tokenizer(folder: pathlib.Path, config: ModelConfig, report: LoadReport) -> Tokenizer | None:
    if not os.path.lexists(folder / VOCABULARY):
        logging.info("%s: no %s; the model takes token ids only", folder, VOCABULARY)
        return None
    path, longest = folder / VOCABULARY, config.max_length
    tokenizer = WordPiece.from_vocab(path, max_word_chars=GOOGLE_MAX_WORD_CHARS, model_max_length=longest)
    check_vocabulary(tokenizer, config, folder, report)
    return tokenizer
