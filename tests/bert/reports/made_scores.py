"""Evaluations as tasks/classification/evaluate.py makes them, of made-up predictions; for the tests of reports."""

from typing import Any

import numpy as np

from tasks.classification import evaluate
from tasks.files.examples import TextExamples
from tasks.files.reports import ReadReport
from tests.bert.reports.made_runs import NASTY


class Answers(evaluate.ClassificationEvaluator):
    """An evaluator whose model has given these answers."""

    def __init__(self, predicted_NC: np.ndarray, labels: tuple[str, ...], kind: str):
        self.predicted_NC = predicted_NC
        self.model = type("Model", (), {"labels": labels, "extra": {}})
        self.options = evaluate.classification.ClassificationOptions(kind, ("text",), 16)
        self.settings = {"text": "text", "label": "label"}

    def _probabilities(self, examples: TextExamples) -> np.ndarray:
        return self.predicted_NC


def made(kind: str, classes: int = 2, count: int = 120, seed: int = 0) -> tuple[dict[str, Any], list, list]:
    """(evaluation, rows, [targets, predictions]) of a model that is often right."""
    rng = np.random.default_rng(seed)
    labels = (*(f"class {i}" for i in range(classes - 1)), NASTY)
    truth_N = rng.integers(0, classes, count)
    if kind == "number":
        targets = rng.normal(3, 1, (count, 1)).astype(np.float32)
        predicted = targets.astype(float) + rng.normal(0, 0.3, (count, 1))
        labels = ("LABEL_0",)
    else:
        noise = rng.normal(size=(count, classes)) + 2 * np.eye(classes)[truth_N]
        targets = np.eye(classes, dtype=np.float32)[truth_N]
        predicted = np.exp(noise) / np.exp(noise).sum(1, keepdims=True)
        if kind == "classes":
            targets = np.maximum(targets, rng.random((count, classes)) < 0.3).astype(np.float32)
            predicted = 1 / (1 + np.exp(-(noise + 2 * targets - 2)))
    texts = [(f"text {i} {NASTY}",) for i in range(count)]
    rows = [{"id": f"id-{i}", "text": text[0]} for i, text in enumerate(texts)]
    examples = TextExamples(
        texts, targets, rows, [f"rows.csv:{i + 2}" for i in range(count)], () if kind == "number" else labels, kind,
        ReadReport("rows.csv", count, count),
    )  # fmt: skip
    evaluation = Answers(predicted, labels, kind).evaluate(examples)
    kept = [evaluation.row_of(i) for i in range(count)]
    return {"task": "classification", "step": 30, "unit": "rows", **evaluation.values}, kept, [targets, predicted]
