"""Shared by evaluate and predict: options for files that differ from the training files, and the model's evaluator."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import bert
import tasks
from bert.errors import InputError
from bert.progress import waiting
from launch import command_line
from launch.options import Options
from tasks.files.outputs import check_other_file

if TYPE_CHECKING:
    from tasks.evaluation import Evaluator

# Which of these a model takes depends on its task.
OPTIONS = {
    "text": "of a table: text column, or two with a comma; of an annotation tool: field with the text",
    "label": "of a table: label column",
    "input_format": "of questions and tags: format of the file, one of config.format in the help of bert finetune",
    "documents": "of questions: folder with the documents (pico)",
    "annotators": "of questions and tags: names with commas to keep, or -name,-name for all but these",
    "words": "of tags: column with the word or the words",
    "tags": "of tags: column with the tag or the tags, 1- for a column a worker",
    "scheme": "of tags: iob1, iob2, bioes, bilou, bmes or plain",
    "empty": "of tags: what stands where a word has no tag",
    "tag_names": "of tags that are numbers: the names of 0, 1, ... with commas",
    "sentence": "of tags: column that tells the sentence, of a table with a word a row",
    "offsets": "of annotation tools: what offsets count, code_points, utf16 or bytes",
    "controls": "of label_studio: names of the tags with the labels and the text, label,text where no input tells",
    "no_spans": "of doccano and brat: nothing or unlabelled, for texts without spans",
    "question": "of questions: the question where the file has none",
    "questions": "of questions from annotation tools: what is asked for each label, LABEL=QUESTION,LABEL=QUESTION",
    "delimiter": "of tables and tags: between the columns",
    "columns": "of a table without a header, or with another one: the names of its columns, with commas",
    "quoting": "of a table: yes, no or auto",
    "ragged": "of a table: drop, for rows of another width",
    "separator": "of a table: between the labels in a cell",
    "votes": "of a table: yes where a cell holds a label of each annotator",
    "normalize": "of a table: yes to scale shares that do not sum to 1",
    "encoding": "of the file, such as latin-1",
    "images": "of pictures in an .npz file: the array with these",
    "captions": "of pictures in an .npz file: the array with their captions",
    "beams": "of translation and captions: hypotheses of the search; 1: the most probable token each time",
    "length_penalty": "of translation and captions: 0 for short texts, more for longer ones (0.6 where not trained)",
    "best": "of translation and captions: so many candidates of each",
}


def evaluator_of(options: Options, source: str, outputs: Sequence[str], *more: str) -> "Evaluator":
    """The evaluator of the task that ``options.model`` was trained on, with the changes that the options make.

    ``outputs``: options that name files to write; ``more``: options of the command alone that only some tasks take.

    Raises InputError where an option does not belong to the model's task, ``split`` to its data, or one of ``outputs``
    names a file that is read.
    """
    batch_size = options.whole_number("batch_size", 32)
    from bert.training import run_directory  # needs JAX, and --help does not

    of_run = [os.path.join(options.model, name) for name in (run_directory.MODEL, run_directory.CONFIG)]
    weights = of_run if os.path.isdir(of_run[0]) else [options.model]
    read = [options[source], options.documents, options.get("against"), *weights]
    for name in outputs:
        check_other_file(f"--{name}", options[name] or "", *filter(None, read), folder=options.get("format") == "brat")
    command_line.spell("format", "--input_format")
    with waiting(f"reading {options.model}"):
        model = bert.load(options.model)
    changes = {name.removeprefix("input_"): options[name] for name in (*OPTIONS, *more)}
    evaluator: Evaluator = tasks.module_of(model.task, "evaluate").EVALUATOR(model, changes, batch_size)
    if options.split and not evaluator.settings.get("glue"):
        raise InputError(f"--split={options.split} is for the folder of a GLUE task; name the file itself")
    return evaluator
