"""Evaluates start-and-end models on files: official scores, the worst answers; writes prediction files."""

import dataclasses
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from bert import files
from bert.errors import check_choice, printable
from bert.prediction import squad
from bert.prediction.squad import SquadOptions
from tasks import evaluation
from tasks.evaluation import Evaluation
from tasks.files import outputs
from tasks.metrics import class_curves, span_metrics
from tasks.metrics.score import Score
from tasks.questions.model_files import QuestionsEvaluator
from tasks.questions.question_rows import Question, Questions
from tasks.squad import report_rows, squad_scores

_CERTAIN = 1e9  # null odds where there is no span: the official script compares numbers, and JSON has no infinity


class SquadEvaluator(QuestionsEvaluator):
    """See `tasks.evaluation.Evaluator`.

    Formats. json: the official files: id -> text, and beside it nbest_predictions_NAME with the candidates, and where a
    question may have no answer null_odds_NAME ("predictions" in the name gives way to these words, as in run_squad.py).
    jsonl: ``{"id", "answer", "start", "end", "probability", "null_odds"}``, with ``details`` also "candidates".
    """

    formats = ("json", "jsonl")

    @property
    def options(self) -> SquadOptions:
        return squad.options_of(self.model.extra, self.model.config)

    def check_metrics(self, names: Sequence[str], examples: Questions) -> None:
        for name in names:
            check_choice("--metrics", name, squad_scores.known_metrics(examples.rows, self.options))

    def evaluate(self, examples: Questions, metrics: Sequence[str] = ()) -> Evaluation:
        """The official scores, in percent, at the threshold that was chosen in training."""
        rows, options = examples.rows, self.options
        predictions = squad.read(self.scorer, rows, options)
        answers = {row.id: squad_scores.golds(row) for row in rows}
        texts = {row.id: prediction["answer"] for row, prediction in zip(rows, predictions, strict=True)}
        version = squad_scores.version_of(answers.values(), options)
        characters = span_metrics.by_characters({row.id: row.context for row in rows})
        official = span_metrics.squad_scores(answers, texts, version=version, characters=characters)
        known = squad_scores.known_metrics(rows, options)
        scores = {
            name: Score(value, None if value is not None else "no such question")
            for name, value in official.items()
            if name in known
        }
        if options.no_answer:
            scores["threshold"] = Score(options.threshold)
        exact_N, f1_N = 100 * np.array([
            span_metrics.question_scores(texts[id], golds, version, characters=id in characters)
            for id, golds in answers.items()
        ]).reshape(-1, 2).T  # fmt: skip
        worst: list[dict[str, Any]] = [
            {"place": row.place, "id": row.id, "question": row.question, "answers": golds, "predicted": answer}
            | {"f1": float(f1)}
            for row, answer, golds, f1 in zip(rows, predictions, answers.values(), f1_N, strict=True)
            if f1 < 100
        ]
        worst.sort(key=lambda row: (row["f1"], -(row["predicted"]["probability"])))  # surest of the wrong first
        notes = (*examples.report.notes, *squad_scores.several_spans(rows))
        result = Evaluation(dataclasses.replace(examples.report, notes=notes))
        intervals = report_rows.intervals(list(answers.values()), exact_N, f1_N)
        result.add_scores(scores, self.unit, intervals, metrics=metrics)
        result.add_worst("worst, the surest first:", worst, _line)
        threshold = options.threshold if options.no_answer else None
        result.add_constant(squad_scores.constant(rows, predictions, threshold), self.unit)
        result.values["groups"] = report_rows.by_group(rows, list(answers.values()), exact_N, f1_N)
        p_N = np.array([prediction["probability"] for prediction in predictions])
        result.values["curves"] = {"calibration": class_curves.calibration(exact_N[:, None], p_N[:, None], "classes")}
        if options.no_answer:
            result.values["thresholds"] = self._thresholds(rows, predictions, answers, characters)
        losses_N = report_rows.losses(exact_N, f1_N, predictions)
        row_of = report_rows.row_maker(rows, predictions, list(answers.values()), losses_N, exact_N, f1_N)
        result.keep_rows(losses_N, row_of)
        return result

    def _thresholds(
        self,
        rows: Sequence[Question],
        predictions: Sequence[dict[str, Any]],
        answers: dict[str, list[str]],
        characters: frozenset[str],
    ) -> dict[str, Any]:
        """The scores at each threshold of no answer, and the one that was chosen in training."""
        spans = {row.id: squad_scores.best_span(prediction) for row, prediction in zip(rows, predictions, strict=True)}
        odds = squad_scores.null_odds(rows, predictions)
        points = report_rows.threshold_curve(answers, spans, odds, characters)
        return {"chosen": self.options.threshold, "points": points}

    def predictions(self, examples: Questions, *, details: bool, measure: str) -> list[dict[str, Any]]:
        del details  # the official files need the candidates, too
        return squad.read(self.scorer, examples.rows, self.options, measure=measure)

    def contents(
        self, path: pathlib.Path, examples: Questions, predictions: list[dict[str, Any]], format: str, details: bool
    ) -> dict[pathlib.Path, str]:
        options = self.options
        by_id = dict(zip([row.id for row in examples.rows], predictions, strict=True))
        if format == "jsonl":
            shown = zip(by_id, squad.shown(predictions, details), strict=True)
            return {path: outputs.json_lines({"id": id} | prediction for id, prediction in shown)}
        values: dict[str, Any] = {"predictions": {id: prediction["answer"] for id, prediction in by_id.items()}}
        if not (path.is_fifo() or path.is_char_device() or files.standard_stream(path)):  # these have no file beside
            values["nbest_predictions"] = {
                id: [{"text": c["answer"], "probability": c["probability"]} for c in prediction["candidates"]]
                for id, prediction in by_id.items()
            }
            if options.no_answer:
                odds = {id: prediction["null_odds"] for id, prediction in by_id.items()}
                values["null_odds"] = {id: _CERTAIN if value is None else value for id, value in odds.items()}
        name = path.name if "predictions" in path.name else f"predictions_{path.name}"
        files_of = {kind: path.with_name(name.replace("predictions", kind)) for kind in values} | {"predictions": path}
        return {
            files_of[kind]: json.dumps(content, ensure_ascii=False, indent=1) + "\n" for kind, content in values.items()
        }


def _line(row: dict[str, Any]) -> str:
    """A row of the report."""
    start = printable(f"{row['predicted']['probability']:8.3f}  {row['place']}  ")
    answers = evaluation.cut(" | ".join(dict.fromkeys(row["answers"])) or "none", 50)
    predicted = evaluation.cut(row["predicted"]["answer"] or "none", 50)
    return f"{start}{evaluation.cut(row['question'], 60)}  answers {answers}, predicted {predicted}"


EVALUATOR = SquadEvaluator
