"""Scores of start-and-end answers by the official rules of SQuAD (tasks/metrics/span_metrics.py), and notes on them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert.prediction.squad import SquadOptions
from bert.training.evaluate import Metrics
from tasks.metrics import constant_predictions, span_metrics
from tasks.questions.question_rows import Question

METRICS = ("f1", "exact")  # that can choose the best evaluation, and the threshold of no answer with it


def score(
    rows: Sequence[Question], predictions: Sequence[Mapping[str, Any]], options: SquadOptions, measure: str = "f1"
) -> Metrics:
    """The official scores, in percent; where a question may have no answer, with the threshold that is best for
    ``measure`` (f1 or exact). ``predictions``: with their candidates, see `squad.answers`."""
    answers = {row.id: golds(row) for row in rows}
    spans = {row.id: best_span(prediction) for row, prediction in zip(rows, predictions, strict=True)}
    characters = span_metrics.by_characters({row.id: row.context for row in rows})
    if not options.no_answer:
        version = version_of(answers.values(), options)
        official = span_metrics.squad_scores(answers, spans, version=version, characters=characters)
        return {name: official[name] for name in ("f1", "exact", "total")}
    odds = null_odds(rows, predictions)
    threshold, _ = span_metrics.best_threshold(answers, spans, odds, measure, characters=characters)
    official = span_metrics.squad_scores(answers, spans, odds, threshold, characters=characters)
    return {name: value for name, value in official.items() if not name.startswith("best_")} | {"threshold": threshold}


def known_metrics(rows: Sequence[Question], options: SquadOptions) -> tuple[str, ...]:
    """Names of the scores of `bert evaluate` on these questions."""
    parts = ("", "HasAns_", "NoAns_") if version_of(map(golds, rows), options) == "2.0" else ("",)
    names = tuple(part + name for part in parts for name in ("exact", "f1", "total"))
    return (*names, "threshold") if options.no_answer else names


def constant(rows: Sequence[Question], predictions: Sequence[Mapping[str, Any]], threshold: float | None) -> Metrics:
    """The note on a reader that answers no question though some have an answer (constant_predictions.py).

    ``threshold``: of the odds of no answer; None where every question has an answer.
    """
    odds = [prediction["null_odds"] for prediction in predictions]
    silent = threshold is not None and all(value is None or value > threshold for value in odds)
    is_constant = silent and len(rows) > 1 and any(map(golds, rows))
    return constant_predictions.noted("nothing" if is_constant else None, len(rows))


def null_odds(rows: Sequence[Question], predictions: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """id -> odds of no answer, infinite where there is no span."""
    return {
        row.id: np.inf if prediction["null_odds"] is None else prediction["null_odds"]
        for row, prediction in zip(rows, predictions, strict=True)
    }


def best_span(prediction: Mapping[str, Any]) -> str:
    """The text of the likeliest candidate that is a span; "" where there is none."""
    return next((candidate["answer"] for candidate in prediction["candidates"] if candidate["start"] is not None), "")


def golds(row: Question) -> list[str]:
    """The texts of the annotators' answers as they stand in the file, also where they have no position in the passage;
    empty where nobody gave one."""
    return [text for _, texts in row.golds for text in texts[:1]]


def several_spans(rows: Sequence[Question]) -> list[str]:
    """A note on answers that are left out because `golds` has one a question and annotator; none where none is."""
    places = [row.place for row in rows if any(len(texts) > 1 for _, texts in row.golds)]
    what = f"{len(places):,} questions have several spans by one annotator, the first of which is the answer"
    return [f"{what} (first {places[0]}); configs/bio_mrc.py finds all"] if places else []


def version_of(answers: Iterable[Sequence[str]], options: SquadOptions) -> str:
    """Whose rules score these golds: those of SQuAD 2.0 where a question may have no answer, or an answer is ""."""
    return "2.0" if options.no_answer or not all(texts and all(texts) for texts in answers) else "1.1"
