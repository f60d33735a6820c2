"""What a person means by a model's path: a model directory, Google's checkpoint, or a run and in it what is newest."""

import os
import pathlib
from collections.abc import Sequence

from absl import logging

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop import google_tf, hugging_face, weight_files
from bert.interop.model_directory import ModelDirectory, check_fresh, with_fresh
from bert.interop.parameters import flatten
from bert.interop.report import Report, printable
from bert.text.tokenizer import Tokenizer
from bert.training import run_directory


def read(
    path: str | os.PathLike, *, fresh: Sequence[str] = (), labels: Sequence[str] | None = None, seed: int = 0
) -> ModelDirectory:
    """The model that a path means; a report of its tensors goes to the log.

    Args:
      path: a model directory in Hugging Face layout, a folder or prefix of Google's TensorFlow 1 checkpoints, or a run
        directory (its newest export ``model/``, else its newest checkpoint).
      fresh, labels, seed: parts of the head that are made new where they are missing, see `with_fresh`.

    Raises:
      InputError: nothing to load there, or a file in it is broken (see `load_model_directory`, `load_checkpoint`) or
        may not be read; parts that cannot be made new.
    """
    check_fresh(fresh)
    try:
        found = _read(pathlib.Path(path), fresh)
    except InputError as error:  # names of a file stand in it, with line ends, escape codes and whatever else
        raise InputError(printable(str(error))) from None
    except OSError as error:
        if not error.strerror:
            raise
        where = error.filename or path
        raise InputError(f"{where}: cannot be read ({error.strerror}); check the path and its permissions") from None
    found = with_fresh(found, fresh, labels, seed)
    logging.info("%s", found.report)
    return found


def _read(path: pathlib.Path, fresh: Sequence[str]) -> ModelDirectory:
    if weight_files.find(path):
        return hugging_face.load_model_directory(path, fresh)
    hugging_face.restore(path / run_directory.MODEL)
    if (path / run_directory.MODEL / hugging_face.CONFIG_FILE).is_file():
        return hugging_face.load_model_directory(path / run_directory.MODEL, fresh)
    if (path / run_directory.CHECKPOINTS).is_dir():
        return _newest_checkpoint(path)
    checkpoint = google_tf.find(path)
    if checkpoint:
        return google_tf.load_checkpoint(checkpoint, fresh)
    return hugging_face.load_model_directory(path, fresh)


def _newest_checkpoint(run: pathlib.Path) -> ModelDirectory:
    """That of a run without a finished export."""
    from bert.training import checkpoint  # Orbax is slow to import

    settings, path = run_directory.read(run), run / run_directory.CONFIG
    encoder = settings.get("encoder") if isinstance(settings, dict) else None
    if not isinstance(encoder, dict):
        raise InputError(f'{path}: says nothing of an encoder ("encoder"); name a run, or a model directory')
    config = BertConfig.from_json(encoder, source=str(path))
    step, params = checkpoint.newest_params(run / run_directory.CHECKPOINTS)
    logging.info("%s: no finished export yet; weights are those of step %d", run, step)
    # One of ours holds what a file has in many tensors, a layer each.
    report = Report(str(run / run_directory.CHECKPOINTS / str(step)), counted="parameters")
    report.used += [path for path, _ in flatten(params)]
    # Of a fine-tuning run its settings hold what its exports say.
    extra = settings.get("extra") or {"pretraining": {"step": step, "objective": settings.get("examples.objective")}}
    labels = tuple(settings.get("labels") or ())
    return ModelDirectory(config, params, ("encoder", *params["head"]), Tokenizer.load(run), report, labels, extra)
