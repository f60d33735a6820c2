"""Chooses rows to annotate by the model's uncertainty, in rounds, and compares with random rows, on TREC's questions.

python -m bench.active_learning --data=FOLDER --init_from=DIR --out=FILE.jsonl [--rank=entropy] [--seeds=3]

FOLDER holds TREC's train.txt and test.txt. All labels are hidden at first. A round reveals the labels of 100 training
rows and trains a model on all that are known; the next 100 are those of which this model is least sure, by
`bert predict --rank`. The first 100 are random, and the same for both. Each model starts anew from DIR. Score:
accuracy of the six classes on the test part. Each run adds a line to the file. Runs that are already in the file are
skipped. The table is printed at the end.
"""

import json
import pathlib
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from bench import commands
from bench.cells import CellFile
from bert.errors import check_choice
from bert.prediction.uncertainty import MEASURES
from launch import flags
from tasks.files.records import TableSettings
from tasks.files.tables import read_table

OPTIONS = {
    "data": "folder with train.txt and test.txt of TREC's question classes",
    "init_from": "model directory that every model starts from",
    "out": "file with a JSON object a run",
    "rank": "what chooses the rows, as of bert predict (default: entropy)",
    "seeds": "runs with seeds 0, 1, ... (default: 3)",
}
ROUNDS, ROWS = 5, 100
SETTINGS = (
    "--config=configs/table.py", "--config.text=text", "--config.label=coarse", "--config.validation_share=0",
    "--config.epochs=12", "--config.batch_size=16", "--config.max_length=64", "--config.optimizer.learning_rate=2e-4",
)  # fmt: skip
COLUMNS = TableSettings(columns=("coarse", "fine", "text"), delimiter="[: ]", encoding="latin-1")
Row = dict[str, Any]


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("data", "init_from", "out"))
    out, rank, seeds = pathlib.Path(options.out), options.rank or "entropy", options.whole_number("seeds", 3)
    check_choice("--rank", rank, MEASURES)
    pool, test = (read(pathlib.Path(options.data) / name) for name in ("train.txt", "test.txt"))
    cells = CellFile(out, {"init_from": options.init_from})
    for seed in range(seeds):
        for chosen_by in (rank, "random"):
            if cells.find(seed=seed, chosen_by=chosen_by):
                continue
            started = time.perf_counter()
            scores = annotate(pool, test, chosen_by, seed, options.init_from)
            seconds = time.perf_counter() - started
            cell = cells.add({"seed": seed, "chosen_by": chosen_by, "seconds": seconds, "accuracy": scores})
            print(cell, flush=True)
    print(table(cells.cells))


def read(path: pathlib.Path) -> list[Row]:
    """The questions of a part; ``id`` is the number of the row."""
    return [
        {"id": i, "text": row["text"], "coarse": row["coarse"]}
        for i, row in enumerate(read_table(str(path), COLUMNS).rows)
    ]


def annotate(pool: Sequence[Row], test: Sequence[Row], chosen_by: str, seed: int, init_from: str) -> dict[str, float]:
    """Accuracy by the number of annotated rows: after each round, or if these are random after the last."""
    order = random.Random(seed).sample(range(len(pool)), len(pool))
    scores = {}
    with tempfile.TemporaryDirectory() as folder:
        files = {name: pathlib.Path(folder) / f"{name}.jsonl" for name in ("known", "unknown", "test", "predicted")}
        write(files["test"], test, "text")
        known = order[:ROWS] if chosen_by in MEASURES else order[: ROUNDS * ROWS]
        while True:
            model = f"{folder}/{len(known)}"
            write(files["known"], [pool[i] for i in known], "text", "coarse")
            commands.run("finetune", *SETTINGS, f"--config.data={files['known']}", f"--config.seed={seed}",
                         f"--config.init_from={init_from}", f"--workdir={model}")  # fmt: skip
            predicted = predictions(model, files["test"], files["predicted"])
            right = [said["predicted"]["label"] == row["coarse"] for said, row in zip(predicted, test, strict=True)]
            scores[str(len(known))] = statistics.fmean(right)
            if len(known) == ROUNDS * ROWS:
                return scores
            write(files["unknown"], [pool[i] for i in sorted({*order} - {*known})], "id", "text")
            least_sure = predictions(
                model, files["unknown"], files["predicted"], f"--rank={chosen_by}", f"--top={ROWS}"
            )
            known += [row["id"] for row in least_sure]


def predictions(model: str, rows: pathlib.Path, out: pathlib.Path, *options: str) -> list[Row]:
    commands.run("predict", f"--model={model}", f"--input={rows}", f"--output={out}", *options)
    return [json.loads(line) for line in out.read_text().splitlines()]


def write(path: pathlib.Path, rows: Sequence[Row], *columns: str) -> None:
    path.write_text("".join(json.dumps({name: row[name] for name in columns}) + "\n" for row in rows))


def table(runs: Sequence[Row]) -> str:
    """Markdown: a line for each way to choose and number of rows: accuracy of each seed, mean, deviation."""
    lines = ["| chosen by | annotated rows | accuracy by seed | mean | sd |", "| --- | --- | --- | --- | --- |"]
    for chosen_by in dict.fromkeys(one["chosen_by"] for one in runs):
        mine = [one["accuracy"] for one in runs if one["chosen_by"] == chosen_by]
        for rows in mine[0]:
            values = [scores[rows] for scores in mine]
            sd = f"{statistics.stdev(values):.3f}" if len(values) > 1 else ""
            shown = ", ".join(f"{value:.3f}" for value in values)
            lines.append(f"| {chosen_by} | {rows} | {shown} | {statistics.fmean(values):.3f} | {sd} |")
    return "\n".join(lines)


if __name__ == "__main__":
    flags.main(run)
