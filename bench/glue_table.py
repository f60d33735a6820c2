"""Fine-tunes models on GLUE's tasks and prints the table: dev scores, mean with 95 % interval over several seeds.

python -m bench.glue_table --models=DIR1,DIR2 --data=GLUE_FOLDER --out=FILE.jsonl [--tasks=...] [--rates=...]

The recipe is that of the BERT paper: 3 epochs, batches of 32, warm-up over a tenth of the steps, decay 0.01. Scores are
those after the last epoch; MNLI-mm is scored by the model of the epoch with the best MNLI-m. With several --rates, a
run each with seed 0 chooses the rate on the dev set, and seeds 1, 2, ... are reported. Each run adds a line to the
file; those that are already there are skipped. The columns at the right are published test scores.
"""

import pathlib
from collections.abc import Mapping, Sequence

from bench import glue_runs
from bench.cells import CellFile
from bench.glue_runs import COLUMNS, System
from bench.intervals import Interval, interval
from bert.errors import InputError
from bert.interop import sources
from launch import flags
from launch.options import Options

OPTIONS = {
    "models": "model directories, runs or Google checkpoints with commas between them",
    "data": "folder with the folders of GLUE's tasks",
    "out": "file with a JSON object a run",
    "tasks": "comma-separated names (default: those of mnli, qqp, qnli, sst2, cola, stsb, mrpc, rte that are there)",
    "seeds": "runs of each task that are reported (default: 5)",
    "rates": "learning rates to choose from, such as 2e-5,3e-5,4e-5,5e-5 (default: that of configs/glue.py)",
}
# Devlin et al. 2018, table 1; the ELMo row as Wang et al. 2018 measured it. In the order of COLUMNS.
PUBLISHED = {
    "Pre-OpenAI SOTA": (80.6, 80.1, 66.1, 82.3, 93.2, 35.0, 81.0, 86.0, 61.7),
    "BiLSTM+ELMo+Attn": (76.4, 76.1, 64.8, 79.8, 90.4, 36.0, 73.3, 84.9, 56.8),
    "OpenAI GPT": (82.1, 81.4, 70.3, 87.4, 91.3, 45.4, 80.0, 82.3, 56.0),
    "BERT base": (84.6, 83.4, 71.2, 90.5, 93.5, 52.1, 85.8, 88.9, 66.4),
    "BERT large": (86.7, 85.9, 72.1, 92.7, 94.9, 60.5, 86.5, 89.3, 70.1),
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("models", "data", "out"))
    models, rates = options.names("models") or (), rates_of(options, (None,))
    if not models:
        raise InputError(f"--models={options.models}: names no model; give directories with commas between them")
    named = options.names("tasks") or ()
    glue_runs.check_tasks(named, options.data)
    tasks = named or tasks_in(options.data)
    for model in models:
        sources.read(model, fresh=("pooler", "sequence_classifier"), labels=("0", "1"))  # refuses what is no model
    seeds = options.whole_number("seeds", 5)
    systems = [System(model, _trained(options.data, model), rates, seeds) for model in models]
    cells = CellFile(pathlib.Path(options.out), {"data": options.data, "rates": rates})
    glue_runs.fill(cells, systems, tasks)
    print(table({system.name: glue_runs.values(cells, system, tasks) for system in systems}))


def rates_of(options: Options, default: Sequence[float | None]) -> tuple[float | None, ...]:
    """The learning rates that ``--rates`` names."""
    names = options.names("rates")
    if names is None:
        return tuple(default)
    try:
        rates = [float(name) for name in names]
    except ValueError:
        rates = []
    if not rates or any(not 0 < rate < 1 for rate in rates):
        raise InputError(f"--rates={options.rates}: must be numbers between 0 and 1 with commas, such as 2e-5,5e-5")
    return tuple(dict.fromkeys(rates))


def tasks_in(data: str) -> tuple[str, ...]:
    """The tasks of the table whose training and dev files are there; InputError where none are."""
    complete, notes = list[str](), list[str]()
    for task in dict.fromkeys(column.task for column in COLUMNS):
        try:
            glue_runs.check_tasks((task,), data)
            complete.append(task)
        except InputError as error:
            notes.append(f"skipped {task}: {error}")
    if not complete:
        way_out = "name the folder above CoLA/ and RTE/"
        raise InputError(f"{data}: has no task of GLUE with training and dev files; {way_out}")
    print("\n".join(notes), flush=True)
    return tuple(complete)


def _trained(data: str, model: str) -> glue_runs.Train:
    return lambda task, rate, seed: glue_runs.finetuned(task, data, model, seed, rate)


def table(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> str:
    """Markdown: a line a column of GLUE's table and one for the average; a column a model, and one a published system.

    Args:
      scores: model -> title of a column -> percent, a value a seed.
    """
    titles = [column.title for column in COLUMNS if any(column.title in columns for columns in scores.values())]
    lines = [
        _line("dev, mean ± 95 %", [*scores, *(f"{name} (test)" for name in PUBLISHED)]),
        _line("---", ["---"] * (len(scores) + len(PUBLISHED))),
    ]
    for title in titles:
        own = [shown(interval(columns[title])) for columns in scores.values()]
        lines.append(_line(title, [*own, *(f"{values[title]:.1f}" for values in published(titles).values())]))
    own = [shown(interval(glue_runs.averages(columns))) for columns in scores.values()]
    lines.append(_line(f"average of {len(titles)}", [*own, *_means(titles)]))
    if len(titles) < len(COLUMNS):
        every = [column.title for column in COLUMNS]
        lines.append(_line(f"average of {len(every)}", [*("" for _ in scores), *_means(every)]))
        missing = ", ".join(title for title in every if title not in titles)
        lines.append(f"\nNot computed: {missing}. MNLI-m and MNLI-mm count separately in the average.")
    return "\n".join(lines)


def published(titles: Sequence[str]) -> dict[str, dict[str, float]]:
    """System -> title of a column -> percent on the test set."""
    every = [column.title for column in COLUMNS]
    by_title = {name: dict(zip(every, row, strict=True)) for name, row in PUBLISHED.items()}
    return {name: {title: row[title] for title in titles} for name, row in by_title.items()}


def _means(titles: Sequence[str]) -> list[str]:
    return [f"{sum(row.values()) / len(row):.1f}" for row in published(titles).values()]


def _line(title: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([title, *cells])} |"


def shown(score: Interval) -> str:
    """As "84.2 ± 0.3"; without an interval where there is one value."""
    return f"{score.mean:.1f}" + ("" if score.half_width is None else f" ± {score.half_width:.1f}")


if __name__ == "__main__":
    flags.main(run)
