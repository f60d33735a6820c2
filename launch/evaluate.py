"""Scores a fine-tuned model on labelled examples: metrics with intervals, confusion matrix, worst rows.

python -m launch.evaluate --model=runs/mrpc --data=FILE [--out=scores.json] [--text=... --label=... --split=...]
"""

import importlib
import json
import pathlib

import bert
from bert.errors import InputError
from launch import flags

OPTIONS = {
    "model": "model directory or run directory",
    "data": "file of the form that the model was trained on; of a GLUE task its folder",
    "out": "JSON file to write: scores, confusion matrix, the hundred worst rows",
    "split": "of a GLUE folder: validation (where not given), validation_mismatched, test",
    "text": "text column, or two with a comma, where they are other ones than in training",
    "label": "label column, where it is another one than in training",
    "batch_size": "rows computed at a time (32 where not given)",
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, doc=__doc__ or "", config_file="", options=OPTIONS, required=("model", "data"))
    size = flags.whole_number(options, "batch_size", 32)
    model = bert.load(options.model)
    task = task_of(model)
    settings = task.settings_of(model, {"text": options.text, "label": options.label})
    examples = task.read_examples(model, settings, options.data, options.split or "validation", "needed")
    found = task.evaluate(model, examples, batch_size=size)
    print(found.text)
    if options.out:
        path = pathlib.Path(options.out)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                json.dumps(found.values, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8"
            )
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror}); choose another --out") from None
        print(f"wrote {path}")


def task_of(model: "bert.LoadedModel"):  # in quotes: JAX is slow to import, and --help needs none
    """The module of tasks/ that evaluates the model and writes its predictions."""
    if "sequence_classifier" not in model.parts:
        raise InputError(
            f"{model.source}: has no classifier of texts (it holds {', '.join(model.parts)}); fine-tune it"
        )
    return importlib.import_module("tasks.evaluation")


if __name__ == "__main__":
    flags.main(run)
