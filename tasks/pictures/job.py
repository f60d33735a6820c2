"""Classes of pictures: files, folds, head and loss of classification, and a linear model of the pixels beside it.

Files: picture_files.py. Prediction: bert/prediction/pictures.py.
"""

import dataclasses
import hashlib
from collections.abc import Hashable, Iterable
from typing import ClassVar

import numpy as np
from ml_collections import ConfigDict

from bert import architectures
from bert.architectures import ModelConfig
from bert.architectures.patches import PicturesConfig
from bert.data.encoded_examples import EncodedExamples
from bert.errors import InputError, check_range
from bert.extras import check_installed
from bert.prediction import pictures
from bert.prediction.pictures import PicturesOptions
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.evaluate import Metrics
from tasks.classification import job as classification
from tasks.classification.job import Classification, computed, targets_of
from tasks.files import examples
from tasks.files.examples import TextExamples
from tasks.files.records import comma_names
from tasks.job import choice_of, dropout_rate, read_parts
from tasks.metrics import classification_metrics
from tasks.metrics.classification_metrics import LOSS, LOWER_IS_BETTER
from tasks.pictures import picture_files

CONFIG = "configs/digits.py"
FILE_SETTINGS = ("images", "classes")


@dataclasses.dataclass(frozen=True)
class Job(classification.Job):
    """As that of texts."""

    options: PicturesOptions
    unit: ClassVar[str] = "pictures"
    compared: ClassVar[str] = "pictures"
    compared_with = "logistic regression of the pixels"

    has_tokenizer: ClassVar[bool] = False

    def new_model(self, config: ConfigDict) -> tuple[ModelConfig, None]:
        height, width, channels = self.options.shape
        sizes = {"vocab_size": 1, "height": height, "width": width, "channels": channels}
        return architectures.described(config.model, **sizes), None

    def task(self, config: ModelConfig) -> Classification:
        pictures.check_cut(config, self.options.shape, self.options.patch_size)
        return super().task(config)

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for part in (self.train, self.validation):
            if part is not None:
                digest.update(repr((part.labels, pictures_of(part).shape)).encode())
                digest.update(pictures_of(part).tobytes() + targets_of(part).tobytes())
        return digest.hexdigest()

    def encoded(
        self, part: TextExamples, tokenizer: Tokenizer, max_length: int, **of_example: np.ndarray
    ) -> EncodedExamples:
        del tokenizer
        return pictures.encode(pictures_of(part), self.options, **of_example)

    def keys_of(self, part: TextExamples) -> Iterable[Hashable]:
        return (picture.tobytes() for picture in pictures_of(part))

    def baseline(self) -> Metrics:
        if not self.with_baseline or self.validation is None:
            return {}
        from sklearn.linear_model import LogisticRegression  # slow to import

        def scaled(part: TextExamples) -> np.ndarray:
            pixels_NXYC = pictures_of(part)
            return (pixels_NXYC.reshape(len(pixels_NXYC), -1) - self.options.mean) / self.options.deviation

        train = targets_of(self.train)
        model = LogisticRegression(max_iter=1000).fit(scaled(self.train), train.argmax(-1))
        shares_NC = np.zeros(targets_of(self.validation).shape)
        shares_NC[:, model.classes_] = model.predict_proba(scaled(self.validation))
        return self.metrics(self.validation, shares_NC)


def pictures_of(part: TextExamples) -> np.ndarray:
    """float32 [N, X, Y, C]."""
    assert part.pictures is not None
    return part.pictures


def read(config: ConfigDict, *, equal_apart: bool = False) -> Job:
    """The job that configs/digits.py describes."""
    if config.baseline:
        check_installed("sklearn", "scikit-learn", "baseline", "config.baseline")
    if config.fold is not None and config.validation:
        raise InputError(f"config.fold is {config.fold}, and config.validation names a file; give one of them")

    def read_file(path: str) -> TextExamples:
        return picture_files.read(path, config.images, config.classes)

    def split(part: TextExamples, share: float, seed: int) -> tuple[TextExamples, TextExamples]:
        if config.fold is None:
            return examples.split(part, share, seed, equal_apart=equal_apart)
        check_range("config.folds", config.folds, at_least=2, at_most=len(part.texts), whole=True)
        check_range("config.fold", config.fold, at_least=0, below=config.folds, whole=True)
        return examples.divided(part, fold_of(part, config.folds) == config.fold, 1 / config.folds, 0)

    train, validation = read_parts(config, "pictures", read_file, split)
    if validation is not None and config.validation:
        labels = train.labels
        validation = picture_files.read(config.validation, config.images, config.classes, labels=labels)
    pixels_NXYC, size = pictures_of(train), config.model.patch_size
    rows, columns, channels = pixels_NXYC.shape[1:]
    tokens = PicturesConfig(height=rows, width=columns, channels=channels, patch_size=size).max_length
    if tokens > config.max_length:
        what = f"pictures of {rows} x {columns} pixels are {tokens:,} positions in patches of {size}"
        raise InputError(f"config.max_length is {config.max_length}, but {what}; raise it, or config.model.patch_size")
    if config.add_tokens:
        raise InputError(f"config.add_tokens is {config.add_tokens!r}, but pictures have no tokens; leave it empty")
    if validation is not None:
        pictures.as_pictures(pictures_of(validation), pixels_NXYC.shape[1:], f"{config.validation}: {config.images}")
    if len(train.labels) < 2:
        raise InputError(
            f"{config.data}: {config.classes} names one class, {train.labels[0]}; there must be two or more"
        )
    options = PicturesOptions(
        "class", (), tokens, 0.5, (rows, columns, channels), size,
        float(pixels_NXYC.mean(dtype=np.float64)), float(pixels_NXYC.std(dtype=np.float64)) or 1.0,
    )  # fmt: skip
    if validation is not None and config.validation:
        pictures.warn_of_scale(pictures_of(validation), options.mean, options.deviation, config.validation)
    names = comma_names(config.metrics) or classification_metrics.default_metrics("class", train.labels)
    positive = classification_metrics.rarer_label(targets_of(train), train.labels)
    classification_metrics.check_names(names, "class", train.labels, positive)
    choice = choice_of(config, computed(names, "class", positive), LOWER_IS_BETTER, validation, LOSS["class"])
    files = {name: config[name] for name in FILE_SETTINGS}
    rate, smoothing = dropout_rate(config), config.label_smoothing
    return Job(train, validation, options, files, names, {}, rate, smoothing, config.baseline, positive, choice)


def fold_of(part: TextExamples, folds: int) -> np.ndarray:
    """int [N]: the fold of each picture, at random, each with its share of each class; the same for the same file."""
    class_N = targets_of(part).argmax(-1)
    order = np.random.default_rng(0).permutation(len(class_N))
    order = order[np.argsort(class_N[order], kind="stable")]
    fold_N = np.empty(len(class_N), np.int64)
    fold_N[order] = np.arange(len(class_N)) % folds
    return fold_N
