"""What a task file offers to launch.finetune: ``read(config, *, equal_apart=False) -> Job``, and what jobs share.

A new task is one new file here and one in configs/, and one in evaluation/ that scores and writes predictions.
"""

import dataclasses
import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from ml_collections import ConfigDict

from bert.architectures import ModelConfig
from bert.data.encoded_examples import ExampleSettings, TrainingBatches
from bert.errors import InputError
from bert.prediction.scores import Devices
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from bert.training.task import Task
from tasks.files import equal_texts
from tasks.files.records import comma_names
from tasks.metrics.classification_metrics import is_count

Part = TypeVar("Part")
Settings = TypeVar("Settings")
Split = Callable[[Part, float, int], tuple[Part, Part]]


class Job(Protocol):
    """Examples that were read and checked, before any weight is loaded."""

    report: str  # what was read, kept and dropped, for people
    fingerprint: str  # of the examples and their labels
    labels: tuple[str, ...]  # names of the classes, in the order of the head's scores
    fresh: tuple[str, ...]  # parts of the head that are made new where the weights lack them
    choice: Choice | None  # which evaluation is the best; None: there is nothing to evaluate on
    positive: str | None  # the class that f1 is of; None: f1 is of no single class

    def with_labels(self, labels: Sequence[str]) -> "Job":
        """The same examples, their targets in the order of these labels (the same names)."""
        ...

    def task(self, config: ModelConfig) -> Task:
        """Head and losses."""
        ...

    def extra(self, scores: Metrics) -> dict[str, Any]:
        """Keys of config.json that prediction needs; ``scores``: of the evaluation that chose the model, if any."""
        ...

    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        """Batches of training."""
        ...

    def evaluator(
        self, tokenizer: Tokenizer, config: ModelConfig, settings: ExampleSettings, devices: Devices
    ) -> Callable[[dict], Metrics]:
        """Parameters -> metrics of the validation part, by name."""
        ...

    def baseline(self) -> Mapping[str, float | None]:
        """The same metrics of a model that needs no BERT; empty where that was not asked for."""
        ...


def as_begun(read: Callable[..., Job], config: ConfigDict, settings: Mapping[str, Any] | None) -> Job:
    """The job that the settings describe; of a run that goes on with what they left open when it was begun.

    That is the class that f1 is of where ``positive`` is empty, and which rows a split holds out: before equal texts
    were kept in one part, they could be in both (``equal_apart``). The checksum of the data says which split a run has.

    Args:
      read: of a task, see the head of this file.
      settings: config.json of the run; None of a new one.
    """
    job: Any = read(config)
    if settings is None:
        return job
    positive = ((settings.get("extra") or {}).get("scored") or {}).get("positive")
    labels, checksum = settings.get("labels") or (), settings.get("data_sha256")

    def is_of_run(job: Job) -> bool:
        in_order = job.with_labels(labels) if sorted(labels) == sorted(job.labels) else job
        return in_order.fingerprint == checksum

    if not is_of_run(job) and is_of_run(before := read(config, equal_apart=True)):
        job = before
    if positive in job.labels and config.get("positive") == "":
        job = dataclasses.replace(job, positive=positive)
    return job


def read_parts(
    config: ConfigDict, what: str, read: Callable[[str], Part], split: Split[Part]
) -> tuple[Part, Part | None]:
    """Training and validation examples: of two files, or of one of which a share is split off (0: none).

    Args:
      what: is in the file, for the message.
      read: of a file's name.
      split: of (examples, share, seed).
    """
    if not config.data:
        raise InputError(f"config.data is missing; name the file with the {what}")
    train = read(config.data)
    if config.validation:
        return train, read(config.validation)
    if config.validation_share:
        return split(train, config.validation_share, config.seed)
    return train, None


def settings_of(kind: type[Settings], config: Mapping[str, Any]) -> Settings:
    """The dataclass whose fields are settings of the same names."""
    return kind(**{field.name: config[field.name] for field in dataclasses.fields(kind)})  # type: ignore[arg-type]


def dropout_rate(config: ConfigDict) -> float | None:
    """The dropout before a classifier's scores; None: as between the blocks."""
    rate = config.classifier_dropout
    if rate is not None and not 0 <= rate < 1:
        raise InputError(f"config.classifier_dropout is {rate}; it must be from 0 to below 1")
    return None if rate is None else float(rate)


def report_of(train: Any, validation: Any, what: str, keys_of: Callable[[Any], Iterable[Hashable]]) -> str:
    """What was read, a line or more a part, and how much of the validation part is in the training part, too.

    Args:
      train, validation: have a ``report``.
      what, keys_of: what is looked for in both (such as "texts"), and its keys in a part, see equal_texts.py.
    """
    parts = [("training", train), ("validation", validation)]
    lines = [f"{name}: {part.report}" for name, part in parts if part is not None]
    if validation is not None:
        keys = list(keys_of(validation))
        if shared := equal_texts.count_shared(keys_of(train), keys):
            lines.append(
                f"validation: {shared:,} of {len(keys):,} {what} are in the training part, too; the scores of these "
                "say nothing of new ones"
            )
    return "\n".join(lines)


def fingerprint_of(train: Any, validation: Any, content: Callable[[Any], Any]) -> str:
    """SHA-256 of the examples of both parts.

    Args:
      train, validation: have ``rows``.
      content: of a row, what is read of it: plain values (texts, numbers, tuples and lists of them).
    """
    parts = [[content(row) for row in (part.rows if part else [])] for part in (train, validation)]
    return hashlib.sha256(repr((parts,)).encode()).hexdigest()


def metric_names(setting: str, usual: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The metrics to log: those that ``config.metrics`` names, else the usual ones."""
    names = comma_names(setting) or tuple(usual)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(f"metric {unknown[0]!r} is unknown for these data; it must be one of {', '.join(known)}")
    return names


def choice_of(
    config: ConfigDict, names: Sequence[str], lower_is_better: Sequence[str], validation: Any, loss: str
) -> Choice | None:
    """Which evaluation is the best, equal ones by their ``loss``; None where there is no validation part."""
    metric = chosen_metric(config.metric, [*names, loss])
    return Choice(metric, metric not in lower_is_better, config.patience, loss) if validation else None


def chosen_metric(setting: str, names: Sequence[str]) -> str:
    """The metric that chooses the best evaluation: ``config.metric``, or the first of those computed."""
    names = [name for name in names if not is_count(name)]
    if setting and setting not in names:
        raise InputError(f"config.metric is {setting!r}; it must be one of those computed: {', '.join(names)}")
    return setting or names[0]
