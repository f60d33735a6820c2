"""Predicts classes or numbers of texts, from the classifier's scores at [CLS].

Columns, kind and lengths are stored in config.json, so a model directory and rows are all that is needed.
Training is tasks/classification/job.py. Axes: N example, C class.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert.architectures import ModelConfig
from bert.data import encoded_examples
from bert.data.encoded_examples import EncodedExamples
from bert.errors import InputError, check_choice
from bert.prediction import scores, uncertainty
from bert.prediction.scores import Scorer
from bert.target_kinds import Kind
from bert.tokenizer import sequences
from bert.tokenizer.tokenizer import Tokenizer

KEY = "classification"  # of config.json
_PROBLEM_TYPES: dict[Kind, str] = {  # transformers' names, in its "problem_type"
    "class": "single_label_classification",
    "classes": "multi_label_classification",
    "number": "regression",
}


@dataclasses.dataclass(frozen=True)
class ClassificationOptions:
    """How rows become inputs, and scores predictions."""

    kind: Kind
    text: tuple[str, ...]  # names of the one or two columns of text; empty where the directory does not say
    max_length: int  # tokens of an example at most; longer ones are truncated
    threshold: float = 0.5  # probability above which one of several labels holds

    def to_json(self) -> dict[str, Any]:
        """Keys of config.json that say the same."""
        values = {"text": list(self.text), "max_length": self.max_length, "threshold": self.threshold}
        return {"problem_type": _PROBLEM_TYPES[self.kind], KEY: values}


def options_of(extra: Mapping[str, Any], labels: Sequence[str], config: ModelConfig) -> ClassificationOptions:
    """The settings in a model directory; of a model that others trained what transformers would take it for.

    ``extra`` is config.json without what describes the encoder. Raises InputError for values of another form.
    """
    kinds, problem = {name: kind for kind, name in _PROBLEM_TYPES.items()}, extra.get("problem_type")
    if problem is not None or KEY in extra:
        check_choice("problem_type in config.json", problem, tuple(kinds))
    kind: Kind = kinds[problem] if problem else "number" if len(labels) == 1 else "class"
    if KEY not in extra:
        return ClassificationOptions(kind, (), config.max_length)
    match extra[KEY]:
        case {"text": [*text], "max_length": int(length), "threshold": float(threshold)}:
            if all(isinstance(column, str) for column in text):
                return ClassificationOptions(kind, tuple(text), min(length, config.max_length), threshold)
    like = ClassificationOptions(kind, ("review",), 128).to_json()[KEY]
    raise InputError(f"{KEY} in config.json is {extra[KEY]!r:.200}; it must be like {like}")


def predict(scorer: Scorer, rows: Sequence[Any], *, details: bool = False, measure: str = "") -> list[dict[str, Any]]:
    """See `read`; there are no further details. ``rows``: see `texts_of`."""
    del details
    options = options_of(scorer.extra, scorer.labels, scorer.config)
    return read(scorer, texts_of(rows, options.text), options, measure=measure)


def read(
    scorer: Scorer, texts: Sequence[tuple[str, ...]], options: ClassificationOptions, *, measure: str = ""
) -> list[dict[str, Any]]:
    """See `answers`; with ``measure`` also the uncertainty under its name (uncertainty.py).

    Raises InputError where the model predicts numbers, and the uncertainty is asked for.
    """
    if measure and options.kind == "number":
        raise InputError(
            f"{scorer.source}: predicts numbers without probabilities, so it has no {measure}; leave it out"
        )
    p_NC = probabilities(scorer, encode(texts, scorer.tokenizer, options.max_length), options)
    predictions = answers(p_NC, scorer.labels, options)
    if options.kind != "classes":
        return uncertainty.added(predictions, measure, p_NC)
    p_KC, starts = np.stack([p_NC, 1 - p_NC], -1).reshape(-1, 2), np.arange(len(p_NC) + 1) * p_NC.shape[1]
    return uncertainty.added(predictions, measure, p_KC, starts)


def texts_of(rows: Sequence[Any], columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The one or two texts of each row: texts, pairs of texts, or mappings with the columns.

    Raises InputError for a row without a column, or whose value is no text, by its number (from 0).
    """
    scores.check_rows(rows)
    texts = []
    for number, row in enumerate(rows):
        if isinstance(row, Mapping):
            if not columns:
                raise InputError(
                    f"row {number} is a mapping, but the model names no columns to read; give texts or pairs"
                )
            absent = [name for name in columns if name not in row]
            if absent:
                raise InputError(f"row {number} has no {absent[0]!r} (it has {', '.join(map(repr, row))})")
            values = tuple(row[name] for name in columns)
        else:
            values = tuple(row) if isinstance(row, Iterable) and not isinstance(row, str) else (row,)
        if not 1 <= len(values) <= 2 or not all(isinstance(value, str) for value in values):
            raise InputError(f"row {number} is {row!r}; it must be a text, a pair of texts, or a mapping with columns")
        if columns and len(values) != len(columns):
            raise InputError(f"row {number} has {len(values)} texts, not {len(columns)}: {', '.join(columns)}")
        texts.append(values)
    return texts


def encode(
    texts: Sequence[tuple[str, ...]], tokenizer: Tokenizer, max_length: int, **of_example: np.ndarray
) -> EncodedExamples:
    """[CLS] A [SEP] or [CLS] A [SEP] B [SEP] for each; one warning says how many were truncated."""
    return encoded_examples.join(sequences.texts(texts, tokenizer, max_length), **of_example)


def probabilities(scorer: Scorer, encoded: EncodedExamples, options: ClassificationOptions) -> np.ndarray:
    """float64 [N, C]: probabilities that sum to 1 (class), probability of each label (classes), or the numbers."""
    logits_NC = scorer.of_examples(encoded, options.max_length)
    if options.kind == "number":
        return logits_NC.astype(np.float64)
    if options.kind == "classes":
        return 0.5 * (1.0 + np.tanh(0.5 * logits_NC.astype(np.float64)))  # the sigmoid, without overflow
    return scores.softmax(logits_NC)


def answers(predicted_NC: np.ndarray, labels: Sequence[str], options: ClassificationOptions) -> list[dict[str, Any]]:
    """For each example ``{"label": name, "probabilities": {name: p}}``; ``"labels": [names]`` for several labels;
    ``{"value": number}`` for a number."""
    if options.kind == "number":
        return [{"value": float(row[0])} for row in predicted_NC]
    rows = []
    for row_C in predicted_NC:
        shares = {name: float(p) for name, p in zip(labels, row_C, strict=True)}
        if options.kind == "classes":
            chosen: dict[str, Any] = {"labels": [name for name, p in shares.items() if p > options.threshold]}
        else:
            chosen = {"label": labels[int(row_C.argmax())]}
        rows.append(chosen | {"probabilities": shares})
    return rows
