"""Classes of sentences and pairs, several labels at once, and numbers: GLUE's tasks and your own tables.

Files: tasks/files/ and sources.py. Metrics: tasks/metrics/classification_metrics.py. Linear baseline: baseline.py.
Prediction: bert/prediction/classification.py.
"""

import dataclasses
import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jax import Array
from ml_collections import ConfigDict

from bert.architectures import ModelConfig
from bert.data.encoded_examples import EncodedExamples, ExampleSettings, TrainingBatches
from bert.errors import InputError, check_choice, check_range
from bert.extras import check_installed
from bert.metric_names import OF_POSITIVE
from bert.model import losses
from bert.model.heads import Model, SequenceHead
from bert.prediction import classification
from bert.prediction.classification import ClassificationOptions
from bert.prediction.scores import Scorer
from bert.target_kinds import Kind
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from bert.training.task import Task
from tasks.classification import glue_tasks, sources
from tasks.files import equal_texts
from tasks.files.examples import TextExamples
from tasks.files.records import comma_names, comma_numbers
from tasks.job import ExamplesJob, choice_of, dropout_rate
from tasks.metrics import classification_metrics, constant_predictions
from tasks.metrics.classification_metrics import LOSS, LOWER_IS_BETTER

NUMBER = "LABEL_0"  # the name of the one score of a number, as transformers has it
CONFIG = "configs/table.py"
_LOSSES = {
    "class": losses.soft_cross_entropy, "classes": losses.sigmoid_cross_entropy, "number": losses.squared_error,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Classification(Task):
    """Head and loss, for the training loop: cross-entropy to the target's shares, binary cross-entropy, or squared
    error, averaged over the examples by their weights."""

    kind: Kind
    classes: int
    rate: float | None = None  # dropout before the scores; None: as between the blocks
    smoothing: float = 0.0  # of the targets of "class", see `losses.smoothed`

    def model(self, config: ModelConfig) -> Model:
        return Model(config, SequenceHead(config, self.classes, self.rate))

    def counts(self, batch: Mapping[str, Any]) -> dict[str, Array]:
        return {"loss": batch["target_weights"].sum()}

    def sums(self, outputs: dict[str, Array], batch: Mapping[str, Any]) -> dict[str, Array]:
        targets_BEC = losses.smoothed(batch["targets"], self.smoothing)
        values_BE = _LOSSES[self.kind](outputs["sequence_logits"], targets_BEC)
        return {"loss": losses.weighted_sum(values_BE, batch["target_weights"])}

    def metrics(self, totals: dict[str, float]) -> Metrics:
        return {"loss": totals["loss"] / totals["loss_count"] if totals["loss_count"] else None}


@dataclasses.dataclass(frozen=True)
class Job(ExamplesJob):
    """TextExamples of one table or GLUE task; see `tasks.job.ExamplesJob`."""

    train: TextExamples
    validation: TextExamples | None
    options: ClassificationOptions
    files: Mapping[str, Any]
    names: tuple[str, ...]  # of the metrics
    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)  # of the classes, 1 where not named
    rate: float | None = None  # dropout before the scores
    smoothing: float = 0.0  # of the targets, in training
    with_baseline: bool = False
    positive: str | None = None
    choice: Choice | None = None
    fresh: tuple[str, ...] = ("pooler", "sequence_classifier")
    compared_with = "TF-IDF and a linear model"

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.train.labels or (NUMBER,)

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for part in (self.train, self.validation):
            if part is not None:
                digest.update(repr((part.labels, part.texts)).encode())
                digest.update(targets_of(part).tobytes())
        return digest.hexdigest()

    def with_labels(self, labels: Sequence[str]) -> "Job":
        if self.options.kind == "number":
            return self
        order = [self.labels.index(name) for name in labels]

        def ordered(part: TextExamples) -> TextExamples:
            return part._replace(labels=tuple(labels), targets=targets_of(part)[:, order])

        validation = None if self.validation is None else ordered(self.validation)
        return dataclasses.replace(self, train=ordered(self.train), validation=validation)

    def task(self, config: ModelConfig) -> Classification:
        return Classification(self.options.kind, len(self.labels), self.rate, self.smoothing)

    def extra(self, scores: Metrics) -> dict[str, Any]:
        return super().extra(scores) | {"scored": {"metrics": list(self.names), "positive": self.positive}}

    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        weight_C = np.array([self.weights.get(name, 1.0) for name in self.labels], np.float32)
        # The weight of an example is that of its class, or the mean over the shares of its classes.
        targets_NC = targets_of(self.train)
        weight_N = targets_NC @ weight_C if self.weights else np.ones(len(targets_NC), np.float32)
        columns = {"targets": targets_NC, "target_weights": weight_N}
        return TrainingBatches(self.encoded(self.train, tokenizer, settings.max_length, **columns), settings)

    def encode(self, part: TextExamples, tokenizer: Tokenizer) -> EncodedExamples:
        return self.encoded(part, tokenizer, self.options.max_length)

    def encoded(
        self, part: TextExamples, tokenizer: Tokenizer, max_length: int, **of_example: np.ndarray
    ) -> EncodedExamples:
        """The examples as the encoder reads them."""
        return classification.encode(part.texts, tokenizer, max_length, **of_example)

    def score(self, scorer: Scorer, part: TextExamples, encoded: EncodedExamples) -> Metrics:
        return self.metrics(part, classification.probabilities(scorer, encoded, self.options))

    def keys_of(self, part: TextExamples) -> Iterable[Hashable]:
        return map(equal_texts.key_of, part.texts)

    def contents(self, part: TextExamples) -> Iterable[Any]:
        return part.texts

    def baseline(self) -> Metrics:
        if not self.with_baseline or self.validation is None:
            return {}
        from tasks.classification.baseline import fit_baseline  # scikit-learn is slow to import

        predict = fit_baseline(self.train.texts, targets_of(self.train), self.options.kind)
        return self.metrics(self.validation, predict(self.validation.texts))

    def metrics(self, part: TextExamples, predicted_NC: np.ndarray) -> Metrics:
        """The metrics of predictions."""
        kind, threshold = self.options.kind, self.options.threshold
        arguments = (targets_of(part), predicted_NC, kind, part.labels)
        names = computed(self.names, kind, self.positive)
        scores = classification_metrics.score(names, *arguments, positive=self.positive, threshold=threshold)
        answer = classification_metrics.constant_answer(*arguments, threshold)
        if answer and kind == "number":
            answer = "about the same number"  # a name in the log, which must not change from evaluation to evaluation
        note = constant_predictions.noted(answer, len(part.texts))
        return {name: score.value for name, score in scores.items()} | note


def targets_of(part: TextExamples) -> np.ndarray:
    """float32 [N, C] of examples that were read as labelled."""
    assert part.targets is not None
    return part.targets


def computed(names: Sequence[str], kind: str, positive: str | None) -> tuple[str, ...]:
    """The metrics that are logged: those that are named, f1 under a name that says its class, and the loss."""
    of_positive = [f"f1:{positive}"] if positive is not None and set(names) & set(OF_POSITIVE) else []
    return tuple(dict.fromkeys([*names, *of_positive, LOSS[kind]]))


def read(config: ConfigDict, *, equal_apart: bool = False) -> Job:
    """The job that configs/table.py or configs/glue.py describes; ``equal_apart``: see `tasks.job.as_begun`."""
    if config.baseline:
        check_installed("sklearn", "scikit-learn", "baseline", "config.baseline")
    rate = dropout_rate(config)
    train, validation, text, known = sources.read(config, equal_apart=equal_apart)
    kind, labels = train.kind, train.labels
    options = ClassificationOptions(kind, text, config.max_length, config.threshold)
    names = comma_names(config.metrics) or known or classification_metrics.default_metrics(kind, labels)
    # By name, and here: a model that the run starts from may have the two labels in the other order.
    positive = config.positive or (glue_tasks.TASKS[config.glue].positive if config.glue else "") or None
    if positive is None and kind == "class":
        parts = [train] if validation is None or config.validation or config.glue else [train, validation]
        positive = classification_metrics.rarer_label(np.concatenate([targets_of(part) for part in parts]), labels)
    classification_metrics.check_names(names, kind, labels, positive)
    choice = choice_of(config, computed(names, kind, positive), LOWER_IS_BETTER, validation, LOSS[kind])
    check_range("config.threshold", config.threshold, above=0, below=1)
    weights, smoothing = class_weights(config.class_weights, train), config.label_smoothing
    if smoothing and kind != "class":
        raise InputError(f"config.label_smoothing is {smoothing}, but it is for one class a row, not {kind!r}; set 0")
    files = {name: config[name] for name in sources.FILE_SETTINGS}
    return Job(train, validation, options, files, names, weights, rate, smoothing, config.baseline, positive, choice)


def class_weights(setting: str, train: TextExamples) -> dict[str, float]:
    """Class -> weight from "no=1,yes=3", or "balanced": rows / (classes * rows of the class), as in scikit-learn."""
    if not setting:
        return {}
    if train.kind != "class":
        rule = f"they are for one class a row, not {train.kind!r}; leave it empty"
        raise InputError(f"config.class_weights is {setting!r}, but {rule}")
    if setting == "balanced":
        rows_C = targets_of(train).sum(0)
        return {
            name: float(len(train.texts) / (len(train.labels) * rows)) if rows else 0.0
            for name, rows in zip(train.labels, rows_C, strict=True)
        }
    weights = comma_numbers("config.class_weights", setting, "CLASS=NUMBER", zero=False)
    for name in weights:
        check_choice("config.class_weights: class", name, train.labels)
    return weights
