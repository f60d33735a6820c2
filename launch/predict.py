"""Writes the predictions of a fine-tuned model for each row of a file: labels, answers or tags, with probabilities.

bert predict --model=runs/mine --input=new.csv --output=answers.csv
bert predict --model=runs/tagger --input=new.txt --output=tasks.json --format=label_studio --rank=entropy --top=100
bert predict --model=runs/en-de --input=new.en --output=new.txt --attention=page.html
"""

import pathlib

from bert.errors import InputError, check_choice, listed, printable
from bert.progress import waiting
from launch import console, file_options, flags
from tasks.files.outputs import check_other_file

OPTIONS = {
    "model": "model directory or run directory",
    "input": "file of the form that the model was trained on; of a GLUE task its folder",
    "output": "file to write: the input's rows in the input's order, and the predictions",
    "format": "csv, tsv, jsonl, txt (translations, captions), glue (a submission file), json (official), conll, or "
    "what an annotation tool imports: doccano, label_studio, prodigy, brat (a folder); by the ending where not given",
    "split": "of a GLUE folder: test (where not given), validation, test_mismatched, ...",
    "details": "yes: also the probabilities of each token, or the other candidates (jsonl)",
    "rank": "entropy, margin or disagreement: the rows of which the model is least sure come first, with this value",
    "top": "with --rank: only so many rows",
    "attention": "of translations and captions: HTML file to write: how the first hundred read their sources",
    "batch_size": "rows computed at a time (32 where not given)",
    **file_options.OPTIONS,
}
_BY_ENDING = {f".{name}": name for name in ("csv", "tsv", "jsonl", "json", "txt", "conll")} | {".bio": "conll"}


def run(argv: list[str]) -> None:
    _, options = flags.parse(argv, __doc__, OPTIONS, ("model", "input", "output"))
    output, details = pathlib.Path(options.output), options.yes_or_no("details")
    top = options.whole_number("top", 0)
    from bert.prediction.uncertainty import MEASURES  # NumPy takes time, and --help needs none

    if options.rank:
        check_choice("--rank", options.rank, MEASURES)
    elif top:
        raise InputError(f"--top={top} needs --rank=, by which the first rows are chosen")
    if options.attention and pathlib.Path(options.attention) == output:
        raise InputError(f"--attention={options.attention}: is the --output, too; choose another name")
    evaluator = file_options.evaluator_of(options, "input", ("output", "attention"), "attention")
    format = options.format or _BY_ENDING.get(output.suffix, "")
    if not options.format and format not in evaluator.formats:
        endings = ", ".join(ending for ending, name in _BY_ENDING.items() if name in evaluator.formats)
        raise InputError(f"--output={output}: the ending must be one of {endings}, or say --format=, see --help")
    check_choice("format", format, evaluator.formats)
    if details and format != "jsonl":
        raise InputError(f"--details=yes needs --format=jsonl, for {format} has no place for them")
    labelled = "if there" if options.rank == "disagreement" else "no"  # with the annotators' votes beside it
    with waiting(f"reading {options.input}"):
        examples = evaluator.read(options.input, split=options.split or "test", labelled=labelled)
    for name in ("output", "attention"):
        check_other_file(f"--{name}", options[name] or "", *examples.report.beside, folder=format == "brat")
    print(examples.report, file=console.beside(options.output))
    written = evaluator.write_predictions(
        output, examples, format, details=details, rank=options.rank or "", top=top or None
    )
    print(printable(f"wrote {listed(map(str, written), 10)}"), file=console.beside(options.output))


if __name__ == "__main__":
    flags.main(run)
