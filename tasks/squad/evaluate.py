"""Start-and-end reading comprehension on files: official scores and prediction files, the questions answered worst."""

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from bert import files
from bert.errors import printable
from bert.inference import LoadedModel
from bert.prediction import squad
from tasks import evaluation
from tasks.evaluation import Evaluation
from tasks.metrics import classification_metrics, span_metrics
from tasks.metrics.classification_metrics import Score
from tasks.questions.model_files import read_examples, settings_of
from tasks.questions.question_rows import Questions
from tasks.squad import job as task

__all__ = ["evaluate", "read_examples", "settings_of", "write_predictions"]

FORMATS = ("json", "jsonl")
_CERTAIN = 1e9  # null odds where there is no span: the official script compares numbers, and JSON has no infinity


def evaluate(model: LoadedModel, questions: Questions, *, batch_size: int = 32) -> Evaluation:
    """The official scores, in percent, at the threshold that was chosen in training."""
    rows, options = questions.rows, squad.options_of(model.extra, model.config)
    predictions = squad.read(model, rows, options, batch_size=batch_size)
    answers = {row.id: task.golds(row) for row in rows}
    texts = {row.id: prediction["answer"] for row, prediction in zip(rows, predictions, strict=True)}
    version = task.version_of(answers.values(), options)
    characters = span_metrics.by_characters({row.id: row.context for row in rows})
    official = span_metrics.squad_scores(answers, texts, version=version, characters=characters)
    scores = {
        name: Score(value, None if value is not None else "no such question")
        for name, value in official.items()
        if not name.startswith("best_") and (version == "2.0" or not name.startswith(("HasAns", "NoAns")))
    }
    if options.no_answer:
        scores["threshold"] = Score(options.threshold)
    f1_N = [
        100 * span_metrics.question_scores(texts[id], golds, version, characters=id in characters)[1]
        for id, golds in answers.items()
    ]
    worst: list[dict[str, Any]] = [
        {"place": row.place, "id": row.id, "question": row.question, "answers": golds, "predicted": answer, "f1": f1}
        for row, answer, golds, f1 in zip(rows, predictions, answers.values(), f1_N, strict=True)
        if f1 < 100
    ]
    worst.sort(key=lambda row: (row["f1"], -(row["predicted"]["probability"])))  # surest of the wrong first
    read = dataclasses.replace(questions.report, notes=(*questions.report.notes, *task.several_spans(rows)))
    values: dict[str, Any] = {
        "source": questions.report.source,
        "rows": read.as_json(),
        "scores": classification_metrics.as_json(scores),
        "worst": worst[: evaluation.KEPT_WORST],
    }
    text = [str(read), "", classification_metrics.report_table(scores)]
    threshold = options.threshold if options.no_answer else None
    evaluation.add_constant(text, values, task.constant(rows, predictions, threshold), model.task)
    text += ["", "worst, the surest first:"]
    text += [
        printable(f"{row['predicted']['probability']:8.3f}  {row['place']}  ")
        + f"{evaluation.cut(row['question'], 60)}  answers "
        f"{evaluation.cut(' | '.join(dict.fromkeys(row['answers'])) or 'none', 50)}, predicted "
        f"{evaluation.cut(row['predicted']['answer'] or 'none', 50)}"
        for row in worst[: evaluation.SHOWN_WORST]
    ]
    return Evaluation("\n".join(text), values)


def write_predictions(
    path: pathlib.Path,
    model: LoadedModel,
    questions: Questions,
    settings: Mapping[str, Any],
    format: str,
    batch_size: int,
    details: bool = False,
) -> list[pathlib.Path]:
    """The answer to each question, in the file's order.

    json: the official files: id -> text, and beside it nbest_predictions_NAME with the candidates, and where a question
    may have no answer null_odds_NAME ("predictions" in the name gives way to these words, as in run_squad.py).
    jsonl: ``{"id", "answer", "start", "end", "probability", "null_odds"}``, with ``details`` also "candidates".
    Returns what was written.
    """
    evaluation.check_format(format, FORMATS)
    options = squad.options_of(model.extra, model.config)
    predictions = squad.read(model, questions.rows, options, batch_size=batch_size)
    by_id = dict(zip([row.id for row in questions.rows], predictions, strict=True))
    if format == "jsonl":
        dropped = () if details else ("candidates",)
        rows = (
            {"id": id} | {k: v for k, v in prediction.items() if k not in dropped} for id, prediction in by_id.items()
        )
        evaluation.write_whole(path, evaluation.json_lines(rows))
        return [path]
    values: dict[str, Any] = {"predictions": {id: prediction["answer"] for id, prediction in by_id.items()}}
    values["nbest_predictions"] = {
        id: [{"text": c["answer"], "probability": c["probability"]} for c in prediction["candidates"]]
        for id, prediction in by_id.items()
    }
    if options.no_answer:
        odds = {id: prediction["null_odds"] for id, prediction in by_id.items()}
        values["null_odds"] = {id: _CERTAIN if value is None else value for id, value in odds.items()}
    if path.is_fifo() or path.is_char_device() or files.standard_stream(path):  # beside these nothing can stand
        values = {"predictions": values["predictions"]}
    targets = {}
    for kind in values:
        other = path.name.replace("predictions", kind) if "predictions" in path.name else f"{kind}_{path.name}"
        targets[kind] = path if kind == "predictions" else path.with_name(other)
        evaluation.check_other_file("--output", targets[kind], questions.report.source)
    for kind, content in values.items():
        evaluation.write_whole(targets[kind], json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    return list(targets.values())
