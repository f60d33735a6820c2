"""One training run, from its settings to its model. Pretraining and fine-tuning differ only in their jobs."""

import abc
import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from ml_collections import ConfigDict

from bert import config_fields
from bert.architectures import ModelConfig
from bert.errors import InputError, check_range
from bert.interop import export, model_card
from bert.reports import records
from bert.tokenizer.tokenizer import Tokenizer
from bert.training import run_directory, sharding, trackers, train
from bert.training.best import Best, Choice
from bert.training.evaluate import Metrics
from bert.types import Params
from launch import best_model, card_facts, flags, peers, run_records, runtime


class Start(NamedTuple):
    """What a run starts from. Without ``params`` they come from its newest checkpoint, else they are drawn."""

    config: ModelConfig
    tokenizer: Tokenizer | None  # None of a model that reads no texts
    params: Params | None
    labels: tuple[str, ...] = ()


class TrainingJob(abc.ABC):
    """What a command trains: its data, its settings, and what it prints and writes beside the model."""

    config: ConfigDict
    config_file: str  # in the checkout, with the defaults of the settings
    may_change: tuple[str, ...]  # settings, or sections with a dot behind them, that do not change what is trained
    seed: int
    fingerprint: str  # checksum of the data
    choice: Choice | None = None  # which evaluation is the model; None: the last state is

    @abc.abstractmethod
    def start(self, workdir: pathlib.Path) -> Start:
        """The model that the settings name, or that of the run in ``workdir``."""

    @abc.abstractmethod
    def run(self, start: Start, workdir: pathlib.Path) -> train.Run:
        """The run that the settings describe, but for how its best evaluation is kept; called before it is recorded."""

    @abc.abstractmethod
    def model_keys(self, step: int, scores: Metrics) -> dict[str, Any]:
        """Keys of the model's config.json; ``scores``: of the evaluation that chose it, if any."""

    @abc.abstractmethod
    def card(self, scores: Metrics) -> dict[str, Any]:
        """Data and scores for the model card (card_facts.py)."""

    def recorded(self) -> dict[str, Any]:
        """What the run's config.json holds beside the settings, the encoder and the checksum of the data."""
        return {}

    @property
    @abc.abstractmethod
    def data_report(self) -> str:
        """What was read, kept and dropped, for people."""

    @abc.abstractmethod
    def show(self, start: Start, run: train.Run, outcome: train.Outcome) -> None:
        """Prints what a user should know of how the run ended. Without a ``choice``, parameters are on this host."""


def check_warmup_share(config: ConfigDict) -> None:
    """Refuses a share of the steps that is none, or that the schedule wsd needs for its decay."""
    decay = config.optimizer.decay_share if config.optimizer.schedule == "wsd" else 0
    hint = ", what optimizer.decay_share leaves" if decay else ""
    check_range("config.warmup_share", config.warmup_share, at_least=0, at_most=max(0, round(1 - decay, 9)), hint=hint)


def refuse_new_start(workdir: pathlib.Path, *, ended: bool) -> None:
    """Refuses to train anew where a run has lost its checkpoints: what it has left would be replaced step by step."""
    if ended or records.has_ended(workdir):
        what = (
            f"the run here has ended, but its {run_directory.CHECKPOINTS}/ are gone, so it would begin again at step 0"
        )
        way_out = "start in another folder, which gives the same model, or put them back"
        raise InputError(f"{workdir}: {what} and replace its model and log; {way_out}")


def run_job(job: TrainingJob, workdir: pathlib.Path, report: Callable[[], None] = lambda: None) -> Best:
    """Trains in a run directory, or resumes the run there, and writes its ``model/``; the best evaluation.

    ``report`` is called on process 0 when the settings have been checked. A run that a signal stops has saved its
    state; the process then ends with 128 + the signal's number.
    """
    model_directory = workdir / run_directory.MODEL
    check_range("config.mesh.stuck_after", job.config.mesh.stuck_after, at_least=1)
    with run_directory.locked(workdir), contextlib.ExitStack() as stack:
        stack.enter_context(peers.watching(job.config.mesh.stuck_after))
        if not (job.choice and best_model.lacks_files(model_directory)):
            export.check_replaceable(model_directory)
        start = job.start(workdir)
        settings = config_fields.flatten(job.config) | {
            "seed": job.seed,
            run_directory.DATA: job.fingerprint,
            "encoder": start.config.to_json(),
            **job.recorded(),
        }
        run_directory.agree(settings)
        defaults = flags.defaults(job.config_file)
        resumes = run_directory.check(workdir, settings, may_change=job.may_change, defaults=defaults)
        if resumes:
            if not run_directory.has_checkpoints(workdir):
                # Of a run without a choice, model/ is of its end; of others, it may be older than any checkpoint.
                refuse_new_start(workdir, ended=not job.choice and model_directory.exists())
                runtime.say("notice: no checkpoint of this run is here, so it begins again at step 0")
            # It began with the weights that its first start named.
            settings["init_from"] = run_directory.read(workdir).get("init_from", settings["init_from"])
        if jax.process_index() == 0:
            report()

        def write_model(step: int, params: Params, scores: Metrics) -> None:  # parameters that are on this host
            if jax.process_index() == 0:
                facts = card_facts.training(settings, workdir, step) | job.card(scores)
                extra = job.model_keys(step, scores) | {model_card.KEY: facts}
                keys: dict[str, Any] = {"labels": start.labels, "extra": extra}
                export.save_model_directory(model_directory, start.config, params, start.tokenizer, **keys)

        def gather_and_write(step: int, params: Params, scores: Metrics) -> None:
            write_model(step, sharding.on_this_host(params), scores)

        run = job.run(start, workdir)
        if job.choice:
            run = dataclasses.replace(run, choose=job.choice, on_best=gather_and_write)
        total = run.settings.total_steps
        train.refuse_beyond(run_directory.newest_step(workdir), total)
        run_directory.write(workdir, settings, start.tokenizer)
        run_records.note_start(workdir, job.config, job.data_report, job.choice)
        tracker = job.config.tracker if jax.process_index() == 0 else ""
        stack.enter_context(trackers.following(tracker, workdir))
        if job.choice:
            best_model.bring_back(workdir, write_model)
        outcome = train.fit(run, start.params)
        step = int(outcome.state.step)
        if outcome.stopped_by:
            runtime.say(f"stopped at step {step} of {total}; run the same command again to resume")
            sys.exit(128 + outcome.stopped_by)
        if not job.choice:
            params = sharding.on_this_host(outcome.state.model_params)
            write_model(step, params, outcome.metrics)
            outcome = dataclasses.replace(outcome, state=dataclasses.replace(outcome.state, params=params))
    job.show(start, run, outcome)
    return outcome.best
