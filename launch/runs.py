"""One training run, from its settings to its model. Pretraining and fine-tuning differ in their jobs only."""

import abc
import concurrent.futures
import pathlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from bert import config_fields
from bert.architectures.bert import BertConfig
from bert.interop import export
from bert.types import Params
from bert.model.heads import Model
from bert.tokenizer.tokenizer import Tokenizer
from bert.training import run_directory, sharding, train
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from bert.training.optim import OptimizerSettings
from bert.training.step import Setup
from bert.training.task import Task
from launch import best_model, runtime


class Start(NamedTuple):
    """What a run starts from. Without ``params`` they come from its newest checkpoint, else they are drawn."""

    config: BertConfig
    tokenizer: Tokenizer
    params: Params | None
    labels: tuple[str, ...] = ()


class Plan(NamedTuple):
    """What is trained on which batches, how long and how; see `train.Run`."""

    model: Model
    task: Task
    optimizer: OptimizerSettings
    timing: train.LoopSettings
    train_batch: Callable[[int], dict[str, np.ndarray]]
    evaluate: Callable[[Params], Metrics] | None
    flops_per_token: float


class Result(NamedTuple):
    start: Start
    run: train.Run
    outcome: train.Outcome


class TrainingJob(abc.ABC):
    """What a command trains: its data, its settings, and what it prints and writes beside the model."""

    config: ConfigDict
    may_change: tuple[str, ...]  # settings, or sections with a dot behind them, that do not change what is trained
    choice: Choice | None = None  # which evaluation is the model; None: the last state is
    data_check: concurrent.futures.Future[None] | None = None

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    @abc.abstractmethod
    def fingerprint(self) -> str:
        """Checksum of the data."""

    @abc.abstractmethod
    def start(self, workdir: pathlib.Path) -> Start:
        """The model that the settings name, or that of the run in ``workdir``."""

    @abc.abstractmethod
    def plan(self, start: Start, mesh: Mesh) -> Plan:
        """Batches, optimizer, number of steps."""

    @abc.abstractmethod
    def model_keys(self, step: int, scores: Metrics) -> dict[str, Any]:
        """Keys of the model's config.json; ``scores``: of the evaluation that chose it, if any."""

    def recorded(self) -> dict[str, Any]:
        """What the run's config.json holds beside the settings, the encoder and the checksum of the data."""
        return {}

    def title(self, metric: str) -> str:
        """How the progress shows a metric."""
        return metric

    def before(self, run: train.Run, start: Start, *, resumes: bool) -> None:
        """Called when all is checked and before anything is trained."""


def run_job(job: TrainingJob, workdir: pathlib.Path, report: Callable[[], None] = lambda: None) -> Result:
    """Trains in a run directory, or resumes the run there, and writes its ``model/``; how that ended.

    A run that a signal stops has saved its state; the process then ends with 128 + the signal's number.

    Args:
      report: called when the settings have been checked.
    """
    model_directory = workdir / run_directory.MODEL
    with run_directory.locked(workdir):
        if not (job.choice and best_model.lacks_files(model_directory)):
            export.check_replaceable(model_directory)
        start = job.start(workdir)
        settings = config_fields.flatten(job.config) | {
            "seed": job.seed,
            "data_sha256": job.fingerprint,
            "encoder": start.config.to_json(),
            **job.recorded(),
        }
        run_directory.agree(settings)
        resumes = run_directory.check(workdir, settings, may_change=job.may_change)
        report()

        def write_model(step: int, params: Params, scores: Metrics) -> None:
            params = sharding.on_this_host(params)
            if jax.process_index() == 0:
                keys = job.model_keys(step, scores)
                labels = start.labels
                export.save_model_directory(
                    model_directory, start.config, params, start.tokenizer, labels=labels, extra=keys
                )

        run = _wired(job, start, workdir, write_model)
        total = run.settings.total_steps
        train.refuse_beyond(run_directory.newest_step(workdir), total)
        run_directory.write(workdir, settings, start.tokenizer)
        if job.choice:
            best_model.bring_back(workdir, write_model)
        job.before(run, start, resumes=resumes)
        outcome = train.fit(run, start.params)
        step = int(outcome.state.step)
        if outcome.stopped_by:
            runtime.say(f"stopped at step {step} of {total}; run the same command again to resume")
            sys.exit(128 + outcome.stopped_by)
        if not job.choice:
            write_model(step, outcome.state.params, {})
        return Result(start, run, outcome)


def _wired(
    job: TrainingJob, start: Start, workdir: pathlib.Path, write_model: Callable[[int, Params, Metrics], None]
) -> train.Run:
    settings = job.config
    mesh = sharding.make_mesh(settings.mesh.mode, settings.mesh.model_devices)
    plan = job.plan(start, mesh)
    setup = Setup(plan.model, plan.task, plan.optimizer, mesh, settings.mesh.mode, settings.micro_batches, job.seed)
    return train.Run(
        setup,
        plan.timing,
        workdir,
        plan.train_batch,
        plan.evaluate,
        plan.flops_per_token,
        job.choice,
        write_model if job.choice else None,
        job.title,
        job.data_check,
    )
