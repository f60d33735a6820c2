"""Google's TensorFlow 1 releases, read without TensorFlow: bert_config.json, vocab.txt and bert_model.ckpt.*.

What the trainer left in a checkpoint (Adam's moments, the step) is skipped and counted. The files of variables are read
by tensor_bundle.py, their names are in weight_names.py.

Source: google-research/bert ``modeling.py`` and ``optimization.py`` for the names; its README for the releases' layout.
"""

import pathlib
import re

from absl import logging

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop import hugging_face, labels, parameters, weight_names
from bert.interop.model_directory import ModelDirectory
from bert.interop.report import Report
from bert.interop.tensor_bundle import open_bundle
from bert.interop.tensors import Tensors
from bert.text.tokenizer import Tokenizer

CONFIG_FILE, VOCABULARY, CHECKPOINT, STATE = "bert_config.json", "vocab.txt", "bert_model.ckpt", "checkpoint"
LONGEST_WORD = 200  # characters; tokenization.py, WordpieceTokenizer
_SLOT = re.compile(
    r"/(adam_[mv]|Adam(_1)?|AdamWeightDecayOptimizer(_1)?|LAMBOptimizer(_1)?|Momentum|ExponentialMovingAverage)$"
)
_COUNTERS = re.compile(r"^(global_step|beta[12]_power|loss_scale.*|good_steps|training_step.*)$")


def find(path: pathlib.Path) -> pathlib.Path | None:
    """The prefix of the checkpoint's files, PREFIX.index and PREFIX.data-*: of a folder, or ``path`` itself.

    In a folder: bert_model.ckpt, else what TensorFlow's file "checkpoint" calls the newest, else the only one there.

    Raises:
      InputError: several, and nothing says which.
    """
    if not path.is_dir():
        prefix = path.with_name(re.sub(r"\.(index|meta|data-\d{5}-of-\d{5})$", "", path.name))
        return prefix if _index(prefix).is_file() else None
    if _index(path / CHECKPOINT).is_file():
        return path / CHECKPOINT
    if (path / STATE).is_file():
        named = re.search(r'^model_checkpoint_path: "(.*)"$', (path / STATE).read_text(errors="replace"), re.MULTILINE)
        # A checkpoint that was moved is still called by its old place; it lies beside the file that names it.
        if named and _index(path / pathlib.PurePosixPath(named[1]).name).is_file():
            return path / pathlib.PurePosixPath(named[1]).name
    found = sorted(p.name.removesuffix(".index") for p in path.glob("*.index"))
    if len(found) > 1:
        raise InputError(f"{path}: holds several checkpoints ({', '.join(found[:4])}); name one, as {path / found[0]}")
    return path / found[0] if found else None


def _index(prefix: pathlib.Path) -> pathlib.Path:
    return prefix.with_name(prefix.name + ".index")


def load_checkpoint(prefix: pathlib.Path) -> ModelDirectory:
    """The model in a TensorFlow 1 checkpoint, with the configuration and vocabulary beside it.

    Words are split up to Google's 200 characters; whether texts are lower-cased follows from the vocabulary.

    Raises:
      InputError: a file that is absent or broken, a variable that is missing, of another shape, or not finite.
    """
    folder = prefix.parent
    values = hugging_face.read_json(folder / CONFIG_FILE)
    config = BertConfig.from_json(values, source=str(folder / CONFIG_FILE))
    tokenizer = None
    if (folder / VOCABULARY).is_file():
        longest = config.max_position_embeddings
        tokenizer = Tokenizer.from_vocab(folder / VOCABULARY, max_word_chars=LONGEST_WORD, model_max_length=longest)
        hugging_face.check_vocabulary(tokenizer, config, folder)
    else:
        logging.info("%s: no %s; only token ids can be given to this model", folder, VOCABULARY)
    tensors = open_bundle(prefix)
    if "_CHECKPOINTABLE_OBJECT_GRAPH" in tensors:
        raise InputError(
            f"{prefix}: is a TensorFlow 2 checkpoint of objects (Keras); only Google's TensorFlow 1 layout, with names "
            "such as bert/embeddings/word_embeddings, can be read: convert it, or load its Hugging Face version"
        )
    report = Report(str(prefix))
    parts = weight_names.parts_present(tensors, "google")
    if "sequence_classifier" in parts and "pooler" not in parts:
        parts += ("pooler",)
    classes = weight_names.classes_of(tensors, parts, "google")
    names = labels.read(values, classes, str(folder / CONFIG_FILE))
    params = parameters.to_params(tensors, config, parts, report, format="google", classes=classes or 2)
    _account_for_rest(tensors, config, report)
    return ModelDirectory(config, params, parts, tokenizer, report, names, {})


def _account_for_rest(tensors: Tensors, config: BertConfig, report: Report) -> None:
    used = set(report.used)
    for name in tensors:
        if name.startswith(f"bert/encoder/layer_{config.num_layers}/"):
            raise InputError(
                f"{report.source}: holds {name}, but {CONFIG_FILE} says num_hidden_layers {config.num_layers}; "
                "set it to the number of layers in the checkpoint"
            )
        if name in used:
            continue
        if _SLOT.search(name):
            report.ignored[name] = "the optimizer's memory"
        elif _COUNTERS.match(name):
            report.ignored[name] = "the trainer's counter"
        else:
            report.ignored[name] = "no part of the encoder or of a head known here"
