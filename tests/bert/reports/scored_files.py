"""Runs that hold what a task's evaluate.py says of a model on a file; for the tests of reports."""

import importlib
import json
import pathlib

from bert.reports import records
from tasks.evaluation import Evaluation
from tests.bert.reports.made_runs import made_run

# Arabic, an emoji of several code points, combining marks, CR LF, and marks that turn the direction of text.
ODD = (
    "\u0645\u0631\u062d\u0628\u0627 paris \U0001f469\u200d\U0001f680 cafe\u0301 \r\n n\u0303 \u202eturned\u202c \uac00"
)


def jsonl(path: pathlib.Path, rows: list[dict]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def scored(folder: pathlib.Path, task: str, model, path: str, **changes) -> tuple[pathlib.Path, Evaluation]:
    """A run with the evaluation of a model on a file, and the evaluation."""
    evaluator = importlib.import_module(f"tasks.{task}.evaluate").EVALUATOR(model, changes, 32)
    found = evaluator.evaluate(evaluator.read(path, split="test", labelled="needed"))
    made_run(folder, task)
    values = {"task": task, "step": 30, "unit": evaluator.unit, **found.values}
    records.write_evaluation(folder, values, found.losses, found.row_of, found.also_kept)
    return folder, found


def asked(id: str, context: str, question: str = "Where?", **spans: list[str]) -> dict:
    """A question as a json line; annotator -> texts that he marked."""
    marks = [
        {"annotator": name, "spans": [[context.index(text), context.index(text) + len(text)] for text in texts]}
        for name, texts in spans.items()
    ]
    return {"id": id, "question": question, "context": context, "annotations": marks}
