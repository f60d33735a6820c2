"""What a task file offers to launch.finetune: ``read(config) -> Job``, and what jobs share.

A new task is one new file here and one in configs/, and one in evaluation/ that scores and writes predictions.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from bert.config import BertConfig
from bert.data.examples import ExampleSettings, TrainingBatches
from bert.errors import InputError
from bert.prediction.scores import Devices
from bert.text.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from bert.training.task import Task


class Job(Protocol):
    """Examples that were read and checked, before any weight is loaded."""

    report: str  # what was read, kept and dropped, for people
    fingerprint: str  # of the examples and their labels
    labels: tuple[str, ...]  # names of the classes, in the order of the head's scores
    fresh: tuple[str, ...]  # parts of the head that are made new where the weights lack them
    choice: Choice | None  # which evaluation is the best; None: there is nothing to evaluate on

    def with_labels(self, labels: Sequence[str]) -> "Job":
        """The same examples, their targets in the order of these labels (the same names)."""
        ...

    def task(self, config: BertConfig) -> Task:
        """Head and losses."""
        ...

    def extra(self, scores: Metrics) -> dict[str, Any]:
        """Keys of config.json that prediction needs; ``scores``: of the evaluation that chose the model, if any."""
        ...

    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        """Batches of training."""
        ...

    def evaluator(
        self, tokenizer: Tokenizer, config: BertConfig, settings: ExampleSettings, devices: Devices
    ) -> Callable[[dict], Metrics]:
        """Parameters -> metrics of the validation part, by name."""
        ...

    def baseline(self) -> Mapping[str, float | None]:
        """The same metrics of a model that needs no BERT; empty where that was not asked for."""
        ...


def report_of(train: Any, validation: Any) -> str:
    """What was read, a line or more a part; each has a ``report``."""
    parts = [("training", train), ("validation", validation)]
    return "\n".join(f"{name}: {part.report}" for name, part in parts if part is not None)


def fingerprint_of(*parts: Any) -> str:
    """SHA-256 of plain values (texts, numbers, tuples and lists of them)."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def chosen_metric(told: str, names: Sequence[str]) -> str:
    """The metric that chooses the best evaluation: ``config.metric``, or the first of those computed.

    Raises:
      InputError: it is not among them.
    """
    if told and told not in names:
        raise InputError(f"config.metric is {told!r}; it must be one of those computed: {', '.join(names)}")
    return told or names[0]
