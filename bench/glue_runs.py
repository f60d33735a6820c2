"""Runs on tasks of GLUE: training rows, settings, scores on the dev set, and the cells of a table of systems."""

import pathlib
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bench import commands
from bench.cells import CellFile
from bert.errors import InputError, check_choice
from bert.json_files import read_object
from bert.progress import clock
from tasks.classification import glue
from tasks.classification.glue_tasks import TASKS

EPOCHS, BATCH, LENGTH, WARMUP, DECAY = 3, 32, 128, 0.1, 0.01
SMALL = ("sst2", "cola", "stsb", "mrpc", "rte")
TUNING_SEED = 0  # of the runs that choose the learning rate, none of which is reported
Scores = dict[str, float | None]
Train = Callable[[str, float | None, int], Scores]


class Column(NamedTuple):
    """A column of GLUE's table: a score on a dev set. Metrics as in Wang et al. 2018."""

    title: str
    task: str
    metric: str
    split: str = "validation"


COLUMNS = (
    Column("MNLI-m", "mnli", "accuracy"),
    Column("MNLI-mm", "mnli", "accuracy", "validation_mismatched"),
    Column("QQP", "qqp", "f1"),
    Column("QNLI", "qnli", "accuracy"),
    Column("SST-2", "sst2", "accuracy"),
    Column("CoLA", "cola", "matthews"),
    Column("STS-B", "stsb", "spearman"),
    Column("MRPC", "mrpc", "f1"),
    Column("RTE", "rte", "accuracy"),
)


class System(NamedTuple):
    """A row of a table. ``train(task, rate, seed)`` gives the score of each column of the task, None if undefined.

    rates: learning rates to choose from; (None,): the task's own. seeds: how many runs are reported.
    """

    name: str
    train: Train
    rates: Sequence[float | None]
    seeds: int


def columns_of(task: str) -> list[Column]:
    return [column for column in COLUMNS if column.task == task]


def check_tasks(names: Sequence[str], data: str) -> None:
    """Raises InputError for a name that is no task of the table, and for a task whose files are not all there."""
    for name in names:
        check_choice("--tasks: a name", name, tuple(dict.fromkeys(column.task for column in COLUMNS)))
        for split in ("train", *(column.split for column in columns_of(name))):
            glue.files_found(name, data, split)


def sampled(task: str, data: str, rows: int, folder: pathlib.Path) -> pathlib.Path:
    """``folder`` with GLUE's files of a task: all labelled parts, of the training rows a random sample (seed 0)."""
    known = TASKS[task]
    layout, written = known.layouts[0], known.written
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", *(column.split for column in columns_of(task))):
        chosen = glue.read(task, data, split).rows
        if split == "train" and len(chosen) > rows:
            chosen = random.Random(0).sample(chosen, rows)
        lines = ["\t".join([*layout.text, layout.label])]
        for row in chosen:
            label = row["label"] or "-"
            lines.append("\t".join([*(row[name] for name in known.text), written.get(label, label)]))
        (folder / known.files[split][0][0]).write_text("\n".join([*lines, ""]))
    return folder


def settings(task: str, data: str | pathlib.Path, init_from: str, seed: int, rate: float | None) -> list[str]:
    """The recipe: that of the BERT paper; ``rate`` None: the task's own learning rate of configs/glue.py."""
    return [
        f"--config=configs/glue.py:{task}", f"--config.data={data}", f"--config.init_from={init_from}",
        f"--config.seed={seed}", f"--config.epochs={EPOCHS}", f"--config.batch_size={BATCH}",
        f"--config.max_length={LENGTH}", f"--config.warmup_share={WARMUP}", f"--config.optimizer.weight_decay={DECAY}",
        *([] if rate is None else [f"--config.optimizer.learning_rate={rate}"]),
    ]  # fmt: skip


def last_evaluation(words: Sequence[str], workdir: str) -> Scores:
    """Fine-tunes; the scores of the last evaluation, not of the best, so that the dev set chooses nothing."""
    commands.run("finetune", *words, f"--workdir={workdir}")
    last = commands.log_of(workdir, "validation")[-1]
    return {name: value for name, value in last.items() if name not in ("step", "split")}


def finetuned(task: str, data: str | pathlib.Path, init_from: str, seed: int, rate: float | None) -> Scores:
    """Title of each column of a task -> score of a model that starts from ``init_from``.

    A second dev set, MNLI's mismatched one, is scored by the model that the run keeps: that of the evaluation with the
    best score on the first.
    """
    with tempfile.TemporaryDirectory() as folder:
        logged = last_evaluation(settings(task, data, init_from, seed, rate), f"{folder}/run")
        scores = Scores()
        for column in columns_of(task):
            if column.split == "validation":
                scores[column.title] = logged[column.metric]
            else:
                file = f"{folder}/{column.split}.json"
                words = (f"--data={data}", f"--split={column.split}", f"--metrics={column.metric}", f"--out={file}")
                commands.run("evaluate", f"--model={folder}/run", *words)
                scores[column.title] = read_object(pathlib.Path(file))["scores"][column.metric]["value"]
        return scores


def fill(cells: CellFile, systems: Sequence[System], tasks: Sequence[str]) -> None:
    """Computes the cells that are not finished. Where there are several rates, a run each with `TUNING_SEED` chooses.

    After each cell, a line says what it gave, and how long the others will take if they are as slow as those before.
    """
    planned = [(system, task, *run) for system in systems for task in tasks for run in _runs(system)]
    for position, (system, task, rate, seed) in enumerate(planned, 1):
        if seed != TUNING_SEED:
            rate = chosen_rate(cells, system, task)
        keys: dict[str, Any] = {"system": system.name, "task": task, "rate": rate, "seed": seed}
        if cells.find(**keys):
            continue
        started = time.perf_counter()
        scores = system.train(task, rate, seed)
        cells.add({**keys, "seconds": time.perf_counter() - started, "scores": scores})
        run, left = f"{position} of {len(planned)}", clock(_seconds_left(cells, planned[position:]))
        print(f"{run}: {system.name}, rate {rate}, seed {seed}: {scores}; {left} left", flush=True)


def _seconds_left(cells: CellFile, planned: Sequence[tuple[System, str, Any, int]]) -> float:
    """Of runs that take as long as the others of their system and task, or of their system, or of all."""

    def mean(**keys: str) -> float | None:
        seconds = [cell["seconds"] for cell in cells.select(**keys) if "seconds" in cell]
        return sum(seconds) / len(seconds) if seconds else None

    return sum(
        mean(system=system.name, task=task) or mean(system=system.name) or mean() or 0.0 for system, task, *_ in planned
    )


def _runs(system: System) -> list[tuple[float | None, int]]:
    """(rate, seed) of the runs of a system on a task; the rate of those that are reported is not known yet."""
    tuning = [(rate, TUNING_SEED) for rate in system.rates] if len(system.rates) > 1 else []
    return [*tuning, *((None, TUNING_SEED + 1 + i) for i in range(system.seeds))]


def chosen_rate(cells: CellFile, system: System, task: str) -> float | None:
    """The rate with the best score of the task's first column; of equal ones the first."""
    if len(system.rates) == 1:
        return system.rates[0]
    title = columns_of(task)[0].title

    def score(rate: float | None) -> float:
        cell = cells.find(system=system.name, task=task, rate=rate, seed=TUNING_SEED)
        if cell is None:
            raise InputError(f"{cells.path}: lacks the run of {system.name} on {task} with rate {rate}; start again")
        value = cell["scores"][title]
        return float("-inf") if value is None else float(value)

    return max(system.rates, key=score)


def values(cells: CellFile, system: System, tasks: Sequence[str]) -> dict[str, list[float]]:
    """Title of each column of the tasks -> the reported scores of a system in percent, a value a seed.

    A score that is undefined, as the correlation with a constant, is 0.
    """
    scores = dict[str, list[float]]()
    for task in tasks:
        for seed in range(TUNING_SEED + 1, TUNING_SEED + 1 + system.seeds):
            cell = cells.find(system=system.name, task=task, seed=seed)
            for title, value in cell["scores"].items() if cell else ():
                scores.setdefault(title, []).append(100 * (value or 0.0))
    return scores


def averages(columns: Mapping[str, Sequence[float]]) -> list[float]:
    """The average over the columns, for each seed."""
    return [sum(numbers) / len(numbers) for numbers in zip(*columns.values(), strict=True)]
