"""Scores a fine-tuned model on labelled examples: all metrics of its task, and the rows with the worst predictions.

python -m launch.evaluate --model=runs/mrpc --data=FILE [--out=scores.json] [--text=... --label=... --split=...]
"""

import json
import pathlib

import bert
from bert.errors import printable
from launch import console, file_options, flags

OPTIONS = {
    "model": "model directory or run directory",
    "data": "file of the form that the model was trained on; of a GLUE task its folder",
    "out": "JSON file to write: scores, which rows were read and left out, and the hundred worst",
    "split": "of a GLUE folder: validation (where not given), validation_mismatched, test",
    "batch_size": "rows computed at a time (32 where not given)",
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(
        argv, doc=__doc__ or "", config_file="", options=OPTIONS | file_options.OPTIONS, required=("model", "data")
    )
    size = flags.whole_number(options, "batch_size", 32)
    from tasks import evaluation as tasks_evaluation  # JAX is slow to import, and --help needs none

    for source in filter(None, (options.data, options.documents)):
        tasks_evaluation.check_other_file("--out", options.out or "", source)
    evaluator = file_options.evaluator_of(bert.load(options.model), options, size)
    examples = evaluator.read(options.data, split=options.split or "validation", labelled="needed")
    evaluation = evaluator.evaluate(examples)
    print(evaluation.text, file=console.beside(options.out))
    if options.out:
        path = pathlib.Path(options.out)
        tasks_evaluation.write_whole(
            path, json.dumps(evaluation.values, indent=1, ensure_ascii=False, default=str) + "\n", "--out"
        )
        print(printable(f"wrote {path}"), file=console.beside(options.out))


if __name__ == "__main__":
    flags.main(run)
