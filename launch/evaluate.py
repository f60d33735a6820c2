"""Scores a fine-tuned model on labelled examples: all metrics of its task, and the rows with the worst predictions.

bert evaluate --model=runs/mine --data=more.csv --out=scores.json
bert evaluate --model=runs/mine --data=other.csv --text=body --label=grade --metrics=accuracy,macro_f1
bert evaluate --model=runs/en-de --data=test.en,test.de --against=other.txt    with another system's BLEU
"""

import json
import pathlib

from bert.errors import printable
from bert.progress import waiting
from launch import console, file_options, flags
from tasks.files.outputs import check_other_file, write_whole

OPTIONS = {
    "model": "model directory or run directory",
    "data": "file of the form that the model was trained on; of a GLUE task its folder",
    "out": "JSON file to write: scores, which rows were read and left out, and the hundred worst",
    "split": "of a GLUE folder: validation (where not given), validation_mismatched, test",
    "metrics": "names of config.metrics with commas: these scores only, in this order (all where not given)",
    "against": "of translation: another system's translations, a line for each pair; a paired bootstrap compares BLEU",
    "batch_size": "rows computed at a time (32 where not given)",
    **file_options.OPTIONS,
}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("model", "data"))
    evaluator = file_options.evaluator_of(options, "data", ("out",), "against")
    with waiting(f"reading {options.data}"):
        examples = evaluator.read(options.data, split=options.split or "validation", labelled="needed")
    check_other_file("--out", options.out or "", *examples.report.beside)
    metrics = tuple(dict.fromkeys(options.names("metrics") or ()))
    evaluator.check_metrics(metrics, examples)
    evaluation = evaluator.evaluate(examples, metrics)
    print(evaluation.text, file=console.beside(options.out))
    if options.out:
        path, text = pathlib.Path(options.out), json.dumps(evaluation.values, indent=1, ensure_ascii=False, default=str)
        write_whole(path, text + "\n")
        print(printable(f"wrote {path}"), file=console.beside(options.out))


if __name__ == "__main__":
    flags.main(run)
