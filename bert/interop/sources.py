"""Resolves a path to a model: Hugging Face directory, TensorFlow 1 checkpoint, or run (newest export or checkpoint)."""

import os
import pathlib
from collections.abc import Sequence

import numpy as np
from absl import logging

from bert.architectures import ModelConfig
from bert.errors import InputError, printable
from bert.interop import google_tf, hugging_face, names, sentence_transformers
from bert.interop.formats import weight_files
from bert.interop.load_report import LoadReport
from bert.interop.model_directory import ModelDirectory, check_fresh, with_fresh
from bert.interop.parameters import check_shapes, class_count, flatten, with_implied_parts
from bert.tokenizer import tokenizer_files
from bert.training import checkpoint_meta, run_directory


def read(
    path: str | os.PathLike[str], *, fresh: Sequence[str] = (), labels: Sequence[str] | None = None, seed: int = 0
) -> ModelDirectory:
    """The model at a path; a report of its tensors goes to the log.

    ``path`` is a model directory in Hugging Face layout, a folder or prefix of Google's TensorFlow 1 checkpoints, or a
    run directory (its newest export ``model/``, else its newest checkpoint). The rest is as in `with_fresh`.

    Raises InputError where nothing can be loaded, a file is broken or may not be read, or a part cannot be new.
    """
    check_fresh(fresh)
    try:
        model = _read(pathlib.Path(path), fresh)
    except InputError as error:  # it may hold names from a file, with line ends, escape codes and whatever else
        raise InputError(printable(str(error))) from None
    except OSError as error:
        if not error.strerror:
            raise
        where = error.filename or path
        raise InputError(f"{where}: cannot be read ({error.strerror}); check the path and its permissions") from None
    model = with_fresh(model, fresh, labels, seed)
    logging.info("%s", model.report)
    return model


def _read(path: pathlib.Path, fresh: Sequence[str]) -> ModelDirectory:
    hugging_face.restore(path)
    if (path / sentence_transformers.MODULES).is_file() or weight_files.find(path):
        return hugging_face.load_model_directory(path, fresh)
    model = path / run_directory.MODEL
    hugging_face.restore(model)
    is_run = (path / run_directory.CHECKPOINTS).is_dir()
    if (model / hugging_face.CONFIG_FILE).is_file() or (is_run and model.exists()):  # one that lacks files is refused
        for name in tokenizer_files.WRITTEN if is_run else ():  # without one the others might make another tokenizer
            if (path / name).is_file() and not (model / name).is_file():
                raise InputError(f"{model / name}: is missing; copy it from {path}")
        return hugging_face.load_model_directory(model, fresh)
    if is_run:
        return _newest_checkpoint(path)
    checkpoint = google_tf.find(path)
    if checkpoint:
        return google_tf.load_checkpoint(checkpoint, fresh)
    if (path / run_directory.LOCK).is_file():
        raise InputError(f"{path}: this run has no checkpoint yet; start its command again")
    return hugging_face.load_model_directory(path, fresh)


def run_encoder(run: pathlib.Path) -> ModelConfig:
    """The encoder of a run. InputError where the settings have none, or not that of the newest readable checkpoint."""
    config, checkpoints = run_directory.read_encoder(run), run / run_directory.CHECKPOINTS
    newest = checkpoint_meta.newest(checkpoints)
    if newest and newest[1].arrays is not None:
        shapes = {name: array["shape"] for name, array in newest[1].arrays.items()}
        of_params = {name.removeprefix("params/"): x for name, x in shapes.items() if name.startswith("params/")}
        check_shapes(of_params, config, f"{run / run_directory.CONFIG}: no encoder of checkpoint {newest[0]}")
    return config


def _newest_checkpoint(run: pathlib.Path) -> ModelDirectory:
    """The newest checkpoint of a run without a finished export.

    Raises InputError where none can be read, it does not fit the run's settings, or an export was there and is lost.
    """
    from bert.training import checkpoint  # Orbax is slow to import

    config, tokenizer = run_encoder(run), run_directory.read_tokenizer(run)
    checkpoints = run / run_directory.CHECKPOINTS
    pretrained = "pretraining" in run_directory.read_model_keys(run, 0)[1]
    if not pretrained and (best := checkpoint.best_step(checkpoints)) is not None:
        raise InputError(
            f"{run / run_directory.MODEL}: the model of step {best}, the best evaluation, is lost; run the command "
            "that trained it again, which restores it if that step is still among the checkpoints"
        )
    step, params = checkpoint.newest_params(checkpoints)
    logging.info("%s: no finished export yet; weights are those of step %d", run, step)
    labels, extra = run_directory.read_model_keys(run, step)
    params, source = with_implied_parts(params, names.table(config)), str(checkpoints / str(step))
    check_shapes({path: np.shape(value) for path, value in flatten(params)}, config, source)
    classes = class_count(params)
    if classes not in (None, len(labels)):
        both = f"{len(labels)} labels for the {classes} classes of {source}"
        raise InputError(f"{run / run_directory.CONFIG}: {both}; the file was damaged or edited")
    # A parameter of ours is many tensors in a file, one for each layer.
    report = LoadReport(source, counted="parameters", used=[path for path, _ in flatten(params)])
    return ModelDirectory(config, params, ("encoder", *params["head"]), tokenizer, report, labels, extra)
