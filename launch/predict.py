"""Writes what a fine-tuned model says of each row of a file: the label, and the probability of each class.

python -m launch.predict --model=runs/mrpc --input=FILE --output=FILE [--format=csv|tsv|jsonl|glue] [--text=...]
"""

import pathlib

import bert
from bert.errors import InputError
from launch import evaluate, flags

OPTIONS = {
    "model": "model directory or run directory",
    "input": "file with the text columns that the model was trained on; of a GLUE task its folder",
    "output": "file to write: the input's rows in the input's order, and the predictions",
    "format": "csv, tsv, jsonl or glue (a submission file); by the output's ending where not given",
    "split": "of a GLUE folder: test (where not given), validation, test_mismatched, ...",
    "text": "text column, or two with a comma, where they are other ones than in training",
    "batch_size": "rows computed at a time (32 where not given)",
}
_BY_ENDING = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl"}


def run(argv: list[str]) -> None:
    _, options = flags.parse(
        argv, doc=__doc__ or "", config_file="", options=OPTIONS, required=("model", "input", "output")
    )
    size, output = flags.whole_number(options, "batch_size", 32), pathlib.Path(options.output)
    format = options.format or _BY_ENDING.get(output.suffix)
    if format is None:
        known = ", ".join(_BY_ENDING)
        raise InputError(
            f"--output={output}: the ending must be one of {known}, or say --format=csv, tsv, jsonl or glue"
        )
    if output.exists() and output.resolve() == pathlib.Path(options.input).resolve():
        raise InputError(f"--output={output}: is the input, which it would replace; choose another name")
    model = bert.load(options.model)
    task = evaluate.task_of(model)
    settings = task.settings_of(model, {"text": options.text})
    examples = task.read_examples(model, settings, options.input, options.split or "test", "no")
    print(examples.report)
    task.write_predictions(output, model, examples, settings, format, size)
    print(f"wrote {output}")


if __name__ == "__main__":
    flags.main(run)
