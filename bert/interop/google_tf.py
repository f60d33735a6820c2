"""Google's TensorFlow 1 releases, read without TensorFlow: bert_config.json, vocab.txt and bert_model.ckpt.*.

What the trainer left in a checkpoint (Adam's moments, the step) is skipped and counted. The files of variables are read
by tensor_bundle.py, their names are in weight_names.py.

Source: google-research/bert ``modeling.py`` and ``optimization.py`` for the names; its README for the releases' layout.
"""

import glob
import pathlib
import re
from collections.abc import Sequence

from absl import logging

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop import accounting
from bert.interop.model_directory import ModelDirectory, check_vocabulary, read_json
from bert.interop.report import Report
from bert.interop.tensor_bundle import is_v1, open_bundle
from bert.interop.tensors import Selected
from bert.text.tokenizer import Tokenizer

CONFIG_FILE, VOCABULARY, CHECKPOINT, STATE = "bert_config.json", "vocab.txt", "bert_model.ckpt", "checkpoint"
LONGEST_WORD = 200  # characters; tokenization.py, WordpieceTokenizer
_SLOT = re.compile(
    r"/(adam_[mv]|Adam(_1)?|AdamWeightDecayOptimizer(_1)?|LAMBOptimizer(_1)?|Momentum|ExponentialMovingAverage)$"
)
_COUNTERS = re.compile(r"^(global_step|beta[12]_power|loss_scale.*|good_steps|training_step.*)$")
# Google's code keeps the pooler whatever it trains, and calls the classifier of sentences and that of tokens alike.
_AMBIGUOUS = (
    "output_weights is taken for a classifier of sequences; of tokens it has the same name: if it is one, write "
    f'"architectures": ["BertForTokenClassification"] into {CONFIG_FILE}'
)


def find(path: pathlib.Path) -> pathlib.Path | None:
    """The prefix of the checkpoint's files, PREFIX.index and PREFIX.data-*: of a folder, or ``path`` itself.

    In a folder: bert_model.ckpt, else what TensorFlow's file "checkpoint" calls the newest, else the only one there.
    Of a file: also where it only seems to be meant as a checkpoint, which `load_checkpoint` then explains.

    Raises:
      InputError: several, and nothing says which.
    """
    if not path.is_dir():
        prefix = path.with_name(re.sub(r"\.(index|meta|data-\d{5}-of-\d{5})$", "", path.name))
        return prefix if is_v1(path) or any(path.parent.glob("*.index")) else None
    if _index(path / CHECKPOINT).is_file() or is_v1(path / CHECKPOINT):
        return path / CHECKPOINT
    if (path / STATE).is_file():
        named = re.search(r'^model_checkpoint_path: "(.*)"$', (path / STATE).read_text(errors="replace"), re.MULTILINE)
        # A checkpoint that was moved is still called by its old place; it lies beside the file that names it.
        if named and _index(path / pathlib.PurePosixPath(named[1]).name).is_file():
            return path / pathlib.PurePosixPath(named[1]).name
    found = sorted(p.name.removesuffix(".index") for p in path.glob("*.index"))
    if not (path / CONFIG_FILE).is_file():  # the name alone says little: other programs have an index, too
        found = [name for name in found if any(path.glob(f"{glob.escape(name)}.data-*"))]
    if len(found) > 1:
        raise InputError(f"{path}: holds several checkpoints ({', '.join(found[:4])}); name one, as {path / found[0]}")
    return path / found[0] if found else None


def _index(prefix: pathlib.Path) -> pathlib.Path:
    return prefix.with_name(prefix.name + ".index")


def load_checkpoint(prefix: pathlib.Path, fresh: Sequence[str] = ()) -> ModelDirectory:
    """The model in a TensorFlow 1 checkpoint, with the configuration and vocabulary beside it.

    Words are split up to Google's 200 characters; whether texts are lower-cased follows from the vocabulary.

    Args:
      prefix: what the names of the checkpoint's files begin with.
      fresh: parts that `with_fresh` is to make new where they are not there as a whole.

    Raises:
      InputError: a file that is absent or broken, a variable that is missing, of another shape, or not finite.
    """
    folder = prefix.parent
    variables = open_bundle(prefix)
    if "_CHECKPOINTABLE_OBJECT_GRAPH" in variables:
        raise InputError(
            f"{prefix}: is a TensorFlow 2 checkpoint of objects (Keras); only Google's TensorFlow 1 layout, with names "
            "such as bert/embeddings/word_embeddings, can be read: convert it, or load its Hugging Face version"
        )
    values = read_json(folder / CONFIG_FILE)
    config = BertConfig.from_json(values, source=str(folder / CONFIG_FILE))
    tokenizer = _read_tokenizer(folder, config)
    report = Report(str(prefix))
    tensors = Selected({name: (variables, name) for name in variables})
    params, parts, names = accounting.read_parts(
        tensors,
        values,
        config,
        report,
        config_file=str(folder / CONFIG_FILE),
        column="google",
        fresh=fresh,
        reason=_reason,
    )
    if "sequence_classifier" in parts and "architectures" not in values:
        report.notes.append(_AMBIGUOUS)
    return ModelDirectory(config, params, parts, tokenizer, report, names, {})


def _read_tokenizer(folder: pathlib.Path, config: BertConfig) -> Tokenizer | None:
    if not (folder / VOCABULARY).is_file():
        logging.info("%s: no %s; only token ids can be given to this model", folder, VOCABULARY)
        return None
    longest = config.max_position_embeddings
    tokenizer = Tokenizer.from_vocab(folder / VOCABULARY, max_word_chars=LONGEST_WORD, model_max_length=longest)
    check_vocabulary(tokenizer, config, folder)
    return tokenizer


def _reason(name: str) -> str | None:
    """Why the trainer left a variable that is no weight."""
    if _SLOT.search(name):
        return "the optimizer's memory"
    return "the trainer's counter" if _COUNTERS.match(name) else None
