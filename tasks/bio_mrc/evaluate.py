"""B/I/O reading comprehension on files: scores beside the annotators, the passages read worst; predicted spans."""

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert.errors import printable
from bert.inference import LoadedModel
from bert.prediction import bio_mrc
from tasks import evaluation, votes
from tasks.bio_mrc import bio_scores
from tasks.evaluation import Evaluation
from tasks.metrics import classification_metrics
from tasks.questions.model_files import read_examples, settings_of
from tasks.questions.question_rows import Question, Questions
from tasks.votes import VoteSettings

__all__ = ["evaluate", "read_examples", "settings_of", "write_predictions"]

FORMATS = ("jsonl", "json")


def evaluate(model: LoadedModel, found: Questions, *, batch_size: int = 32) -> Evaluation:
    """Scores of the model on annotated questions; every annotator counts the same."""
    rows, options = found.rows, bio_mrc.options_of(model.extra, model.config)
    p_KC, starts, pieces_N = bio_mrc.probabilities(model, rows, options, batch_size=batch_size)
    marked = bio_scores.mark(rows, pieces_N)
    scores = bio_scores.score(p_KC, starts, rows, pieces_N, marked, {}, options)
    target_KC, _ = votes.target(bio_scores.vote_counts(marked, pieces_N, {}), VoteSettings(), bio_scores.OUTSIDE)
    losses_N = bio_scores.row_losses(p_KC, target_KC, starts)
    told = bio_mrc.answers(p_KC, starts, [row.context for row in rows], pieces_N, options)
    worst = [_row(rows[i], float(losses_N[i]), told[i]) for i in np.argsort(-losses_N)[: evaluation.KEPT_WORST]]
    predicted_N = bio_mrc.spans(p_KC, starts, options)
    beside = bio_scores.beside_annotators(marked, predicted_N, pieces_N)
    lines, annotators = evaluation.annotators(beside, "passages")
    values: dict[str, Any] = {
        "source": found.report.source,
        "rows": found.report.as_json() | {"spans": marked.report},
        "scores": classification_metrics.as_json(scores),
        "annotators": annotators,
        "worst": worst,
    }
    text = [
        str(found.report),
        *([marked.report] if marked.report else []),
        "",
        classification_metrics.report_table(scores),
        *lines,
    ]
    evaluation.add_constant(text, values, bio_scores.constant(predicted_N, scores), model.task)
    text += ["", "worst (nats):"]
    text += [
        printable(f"{row['loss']:8.3f}  {row['place']}  ")
        + f"{evaluation.cut(row['question'], 50)}  marked {_shown(row['marked'])}, "
        f"predicted {_shown([span['text'] for span in row['predicted']])}"
        for row in worst[: evaluation.SHOWN_WORST]
    ]
    return Evaluation("\n".join(text), values)


def _row(row: Question, loss: float, told: Mapping[str, Any]) -> dict[str, Any]:
    marked = {name: list(texts) for name, texts in row.golds}
    return {"place": row.place, "id": row.id, "loss": loss, "question": row.question, "marked": marked,
            "predicted": told["spans"]}  # fmt: skip


def _shown(texts: Any) -> str:
    listed = [text for spans in texts.values() for text in spans] if isinstance(texts, Mapping) else texts
    return evaluation.cut(" | ".join(dict.fromkeys(listed)) or "nothing", 60)


def write_predictions(
    path: pathlib.Path,
    model: LoadedModel,
    found: Questions,
    settings: Mapping[str, Any],
    format: str,
    batch_size: int,
    details: bool = False,
) -> list[pathlib.Path]:
    """The spans of each question, in the file's order.

    jsonl: ``{"id", "spans": [{"start", "end", "text", "probability"}, ...]}``, with ``details`` also "tokens", the
    probabilities of B, I and O of each. json: one object, id -> texts of the spans, as MultiSpanQA's scorer reads it.
    Returns what was written.
    """
    evaluation.check_format(format, FORMATS)
    options = bio_mrc.options_of(model.extra, model.config)
    told = bio_mrc.read(model, found.rows, options, details=details, batch_size=batch_size)
    if format == "jsonl":
        text = evaluation.json_lines({"id": row.id} | one for row, one in zip(found.rows, told, strict=True))
    else:
        texts = {row.id: [span["text"] for span in one["spans"]] for row, one in zip(found.rows, told, strict=True)}
        text = json.dumps(texts, ensure_ascii=False, indent=1) + "\n"
    evaluation.write_whole(path, text)
    return [path]
