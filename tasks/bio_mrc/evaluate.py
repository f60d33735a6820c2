"""Evaluates B/I/O models on files: scores against the annotators, the worst passages; writes predicted spans."""

import json
import pathlib
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from bert import config_fields
from bert.errors import check_choice, printable
from bert.prediction import bio_mrc, questions
from bert.prediction.bio_mrc import BioMrcOptions
from tasks import evaluation, votes
from tasks.annotations import tools
from tasks.annotations.annotated_texts import AnnotationSettings
from tasks.annotations.tools import TOOLS
from tasks.bio_mrc import bio_scores
from tasks.bio_mrc.report_rows import ScoredPassages
from tasks.evaluation import WRITTEN_WORST, Evaluation
from tasks.files import outputs
from tasks.metrics import ratio_intervals
from tasks.questions.annotated_questions import key_of_text, predicted_texts
from tasks.questions.answer_tokens import mark
from tasks.questions.model_files import QuestionsEvaluator
from tasks.questions.question_rows import Questions
from tasks.votes import VoteSettings


class BioMrcEvaluator(QuestionsEvaluator):
    """See `tasks.evaluation.Evaluator`.

    Formats. jsonl: ``{"id", "spans": [{"start", "end", "text", "probability"}, ...]}``, with ``details`` also "tokens",
    the probabilities of B, I and O of each. json: one object, id -> texts of the spans, as MultiSpanQA's scorer reads
    it. Those of annotation tools (tasks/annotations/): the texts with the spans of all labels.
    """

    formats = ("jsonl", "json", *TOOLS)

    @property
    def options(self) -> BioMrcOptions:
        return bio_mrc.options_of(self.model.extra, self.model.config)

    def check_metrics(self, names: Sequence[str], examples: Questions) -> None:
        for name in names:
            check_choice("--metrics", name, bio_scores.NAMES)

    def evaluate(self, examples: Questions, metrics: Sequence[str] = ()) -> Evaluation:
        """Every annotator counts the same."""
        rows, options = examples.rows, self.options
        fitted = questions.fitted(options, self.scorer.tokenizer)
        cut, pieces_N = questions.windows_of(rows, self.scorer.tokenizer, fitted)
        p_KC, starts, marked = bio_mrc.probabilities(self.scorer, cut, options), cut.starts, mark(rows, pieces_N)
        scores, ratios = bio_scores.score(p_KC, starts, rows, pieces_N, marked, {}, options)
        counts_KC = bio_scores.vote_counts(marked, pieces_N, {})
        target_KC, _ = votes.target(counts_KC, VoteSettings(), bio_scores.OUTSIDE)
        losses_N = bio_scores.row_losses(p_KC, target_KC, starts)
        predictions = bio_mrc.answers(p_KC, starts, [row.context for row in rows], pieces_N, options)
        worst = [
            {"place": rows[i].place, "id": rows[i].id, "loss": float(losses_N[i]), "question": rows[i].question,
             "marked": {name: list(texts) for name, texts in rows[i].golds}, "predicted": predictions[i]["spans"]}
            for i in np.argsort(-losses_N)[:WRITTEN_WORST]
        ]  # fmt: skip
        predicted_N = bio_mrc.spans(p_KC, starts, options)
        result = Evaluation(examples.report, *([marked.report] if marked.report else []))
        result.values["rows"]["spans"] = marked.report
        result.add_scores(scores, self.unit, ratio_intervals.intervals(ratios), metrics=metrics)
        result.add_annotators(bio_scores.beside_annotators(marked, predicted_N, pieces_N), "passages")
        result.add_worst("worst (nats):", worst, _line)
        result.add_constant(bio_scores.constant(predicted_N, scores), self.unit)
        majority_N = bio_scores.majority_spans(counts_KC, starts)
        scored = ScoredPassages(
            rows, pieces_N, marked, target_KC, p_KC, starts, losses_N.tolist(), majority_N, predicted_N, options
        )
        result.values["disagreement"] = scored.mean_disagreement
        result.keep_rows(scored.losses_N, scored.row_of, scored.detailed)
        return result

    def predictions(self, examples: Questions, *, details: bool, measure: str) -> list[dict[str, Any]]:
        return bio_mrc.read(self.scorer, examples.rows, self.options, details=details, measure=measure)

    def vote_shares(self, examples: Questions) -> tuple[np.ndarray, np.ndarray] | None:
        if not any(len(row.annotations) > 1 for row in examples.rows):
            return None
        fitted = questions.fitted(self.options, self.scorer.tokenizer)
        cut, pieces_N = questions.windows_of(examples.rows, self.scorer.tokenizer, fitted)
        counts_KC = bio_scores.vote_counts(mark(examples.rows, pieces_N), pieces_N, {})
        return votes.target(counts_KC, VoteSettings(), bio_scores.OUTSIDE)[0], cut.starts

    def written_in(self, examples: Questions, format: str) -> Sequence[Hashable]:
        return list(map(key_of_text, examples.rows)) if format in TOOLS else super().written_in(examples, format)

    def contents(
        self, path: pathlib.Path, examples: Questions, predictions: list[dict[str, Any]], format: str, details: bool
    ) -> dict[pathlib.Path, str]:
        del details  # predictions have them
        if format in TOOLS:
            joined = predicted_texts(examples.rows, predictions)
            settings = config_fields.build(AnnotationSettings, self.settings)
            return tools.written(format, joined, path, settings, self.model.source)
        pairs = list(zip([row.id for row in examples.rows], predictions, strict=True))
        if format == "jsonl":
            return {path: outputs.json_lines({"id": id} | prediction for id, prediction in pairs)}
        texts = {id: [span["text"] for span in prediction["spans"]] for id, prediction in pairs}
        return {path: json.dumps(texts, ensure_ascii=False, indent=1) + "\n"}


def _line(row: dict[str, Any]) -> str:
    """A row of the report."""
    start = printable(f"{row['loss']:8.3f}  {row['place']}  ") + evaluation.cut(row["question"], 50)
    marked = _joined([text for texts in row["marked"].values() for text in texts])
    return f"{start}  marked {marked}, predicted {_joined([span['text'] for span in row['predicted']])}"


def _joined(texts: list[str]) -> str:
    return evaluation.cut(" | ".join(dict.fromkeys(texts)) or "nothing", 60)


EVALUATOR = BioMrcEvaluator
