"""What a run leaves for its report: its start, the evaluation at its end, and the report. None of it fails a run."""

import contextlib
import importlib.metadata
import pathlib
import platform
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
from absl import logging
from jax.experimental import multihost_utils
from ml_collections import ConfigDict

import tasks
from bert import inference
from bert.errors import InputError, printable
from bert.inference import LoadedModel
from bert.interop import hugging_face, model_card
from bert.reports import records, runs
from bert.training import run_directory
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from launch import card_facts, command_line, runtime
from tasks.job import ExamplesJob


@contextlib.contextmanager
def _only_warns(what: str) -> Iterator[None]:
    """Has any error within end in a warning of one line."""
    try:
        yield
    except Exception as error:
        why = str(error) if isinstance(error, InputError | OSError) else f"{type(error).__name__}: {error}"
        logging.warning("%s: %s; the run itself is complete", what, printable(why))


def note_start(workdir: pathlib.Path, config: ConfigDict, data: str, choice: Choice | None) -> None:
    """Adds this start to those of the run, and takes away what an earlier end has left. ``data``: the data report."""
    if jax.process_index() != 0:
        return
    devices = jax.devices()
    versions = {name: importlib.metadata.version(name) for name in ("bert-jax", "jax")}
    start = {
        "command": command_line.words(),
        "changed": command_line.changed(config),
        "versions": versions | {"Python": platform.python_version()},
        "devices": f"{devices[0].device_kind} x {len(devices)}",
        "data": data,
        "loss": choice.loss if choice else "",
        "metric": choice.metric if choice else "",
    }
    with _only_warns("the start of the run cannot be noted"):
        records.remove(workdir)
        records.add_start(workdir, start)


def evaluate_examples(
    workdir: pathlib.Path, config: ConfigDict, job: ExamplesJob, step: int, baseline: Callable[[], Metrics]
) -> None:
    """Scores the run's model on the validation part once more, with intervals, and leaves scores and rows.

    Every process must call it: each computes all, for one that waited long would give up; process 0 writes. ``job``:
    with the labels in the order of the model's.
    """
    if job.validation is None:
        return
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices("model written")
    with _only_warns(f"{workdir / records.EVALUATION}: cannot be made"):
        model = LoadedModel(hugging_face.load_model_directory(workdir / run_directory.MODEL))
        evaluator = tasks.module_of(config.task, "evaluate").EVALUATOR(model, {}, config.batch_size)
        evaluation = evaluator.evaluate(job.validation)
        if jax.process_index() == 0:
            compared = {"baseline": scores, "baseline_is": job.compared_with} if (scores := baseline()) else {}
            values = {"task": config.task, "step": step, "unit": job.unit, **compared, **evaluation.values}
            records.write_evaluation(workdir, values, evaluation.losses, evaluation.row_of, evaluation.also_kept)
            model.extra[model_card.KEY] = card_facts.with_intervals(model.extra.get(model_card.KEY) or {}, values)
            inference.save(model, workdir / run_directory.MODEL)  # the same weights, with the card


def write_scores(
    workdir: pathlib.Path, task: str, step: int, metrics: Metrics, baseline: Mapping[str, float], **more: Any
) -> None:
    """Leaves the scores of a run whose rows are not scored one by one; on process 0."""
    scores = {name: {"value": value, "reason": None} for name, value in metrics.items()}
    with _only_warns(f"{workdir / records.EVALUATION}: cannot be written"):
        records.write_evaluation(workdir, {"task": task, "step": step, "scores": scores, "baseline": baseline, **more})


def write_report(workdir: pathlib.Path) -> None:
    """Writes the report of the run, or of the runs of several seeds, in a folder; on process 0."""
    if jax.process_index() != 0:
        return
    path = workdir / records.REPORT
    with _only_warns(f"{path}: cannot be written"):
        from bert.reports import page  # only at the end

        page.write(runs.read_all([str(workdir)]), path, runtime.user_cache())
