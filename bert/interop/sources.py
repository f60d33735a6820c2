"""What a person means by a model's path: a model directory, or a run directory and in it what is newest."""

import os
import pathlib

from absl import logging

from bert.config import BertConfig
from bert.errors import InputError
from bert.interop import hugging_face
from bert.interop.hugging_face import ModelDirectory
from bert.interop.weight_names import Report
from bert.text.tokenizer import Tokenizer
from bert.training import run_directory


def read(path: str | os.PathLike) -> ModelDirectory:
    """The model in a model directory or in a run directory (its newest export ``model/``, else its newest checkpoint).

    Raises:
      InputError: nothing to load there, or a file in it is broken (see `hugging_face.load_model_directory`).
    """
    folder = pathlib.Path(path)
    if not (folder / hugging_face.WEIGHTS_FILE).is_file():
        hugging_face.restore(folder / run_directory.MODEL)
        if (folder / run_directory.MODEL).is_dir():
            folder = folder / run_directory.MODEL
        elif (folder / run_directory.CHECKPOINTS).is_dir():
            return _newest_checkpoint(folder)
    return hugging_face.load_model_directory(folder)


def _newest_checkpoint(run: pathlib.Path) -> ModelDirectory:
    """That of a run without a finished export."""
    from bert.training import checkpoint  # Orbax is slow to import

    settings, path = run_directory.read(run), run / run_directory.CONFIG
    encoder = settings.get("encoder") if isinstance(settings, dict) else None
    if not isinstance(encoder, dict):
        raise InputError(
            f'{path}: says nothing of an encoder ("encoder"); name a pretraining run, or a model directory'
        )
    config = BertConfig.from_json(encoder, source=str(path))
    step, params = checkpoint.newest_params(run / run_directory.CHECKPOINTS)
    logging.info("%s: no finished export yet; weights are those of step %d", run, step)
    report = Report(str(run / run_directory.CHECKPOINTS / str(step)))
    extra = {"pretraining": {"step": step, "objective": settings.get("examples.objective")}}
    return ModelDirectory(config, params, ("encoder", *params["head"]), Tokenizer.load(run), report, extra)
