"""`ExamplesJob`, the result of ``read(config, *, equal_apart=False)`` in each task's job.py; settings of jobs."""

import abc
import dataclasses
import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import jax
from ml_collections import ConfigDict

from bert.architectures import ModelConfig
from bert.data.encoded_examples import ExampleSettings, TrainingBatches
from bert.errors import InputError, check_choice, check_range
from bert.interop.model_directory import ModelDirectory
from bert.metric_names import is_count
from bert.prediction.scores import Devices, Scorer
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from bert.training.task import Task
from tasks.files import equal_texts
from tasks.files.records import comma_names

Part = TypeVar("Part")
Settings = TypeVar("Settings")


class ExamplesJob(abc.ABC):
    """Labelled examples that were read and checked, before any weight is loaded. A subclass is a frozen dataclass.

    Attributes:
      train, validation: examples with ``rows`` and a ``report``; validation is None where nothing is held out.
      options: how the head's scores are read, with ``to_json``: the settings that prediction finds in config.json.
      files: settings by which files are read; bert evaluate finds them in config.json.
      labels: names of the classes, in the order of the head's scores.
      fresh: parts of the head that are made new where the weights lack them.
      choice: which evaluation is the best; None where there is nothing to evaluate on.
      positive: the class that f1 is of; None: f1 is of no single class.
      unit: what is counted in reports.
      compared_with: what gives the scores of ``baseline``.
      compared: what ``keys_of`` gives keys of, to count those that are in both parts.
      has_tokenizer: whether a model for the examples has one: it reads or writes texts.
    """

    train: Any
    validation: Any
    options: Any
    files: Any
    labels: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ()
    choice: Choice | None = None
    positive: str | None = None
    unit: ClassVar[str] = "rows"
    compared: ClassVar[str] = "texts"
    compared_with: ClassVar[str] = ""
    has_tokenizer: ClassVar[bool] = True

    @abc.abstractmethod
    def task(self, config: ModelConfig) -> Task:
        """Model and loss."""

    @abc.abstractmethod
    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        """Batches of training."""

    @abc.abstractmethod
    def encode(self, part: Any, tokenizer: Tokenizer) -> Any:
        """The validation part as ``score`` takes it; encoded once, however often it is scored."""

    @abc.abstractmethod
    def score(self, scorer: Scorer, part: Any, encoded: Any) -> Metrics:
        """The metrics of the validation part, by name."""

    @abc.abstractmethod
    def keys_of(self, part: Any) -> Iterable[Hashable]:
        """Keys of a part's texts, passages or sentences (equal_texts.py)."""

    @abc.abstractmethod
    def contents(self, part: Any) -> Iterable[Any]:
        """What is trained on, a row each: plain values (texts, numbers, tuples and lists of them)."""

    @property
    def report(self) -> str:
        """What was read, kept and dropped, and how much of the validation part is in the training part, too."""
        parts = [("training", self.train), ("validation", self.validation)]
        lines = [f"{name}: {part.report}" for name, part in parts if part is not None]
        if self.validation is not None:
            keys = list(self.keys_of(self.validation))
            if shared := equal_texts.count_shared(self.keys_of(self.train), keys):
                lines.append(
                    f"validation: {shared:,} of {len(keys):,} {self.compared} are in the training part, too; the "
                    "scores of these say nothing of new ones"
                )
        return "\n".join(lines)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the examples and their targets."""
        parts = [list(self.contents(part)) if part else [] for part in (self.train, self.validation)]
        return hashlib.sha256(repr((parts,)).encode()).hexdigest()

    def evaluator(
        self, tokenizer: Tokenizer, config: ModelConfig, settings: ExampleSettings, devices: Devices
    ) -> Callable[[dict[str, Any]], Metrics]:
        """Parameters -> metrics of the validation part, by name."""
        encoded = self.encode(self.validation, tokenizer)
        shape: Any = {"batch_size": settings.batch_size, "packed": settings.packed, "row_unit": settings.row_unit}
        shape["progress"] = jax.process_index() == 0

        def evaluate(params: dict[str, Any]) -> Metrics:
            scorer = Scorer(params, config, tokenizer, self.labels, devices=devices, finite=False, **shape)
            return self.score(scorer, self.validation, encoded)

        return evaluate

    def new_model(self, config: ConfigDict) -> tuple[ModelConfig, Tokenizer | None] | None:
        """Of a run that starts without weights: its model and its tokenizer; None where a task needs weights."""
        return None

    def started(self, config: ConfigDict, loaded: ModelDirectory, seed: int) -> ModelDirectory:
        """What a run trains where it starts from this model: the model, or one that is made of it."""
        del config, seed
        return loaded

    def extra(self, scores: Metrics) -> dict[str, Any]:
        """Keys of config.json that prediction needs; ``scores``: of the evaluation that chose the model, if any."""
        del scores
        files = dict(self.files) if isinstance(self.files, Mapping) else dataclasses.asdict(self.files)
        return {**self.options.to_json(), "files": files}

    def with_labels(self, labels: Sequence[str]) -> Self:
        """The same examples, their targets in the order of these labels (the same names)."""
        return dataclasses.replace(self, labels=tuple(labels)) if self.labels else self  # type: ignore[type-var]

    def baseline(self) -> Metrics:
        """The same metrics of a model that needs no BERT; empty where the settings ask for none."""
        return {}


def as_begun(read: Callable[..., ExamplesJob], config: ConfigDict, settings: Mapping[str, Any] | None) -> ExamplesJob:
    """The job that the settings describe; of a run that resumes with what they left open when it was begun.

    That is the class that f1 is of where ``positive`` is empty, and which rows a split holds out: before equal texts
    were kept in one part, they could be in both (``equal_apart``). The checksum of the data says which split a run has.
    ``settings``: config.json of the run; None of a new one.
    """
    job = read(config)
    if settings is None:
        return job
    positive = ((settings.get("extra") or {}).get("scored") or {}).get("positive")
    labels, checksum = settings.get("labels") or (), settings.get("data_sha256")

    def is_of_run(job: ExamplesJob) -> bool:
        in_order = job.with_labels(labels) if sorted(labels) == sorted(job.labels) else job
        return in_order.fingerprint == checksum

    if not is_of_run(job) and is_of_run(before := read(config, equal_apart=True)):
        job = before
    if positive in job.labels and config.get("positive") == "":
        job = dataclasses.replace(job, positive=positive)  # type: ignore[type-var]
    return job


def read_parts(
    config: ConfigDict, what: str, read: Callable[[str], Part], split: Callable[..., tuple[Part, Part]], **how: Any
) -> tuple[Part, Part | None]:
    """Training and validation examples: of two files, or of one of which a share is split off (0: none).

    Args:
      what: is in the file, for the message.
      split: of (examples, share, seed, **how).
    """
    if not config.data:
        raise InputError(f"config.data is missing; name the file with the {what}")
    train = read(config.data)
    if config.validation:
        return train, read(config.validation)
    if config.validation_share:
        return split(train, config.validation_share, config.seed, **how)
    return train, None


def settings_of(kind: type[Settings], config: Mapping[str, Any]) -> Settings:
    """The dataclass whose fields are settings of the same names."""
    return kind(**{field.name: config[field.name] for field in dataclasses.fields(kind)})  # type: ignore[arg-type]


def dropout_rate(config: ConfigDict) -> float | None:
    """The dropout before a classifier's scores; None: as between the blocks."""
    if config.classifier_dropout is None:
        return None
    check_range("config.classifier_dropout", config.classifier_dropout, at_least=0, below=1)
    return float(config.classifier_dropout)


def metric_names(setting: str, usual: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The metrics to log: those that ``config.metrics`` names, else the usual ones."""
    names = comma_names(setting) or tuple(usual)
    for name in names:
        check_choice("config.metrics", name, known)
    return names


def choice_of(
    config: ConfigDict, names: Sequence[str], lower_is_better: Sequence[str], validation: Any, loss: str
) -> Choice | None:
    """Which evaluation is the best: by ``config.metric``, or the first of the ``names``, equal ones by their ``loss``.

    None where there is no validation part.
    """
    known = [name for name in (*names, loss) if not is_count(name)]
    metric = config.metric or known[0]
    check_choice("config.metric", metric, known)
    return Choice(metric, metric not in lower_is_better, config.patience, loss) if validation else None
