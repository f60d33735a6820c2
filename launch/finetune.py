"""Fine-tunes a model on labelled examples: texts and pairs, answers to questions, tags of words.

bert finetune --config=table --config.data=my.csv --config.text=review --config.label=stars --config.init_from=DIR
    --workdir=runs/mine
bert finetune --config=tagging --config.data=train.conll --config.init_from=DIR --workdir=runs/tagger
bert finetune --config=glue:mrpc --config.data=MRPC/ --config.init_from=DIR --config.seeds=5 --workdir=runs/mrpc

Questions on passages: --config=bio_mrc or --config=squad. Run the same command again to resume at the newest
checkpoint. SIGTERM and Ctrl-C save first.
"""

import functools
import json
import math
import pathlib
import shutil
from collections.abc import Callable

import jax
from ml_collections import ConfigDict

import tasks
from bert import config_fields, files
from bert.errors import InputError, cannot_write, check_range, printable
from bert.interop import export
from bert.progress import waiting
from bert.training import optim, run_directory, trackers
from bert.training.best import Best
from bert.training.evaluate import Metrics
from launch import best_model, command_line, flags, run_records, runtime, score_tables
from launch.finetuning_job import FinetuningJob
from launch.runs import check_warmup_share, run_job
from tasks.job import ExamplesJob, as_begun

OPTIONS = runtime.OPTIONS
Baseline = Callable[[], Metrics]


def run(argv: list[str]) -> None:
    config, options = flags.parse(argv, __doc__, OPTIONS, ("workdir",), config_file=None)
    workdir = pathlib.Path(options.workdir)
    if "task" in flags.overridden(argv):
        others = "configs/table.py, configs/squad.py or configs/tagging.py"
        raise InputError(f"config.task belongs to the file of settings; choose another by --config=, such as {others}")
    module = tasks.module_of(config.get("task", ""), "job")
    flags.check_fields(config, module.CONFIG)
    flags.keep_one(argv, config, "steps", "epochs")
    check_settings(config)
    # Read before anything is set up or shown: what is wrong with the data is then the one line that is seen.
    first = workdir if config.seeds == 1 else workdir / f"seed-{config.seed}"
    begun = run_directory.read(first) if (first / run_directory.CONFIG).exists() else None
    with waiting(f"reading {config.data}"):
        job = as_begun(module.read, config, begun)
    if job.choice is None:
        check_nothing_is_chosen(config)
    cache, lost_after = workdir / run_directory.CACHE, config.mesh.lost_after
    runtime.start(allocator=config.allocator, cache=cache, options=options, lost_after=lost_after)
    if jax.process_index() == 0:
        command_line.show(config, options, (first if config.seeds == 1 else workdir / "seed-*") / run_directory.CONFIG)
    runtime.say(job.report)
    if config.validation and pathlib.Path(config.validation).resolve() == pathlib.Path(config.data).resolve():
        runtime.say("validation uses the training file, so its scores do not measure generalisation")
    baseline = functools.cache(job.baseline)  # fitted once, for all seeds
    train = one_run if config.seeds == 1 else several_runs
    scores = train(config, job, workdir, config.seed, baseline)
    score_tables.show_scores(scores, job, baseline() if scores else {})
    runtime.say(printable(f"wrote {workdir / run_directory.MODEL}/ (the model), {workdir / run_directory.METRICS}"))


def check_settings(config: ConfigDict) -> None:
    """Refuses numbers that no other part of the program checks, before anything is read."""
    config_fields.build(optim.OptimizerSettings, config.optimizer, total_steps=1)  # refuses what it does not take
    trackers.check(config.tracker)
    check_range("config.seeds", config.seeds, at_least=1)
    check_range("config.seed", config.seed, at_least=0, at_most=2**32 - config.seeds)
    if config.steps is None:
        check_range("config.epochs", config.epochs, above=0, below=math.inf)
    else:
        check_range("config.steps", config.steps, at_least=1)
    check_warmup_share(config)
    check_range("config.label_smoothing", config.label_smoothing, at_least=0, below=1)
    for name, least in (("evaluations_per_epoch", 1), ("patience", 0), ("micro_batches", 1)):
        check_range(f"config.{name}", config[name], at_least=least)
    check_range("config.max_length", config.max_length, at_least=3, hint=", for [CLS], a token and [SEP]")


def check_nothing_is_chosen(config: ConfigDict) -> None:
    """Refuses settings that choose a run or an evaluation, where nothing is evaluated."""
    for name, without in (("seeds", 1), ("patience", 0), ("metric", "")):
        if config[name] != without:
            way_out = f"give config.validation or config.validation_share, or leave config.{name} out"
            raise InputError(f"config.{name} is {config[name]!r}, but no example is held out to choose by; {way_out}")


def one_run(config: ConfigDict, job: ExamplesJob, workdir: pathlib.Path, seed: int, baseline: Baseline) -> Metrics:
    """Trains with one seed in one folder; the metrics of its best evaluation (empty where there was none)."""
    training = FinetuningJob(config, job, seed)
    best = run_job(training, workdir)
    scores = best_model.metrics_of(workdir, best.step)
    run_records.evaluate_examples(workdir, config, training.examples, best.step, baseline)
    run_records.write_report(workdir)
    return scores


def several_runs(
    config: ConfigDict, job: ExamplesJob, workdir: pathlib.Path, first: int, baseline: Baseline
) -> Metrics:
    """A run for each seed in a folder of its own; their mean, deviation and best, whose model and metrics it gives."""
    export.check_replaceable(workdir / run_directory.MODEL)
    workdir.mkdir(parents=True, exist_ok=True)
    runs: dict[int, Metrics] = {}
    for seed in range(first, first + config.seeds):
        runtime.say(f"\nseed {seed}")
        runs[seed] = one_run(config, job, workdir / f"seed-{seed}", seed, baseline)
    if jax.process_index() != 0:
        return {}
    assert job.choice is not None  # `run` refuses several seeds without one
    best = Best()  # of the runs, by the rule that chooses among the evaluations of one
    for seed, scores in runs.items():
        job.choice.note(best, seed, scores)
    score_tables.show_seeds(runs, best.step, job)
    with files.replacing((workdir / run_directory.MODEL).resolve()) as target:
        shutil.copytree(workdir / f"seed-{best.step}" / run_directory.MODEL, target, dirs_exist_ok=True)
    log = workdir / run_directory.METRICS
    try:
        files.write(log, "".join(json.dumps({"seed": seed} | scores) + "\n" for seed, scores in runs.items()))
    except OSError as error:
        raise cannot_write(log, error) from None
    run_records.write_report(workdir)
    return runs[best.step]


if __name__ == "__main__":
    flags.main(run)
