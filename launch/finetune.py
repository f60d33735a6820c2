"""Fine-tunes a model on labelled examples: texts and pairs, answers to questions, tags of words.

python -m launch.finetune --config=configs/glue.py:mrpc --config.data=MRPC/ --config.init_from=DIR --workdir=runs/mrpc
python -m launch.finetune --config=configs/table.py --config.data=my.csv --config.text=review --config.label=stars
    --config.init_from=DIR --workdir=runs/mine
python -m launch.finetune --config=configs/bio_mrc.py --config.data=questions.jsonl --config.init_from=DIR ...
python -m launch.finetune --config=configs/squad.py --config.data=train-v1.1.json --config.init_from=DIR ...
python -m launch.finetune --config=configs/tagging.py --config.data=train.conll --config.init_from=DIR ...

Running the same command again goes on where the newest checkpoint stands. SIGTERM and Ctrl-C save first.
"""

import dataclasses
import functools
import importlib
import json
import math
import pathlib
import shutil
import sys
from typing import Any

import jax
from ml_collections import ConfigDict

from bert import config_fields, files
from bert.architectures.bert import BertConfig
from bert.data.encoded_examples import ExampleSettings, TrainingBatches
from bert.errors import InputError, cannot_write, printable
from bert.inference import TASKS
from bert.interop import export, sources
from bert.model.heads import Model
from bert.prediction.scores import Devices
from bert.tokenizer.tokenizer import Tokenizer
from bert.training import arithmetic, optim, run_directory, sharding, train
from bert.training.best import Best
from bert.training.evaluate import Metrics
from bert.training.step import Setup
from bert.types import Params
from launch import best_model, flags, runtime, score_tables
from tasks.job import Job, as_begun
from tasks.metrics.classification_metrics import title

# Settings that do not change what is trained. What `kind` decides is compared by itself (targets, labels, "extra").
MAY_CHANGE = (
    "data", "validation", "kind", "init_from", "log_every", "keep_checkpoints", "stop_after_skips", "allocator",
    "baseline", "mesh.", "model.layer_loop", "model.remat", "model.attention",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Start:
    """What a run starts from: sizes, vocabulary, and parameters (None: they come from its newest checkpoint)."""

    config: BertConfig
    tokenizer: Tokenizer
    labels: tuple[str, ...]
    params: Params | None


def run(argv: list[str]) -> None:
    config, options = flags.parse(
        argv,
        doc=__doc__ or "",
        config_file=None,
        options={"workdir": "folder of the run", **runtime.PROCESS_OPTIONS},
        required=("workdir",),
    )
    workdir = pathlib.Path(options.workdir)
    if "task" in flags.overridden(argv):
        raise InputError(
            "config.task belongs to the file of settings; choose another by --config=, such as configs/table.py, "
            "configs/squad.py or configs/tagging.py"
        )
    task = config.get("task", "")
    if task not in TASKS:
        raise InputError(f"config.task is {task!r}; it must be one of {', '.join(TASKS)}, as in configs/table.py")
    flags.check_fields(config, f"configs/{'table' if task == 'classification' else task}.py")
    check_settings(config)
    # Read before anything is set up or shown: what is wrong with the data is then the one line that is seen.
    first = workdir if config.seeds == 1 else workdir / f"seed-{config.seed}"
    begun = run_directory.read(first) if (first / run_directory.CONFIG).exists() else None
    job = as_begun(importlib.import_module(f"tasks.{config.task}.job").read, config, begun)
    if config.seeds > 1 and job.choice is None:
        raise InputError(
            f"config.seeds is {config.seeds}, but no example is held out, so none of the runs can be chosen; give "
            "config.validation or config.validation_share, or train with one seed"
        )
    runtime.start(allocator=config.allocator, cache=workdir / run_directory.CACHE, options=options)
    if jax.process_index() == 0:
        flags.show(config, options)
    runtime.say(job.report)
    if config.validation and pathlib.Path(config.validation).resolve() == pathlib.Path(config.data).resolve():
        runtime.say("validation uses the training file, so its scores do not measure generalisation")
    if config.seeds == 1:
        score_tables.show_scores(one_run(config, job, workdir, config.seed), config.task, job)
    else:
        several_runs(config, job, workdir)
    runtime.say(printable(f"wrote {workdir / run_directory.MODEL}/ (the model), {workdir / run_directory.METRICS}"))


def check_settings(config: ConfigDict) -> None:
    """Refuses numbers that no other part of the program checks, before anything is read."""
    if config.seeds < 1:
        raise InputError(f"config.seeds is {config.seeds}; it must be at least 1")
    if not 0 <= config.seed <= 2**32 - config.seeds:
        raise InputError(f"config.seed is {config.seed}; it must be from 0 to {2**32 - config.seeds:,}")
    if not 0 < config.epochs < math.inf:
        raise InputError(f"config.epochs is {config.epochs}; it must be above 0 and finite")
    if not 0 <= config.warmup_share <= 1:
        raise InputError(f"config.warmup_share is {config.warmup_share}; it must be from 0 to 1")
    if config.evaluations_per_epoch < 1 or config.patience < 0:
        raise InputError("config.evaluations_per_epoch must be at least 1, and config.patience at least 0")
    if config.micro_batches < 1:
        raise InputError(f"config.micro_batches is {config.micro_batches}; it must be at least 1")
    if config.max_length < 3:
        raise InputError(f"config.max_length is {config.max_length}; an example needs 3 tokens, with [CLS] and [SEP]")
    optim.OptimizerSettings(total_steps=1, **config.optimizer)  # refuses what it does not take


def one_run(config: ConfigDict, job: Job, workdir: pathlib.Path, seed: int) -> Metrics:
    """Trains with one seed in one folder; the metrics of its best evaluation (empty where there was none)."""
    with run_directory.locked(workdir):
        if not best_model.lacks_files(workdir / run_directory.MODEL):
            export.check_replaceable(workdir / run_directory.MODEL)
        start = starting_point(config, job, workdir, seed)
        job = job.with_labels(start.labels)
        settings = config_fields.flatten(config) | {
            "seed": seed,
            "data_sha256": job.fingerprint,
            "encoder": start.config.to_json(),
            "labels": list(job.labels),
            "extra": job.extra({}),
        }
        run_directory.agree(settings)
        run_directory.check(workdir, settings, may_change=MAY_CHANGE)
        planned = build(config, job, start, workdir, seed)
        run_directory.write(workdir, settings, start.tokenizer)
        best_model.bring_back(workdir, functools.partial(write_model, workdir, start, job))
        outcome = train.fit(planned, start.params)
        if outcome.stopped_by:
            done = f"step {int(outcome.state.step)} of {planned.settings.total_steps}"
            runtime.say(f"stopped at {done}; run the same command again to go on")
            sys.exit(128 + outcome.stopped_by)
        if job.choice and outcome.best.stopped and int(outcome.state.step) < planned.settings.total_steps:
            better = f"no better {title(job.choice.metric, job.positive)}, nor a lower {job.choice.loss} at the same"
            runtime.say(f"stopped early: {better}, in {job.choice.patience} evaluations")
        if skipped := int(outcome.state.skipped):
            steps = int(outcome.state.step)
            runtime.say(f"{skipped:,} of {steps:,} steps were skipped, for loss or gradient was not finite")
        if job.choice and outcome.best.step >= 0 and outcome.best.value is None:
            undefined = f"{title(job.choice.metric, job.positive)} was undefined in every evaluation"
            runtime.say(
                f"{undefined}; model/ is of step {outcome.best.step}, the first with the lowest {job.choice.loss}"
            )
        if planned.on_best and not job.choice:  # nothing was evaluated, so the last state is the model
            planned.on_best(int(outcome.state.step), outcome.state.params, {})
        return best_model.metrics_of(workdir, outcome.best.step)


def write_model(workdir: pathlib.Path, start: Start, job: Job, step: int, params: Params, scores: Metrics) -> None:
    """Writes ``model/`` with parameters that are whole on this host; process 0 does."""
    if jax.process_index() == 0:
        model_directory = workdir / run_directory.MODEL
        extra = job.extra(scores) | {"finetuning": {"step": step}}
        export.save_model_directory(
            model_directory, start.config, params, start.tokenizer, labels=job.labels, extra=extra
        )


def starting_point(config: ConfigDict, job: Job, workdir: pathlib.Path, seed: int) -> Start:
    """The model that ``init_from`` names with a head for these labels; of a run that goes on its own."""
    changes: dict[str, Any] = dict(config.model.items())
    if run_directory.has_checkpoints(workdir):
        found, kept = sources.run_encoder(workdir), run_directory.read(workdir).get("labels", [])
        tokenizer = run_directory.read_tokenizer(workdir)
        return Start(dataclasses.replace(found, **changes), tokenizer, known_labels(job, kept), None)
    if not config.init_from:
        raise InputError("config.init_from is missing; name a model directory, a run, or a Google checkpoint")
    loaded = sources.read(config.init_from, fresh=job.fresh, labels=job.labels, seed=seed)
    if loaded.tokenizer is None:
        raise InputError(f"{config.init_from}: has no vocabulary, so it cannot read texts; put its vocab.txt there")
    if config.max_length > loaded.config.max_position_embeddings:
        raise InputError(
            f"config.max_length is {config.max_length}, but {config.init_from} has "
            f"{loaded.config.max_position_embeddings} positions; lower it"
        )
    head = {part: loaded.params["head"][part] for part in job.fresh}
    params = {"encoder": loaded.params["encoder"], "head": head}
    return Start(dataclasses.replace(loaded.config, **changes), loaded.tokenizer, loaded.labels, params)


def known_labels(job: Job, kept: list[str]) -> tuple[str, ...]:
    """The labels that a run was started with, where they are the job's; else the job's (and the check refuses them)."""
    return tuple(kept) if sorted(kept) == sorted(job.labels) else job.labels


def build(config: ConfigDict, job: Job, start: Start, workdir: pathlib.Path, seed: int) -> train.Run:
    """The run that the settings describe."""
    mesh = sharding.make_mesh(config.mesh.mode, config.mesh.model_devices)
    unit = mesh.shape["data"] * config.micro_batches
    settings = ExampleSettings(config.batch_size, config.max_length, config.packed, seed, unit)
    batches = job.batches(start.tokenizer, settings)
    total = math.ceil(config.epochs * batches.steps_per_epoch)
    optimizer = optim.OptimizerSettings(
        total_steps=total, warmup_steps=round(config.warmup_share * total), **config.optimizer
    )
    if optimizer.frozen_layers > start.config.num_layers:
        raise InputError(
            f"config.optimizer.frozen_layers is {optimizer.frozen_layers}, but the model has {start.config.num_layers} "
            "layers; lower it"
        )
    task = job.task(start.config)
    model = Model(start.config, task.head(start.config))
    setup = Setup(model, task, optimizer, mesh, config.mesh.mode, config.micro_batches, seed)
    every = max(1, batches.steps_per_epoch // config.evaluations_per_epoch)
    timing = {name: config[name] for name in ("log_every", "keep_checkpoints", "stop_after_skips")}
    loop = train.LoopSettings(total_steps=total, evaluate_every=every, save_every=every, **timing)
    runtime.say(f"{batches.steps_per_epoch:,} steps an epoch, {total:,} in all; {describe(batches)}")
    evaluate = None
    if job.choice is not None:
        evaluate = job.evaluator(start.tokenizer, start.config, settings, on_mesh(mesh))

    def keep(step: int, params: Any, scores: Metrics) -> None:
        write_model(workdir, start, job, step, sharding.on_this_host(params), scores)

    flops = arithmetic.training_flops_per_token(start.config, config.max_length, 0)
    titled = functools.partial(title, positive=job.positive)
    return train.Run(setup, loop, workdir, host_rows(batches), evaluate, flops, job.choice, keep, titled)


def host_rows(batches: TrainingBatches):
    """Batch number -> this process's rows of it."""
    return lambda number: _rows_of_this_process(batches(number))


def on_mesh(mesh: jax.sharding.Mesh) -> Devices:
    return Devices(lambda batch: sharding.place(_rows_of_this_process(batch), mesh), sharding.on_this_host)


def _rows_of_this_process(batch: dict) -> dict:
    return {name: value[sharding.host_rows(len(value))] for name, value in batch.items()}


def describe(batches: TrainingBatches) -> str:
    """How full the rows of the first batch are."""
    batch = batches(0)
    tokens = int((batch["example_ids"] > 0).sum())
    B, T = batch["example_ids"].shape
    return f"the first batch has {tokens:,} tokens in {B} rows of {T} ({tokens / (B * T):.0%} full)"


def several_runs(config: ConfigDict, job: Job, workdir: pathlib.Path) -> None:
    """A run for each seed in a folder of its own, their mean, deviation and best, and the best one's model."""
    export.check_replaceable(workdir / run_directory.MODEL)
    workdir.mkdir(parents=True, exist_ok=True)
    runs: dict[int, Metrics] = {}
    for seed in range(config.seed, config.seed + config.seeds):
        runtime.say(f"\nseed {seed}")
        runs[seed] = one_run(config, job, workdir / f"seed-{seed}", seed)
    if jax.process_index() != 0:
        return
    assert job.choice is not None  # `run` sees to it
    best = Best()  # of the runs, by the rule that chooses among the evaluations of one
    for seed, scores in runs.items():
        job.choice.note(best, seed, scores)
    score_tables.show_seeds(runs, best.step, config.task, job)
    with files.replacing((workdir / run_directory.MODEL).resolve()) as target:
        shutil.copytree(workdir / f"seed-{best.step}" / run_directory.MODEL, target, dirs_exist_ok=True)
    lines = [json.dumps({"seed": seed} | scores) for seed, scores in runs.items()]
    try:
        files.write(workdir / run_directory.METRICS, "\n".join(lines) + "\n")
    except OSError as error:
        raise cannot_write(workdir / run_directory.METRICS, error) from None
    score_tables.show_scores(runs[best.step], config.task, job)


if __name__ == "__main__":
    flags.main(run)
