"""The order of the rows of GLUE's table from scratch: encoders pretrained under one budget, then five small tasks.

python -m bench.glue_scratch --text=PREPARED --data=GLUE_FOLDER --out=RUNS [--size=tiny] [--minutes=20 | --steps=N]

Rows: a linear model on TF-IDF, BERT without pretraining, a bidirectional recurrent network (blank), GPT (causal), BERT
(masked words and next sentence), and BERT twice as deep. All encoders have the same text, vocabulary, recipe of
pretraining and budget, and trunks (all but the embeddings) of equal size within 5 %; the deep one of twice that.
--minutes gives each as many steps as it does in that time on a quiet machine, by a short run before; --steps gives each
the same tokens.

Fine-tuning: the recipe of bench.glue_table on the same training rows. On each task a run with each rate and seed 0
chooses the rate; seeds 1, 2, ... are reported. RUNS gets the pretraining runs and cells.jsonl; run the same command
again to go on. Seeds differ in the head, the order of rows and dropout; each encoder is pretrained once.
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from bench import glue_encoders, glue_runs, glue_table
from bench.cells import CellFile
from bench.glue_encoders import Encoder, trunk_size
from bench.glue_runs import SMALL, Scores, System
from bench.intervals import interval, significant
from bert.architectures.transformer import SIZES
from bert.errors import InputError, check_choice
from bert.store.reader import Store
from launch import flags
from tasks.classification import job as classification_job

OPTIONS = {
    "text": "folder written by bert prepare",
    "data": "folder with the folders of GLUE's tasks",
    "out": "folder for the pretraining runs and cells.jsonl",
    "size": f"of the BERT that the others are as large as: {', '.join(SIZES)} (default: tiny)",
    "minutes": "of pretraining for each encoder, on this machine (default: 20)",
    "steps": "of pretraining for each encoder, instead of minutes",
    "rows": "at most so many training rows of each task (default: 2500)",
    "seeds": "runs of each task that are reported (default: 5)",
    "rates": "learning rates to choose from (default: 1e-4,3e-4,1e-3)",
    "tasks": f"comma-separated names (default: {','.join(SMALL)})",
}
LINEAR, UNTRAINED, AVERAGE = "linear", "no pretraining", "average"
PLAN, PRETRAINING = "plan", "pretraining"  # cells beside those of tasks
FAIRNESS = (
    "Minutes and tokens seen are different budgets: a faster encoder sees more tokens in the same minutes, and needs "
    "fewer minutes for the same tokens. Perplexities of different objectives do not compare."
)
SIGNIFICANCE = (
    "Significant orderings (Welch's t test over the seeds of fine-tuning, two-sided, p < 0.05 after Holm's correction "
    "for all pairs of a column):"
)
BATCH, LENGTH = 32, glue_runs.LENGTH  # rows and tokens of pretraining


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("text", "data", "out"))
    out, size = pathlib.Path(options.out), options.size or "tiny"
    check_choice("--size", size, tuple(SIZES))
    if options.minutes and options.steps:
        raise InputError("--minutes and --steps are both given, and decide the same thing; give one of them")
    tasks, rates = options.names("tasks") or SMALL, glue_table.rates_of(options, (1e-4, 3e-4, 1e-3))
    glue_runs.check_tasks(tasks, options.data)
    rows, seeds = options.whole_number("rows", 2500), options.whole_number("seeds", 5)
    budget = {name: options.whole_number(name, 20) for name in ("minutes", "steps") if options[name]} or {"minutes": 20}
    tokenizer = Store.open(options.text, "train").tokenizer
    encoders = glue_encoders.encoders(size, LENGTH, tokenizer.vocab_size)
    trunks = {encoder.name: trunk_size(encoder.configuration(tokenizer.vocab_size)) for encoder in encoders}
    glue_encoders.check_trunks(encoders, trunks)
    same = {"text": options.text, "data": options.data, "size": size, "rows": rows, "rates": rates, **budget}
    cells = CellFile(out / "cells.jsonl", same)
    folders = {task: glue_runs.sampled(task, options.data, rows, out / "data" / task) for task in tasks}
    glue_encoders.write_untrained(encoders[0], tokenizer, out / UNTRAINED)
    pretrain_all(cells, encoders, options.text, budget)
    print(encoder_table(cells, encoders, trunks), flush=True)

    def trained(init_from: pathlib.Path) -> glue_runs.Train:
        return lambda task, rate, seed: glue_runs.finetuned(task, folders[task], str(init_from), seed, rate)

    systems = [System(LINEAR, lambda task, rate, seed: linear(task, folders[task]), (None,), 1)]
    names = (UNTRAINED, *(encoder.name for encoder in encoders))
    systems += [System(name, trained(out / name), rates, seeds) for name in names]
    glue_runs.fill(cells, systems, tasks)
    print(score_table({system.name: glue_runs.values(cells, system, tasks) for system in systems}))


def pretrain_all(cells: CellFile, encoders: Sequence[Encoder], text: str, budget: Mapping[str, int]) -> None:
    """Pretrains each encoder within the budget, in the folder of its name beside the file of the cells."""
    data = [f"--config.data={text}", f"--config.batch_size={BATCH}", f"--config.max_length={LENGTH}"]
    for encoder in encoders:
        words = [*encoder.words(), *glue_encoders.RECIPE, *data]
        keys: dict[str, Any] = {"system": encoder.name, "rate": None, "seed": 0}
        if cells.find(task=PRETRAINING, **keys):
            continue
        # Noted, so that a run that was stopped goes on to the same step.
        plan = cells.find(task=PLAN, **keys)
        if plan is None:
            steps = budget.get("steps") or round(60 * budget["minutes"] / glue_encoders.seconds_per_step(words))
            plan = cells.add({"task": PLAN, **keys, "steps": steps})
        minutes = f", about {budget['minutes']} minutes on a quiet machine" if "minutes" in budget else ""
        print(f"pretraining {encoder.name}: {plan['steps']:,} steps{minutes}", flush=True)
        done = glue_encoders.pretrain(words, plan["steps"], cells.path.parent / encoder.name)
        cells.add({"task": PRETRAINING, **keys, **done})


def linear(task: str, folder: pathlib.Path) -> Scores:
    """Scores of a linear model on TF-IDF (tasks/classification/baseline.py)."""
    words = [*glue_runs.settings(task, folder, "", 0, None), "--config.baseline=True"]
    config, _ = flags.parse(["bench", *words], "", {}, config_file=None)
    metrics = classification_job.read(config).baseline()
    return {column.title: metrics[column.metric] for column in glue_runs.columns_of(task)}


def encoder_table(cells: CellFile, encoders: Sequence[Encoder], trunks: Mapping[str, int]) -> str:
    """Markdown: a line an encoder: its trunk, and what it was given: steps, minutes and tokens."""
    lines = [
        "| encoder | trunk parameters | of BERT's | steps | minutes | million tokens seen | held-out perplexity |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for encoder in encoders:
        cell = cells.find(system=encoder.name, task=PRETRAINING) or {}
        losses = ", ".join(f"{value:.1f} ({name.split('_')[0]})" for name, value in cell["held_out"].items() if value)
        size, share = trunks[encoder.name], trunks[encoder.name] / trunks[encoders[0].name]
        seen = f"{cell['steps']:,} | {cell['minutes']:.1f} | {cell['tokens'] / 1e6:.1f}"
        lines.append(f"| {encoder.name} | {size:,} | {share:.3f} | {seen} | {losses} |")
    return "\n".join([*lines, "", FAIRNESS, ""])


def score_table(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Markdown: a line a system, a column a task; below, which systems differ significantly.

    Args:
      scores: system -> title of a column -> percent, a value a seed.
    """
    with_average = {name: {**columns, AVERAGE: glue_runs.averages(columns)} for name, columns in scores.items()}
    titles = list(next(iter(with_average.values())))
    lines = [f"| dev, mean ± 95 % | {' | '.join(titles)} |", f"| {' | '.join(['---'] * (1 + len(titles)))} |"]
    for name, columns in with_average.items():
        lines.append(f"| {name} | {' | '.join(glue_table.shown(interval(columns[title])) for title in titles)} |")
    lines += ["", SIGNIFICANCE]
    for title in titles:
        better = dict[str, list[str]]()
        for first, second in significant({name: columns[title] for name, columns in with_average.items()}):
            better.setdefault(first, []).append(second)
        shown = "; ".join(f"{first} > {', '.join(others)}" for first, others in better.items())
        lines.append(f"- {title}: {shown or 'none'}")
    return "\n".join(lines)


if __name__ == "__main__":
    flags.main(run)
