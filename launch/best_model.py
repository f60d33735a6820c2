"""The model of a run's best evaluation: its logged metrics, and its ``model/``, restored if it was lost."""

import pathlib
from collections.abc import Callable

import jax

from bert import files
from bert.errors import InputError
from bert.interop import hugging_face
from bert.interop.formats import weight_files
from bert.tokenizer import tokenizer_files
from bert.training import run_directory, tracking
from bert.training.evaluate import Metrics
from bert.types import Params
from launch import runtime


def metrics_of(workdir: pathlib.Path, step: int) -> Metrics:
    """The logged metrics of the evaluation at a step; none below step 0, and none except on process 0."""
    if step < 0 or jax.process_index() != 0:
        return {}
    path = workdir / run_directory.METRICS
    for _, row in tracking.read_log(path):
        if row is not None and (row["step"], row["split"]) == (step, "validation"):
            return {name: value for name, value in row.items() if name not in ("step", "split")}
    way_out = f"if {run_directory.MODEL}/ is there, bert evaluate scores it, else start again in another folder"
    raise InputError(f"{path}: has no scores of step {step}, the best evaluation; {way_out}")


def lacks_files(model: pathlib.Path) -> bool:
    """Whether this is a run's model directory without its weights or a file of the run's tokenizer."""
    tokenizer = [name for name in tokenizer_files.WRITTEN if (model.parent / name).is_file()]
    whole = weight_files.find(model) and all((model / name).is_file() for name in tokenizer)
    return not whole and (model / hugging_face.CONFIG_FILE).is_file()


def bring_back(workdir: pathlib.Path, write: Callable[[int, Params, Metrics], None]) -> None:
    """Writes the best evaluation's model again where ``model/`` is lost, from the checkpoint of its step.

    InputError where there is no such checkpoint: another step's weights are not the model that was chosen.
    """
    model, checkpoints = workdir / run_directory.MODEL, workdir / run_directory.CHECKPOINTS
    hugging_face.restore(model)
    if (model.exists() and not lacks_files(model)) or not run_directory.steps(checkpoints):
        return
    from bert.training import checkpoint  # Orbax is slow to import

    if (best := checkpoint.best_step(checkpoints)) is None:
        return
    try:
        _, params = checkpoint.newest_params(checkpoints, best)
    except InputError as error:
        raise InputError(
            f"{model}: the model of step {best}, the best evaluation, is lost, and so is its checkpoint ({error}); "
            "start again in another folder: the same command gives the same model"
        ) from None
    scores = metrics_of(workdir, best)
    if model.exists() and jax.process_index() == 0:  # what is left of it is kept
        model.rename(files.free_name(model.with_name(f"{model.name}.damaged")))
    write(best, params, scores)
    runtime.say(f"{model}/ was lost, and was written again from the checkpoint of step {best}")
