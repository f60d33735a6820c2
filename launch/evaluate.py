"""Scores a fine-tuned model on labelled examples: every metric of its task, and the rows that it gets most wrong.

python -m launch.evaluate --model=runs/mrpc --data=FILE [--out=scores.json] [--text=... --label=... --split=...]
"""

import importlib
import json
import pathlib
from collections.abc import Mapping
from typing import Any

import bert
from bert.errors import InputError, printable
from launch import console, flags

OPTIONS = {
    "model": "model directory or run directory",
    "data": "file of the form that the model was trained on; of a GLUE task its folder",
    "out": "JSON file to write: scores, which rows were read and left out, and the hundred worst",
    "split": "of a GLUE folder: validation (where not given), validation_mismatched, test",
    "batch_size": "rows computed at a time (32 where not given)",
}
# How the file is read, where it is not read as in training; which of these a model takes depends on its task.
FILE_OPTIONS = {
    "text": "of a table: text column, or two with a comma",
    "label": "of a table: label column",
    "documents": "of questions: folder with the documents (pico)",
    "annotators": "of questions and tags: names with commas to keep, or -name,-name for all but these",
    "words": "of tags: column with the word",
    "tags": "of tags: column with the tag, 1- for a column a worker",
    "scheme": "of tags: iob1, iob2 or plain",
    "question": "of questions: what is asked where the file has none",
    "delimiter": "of tables and tags: between the columns",
    "columns": "of a table without a header, or with another one: the names of its columns, with commas",
    "quoting": "of a table: yes, no or auto",
    "ragged": "of a table: drop, for rows of another width",
    "separator": "of a table: between the labels in a cell",
    "votes": "of a table: yes where a cell holds a label of each annotator",
    "normalize": "of a table: yes to scale shares that do not sum to 1",
    "encoding": "of the file, such as latin-1",
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(
        argv, doc=__doc__ or "", config_file="", options=OPTIONS | FILE_OPTIONS, required=("model", "data")
    )
    size = flags.whole_number(options, "batch_size", 32)
    from tasks import evaluation as tasks_evaluation  # JAX is slow to import, and --help needs none

    for source in filter(None, (options.data, options.documents)):
        tasks_evaluation.check_other_file("--out", options.out or "", source)
    model = bert.load(options.model)
    task = task_of(model)
    settings = task.settings_of(model, {name: options[name] for name in FILE_OPTIONS})
    check_split(options.split, settings)
    examples = task.read_examples(model, settings, options.data, options.split or "validation", "needed")
    evaluation = task.evaluate(model, examples, batch_size=size)
    print(evaluation.text, file=console.beside(options.out))
    if options.out:
        path = pathlib.Path(options.out)
        tasks_evaluation.write_whole(
            path, json.dumps(evaluation.values, indent=1, ensure_ascii=False, default=str) + "\n", "--out"
        )
        print(printable(f"wrote {path}"), file=console.beside(options.out))


def check_split(split: str | None, settings: Mapping[str, Any]) -> None:
    """Refuses a split where the data are one file."""
    if split and not settings.get("glue"):
        raise InputError(f"--split={split} is for the folder of a GLUE task; name the file itself")


def task_of(model: "bert.LoadedModel"):  # in quotes: JAX is slow to import, and --help needs none
    """The evaluate.py of the task that the model was trained on."""
    return importlib.import_module(f"tasks.{model.task}.evaluate")


if __name__ == "__main__":
    flags.main(run)
