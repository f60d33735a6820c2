"""Pictures and their captions: loss, search and scores of translation, whose source is a picture here.

Files: captioned.py; drawn scenes: scenes.py. Prediction: bert/prediction/captioning.py.
"""

import dataclasses
import functools
import hashlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from ml_collections import ConfigDict

from bert.architectures import ModelConfig
from bert.data.sequence_pairs import EncodedPairs
from bert.prediction import captioning, pictures, translation
from bert.prediction.captioning import CaptioningOptions
from bert.prediction.scores import Scorer
from bert.prediction.translation import Translation, TranslationOptions
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.evaluate import Metrics
from tasks.captioning import captioned
from tasks.captioning.captioned import FILE_SETTINGS, Captioned, Captions
from tasks.job import read_parts, settings_of
from tasks.target_words import TargetWords
from tasks.translation import job as translating

CONFIG = "configs/captioning.py"


@dataclasses.dataclass(frozen=True)
class Job(translating.Job):
    """As that of texts."""

    train: Captions
    validation: Captions | None
    options: CaptioningOptions
    patch_size: int = 1
    unit: ClassVar[str] = "pictures"
    compared: ClassVar[str] = "captioned pictures"

    def texts(self) -> Iterable[str]:
        return (row.target or "" for row in self.train.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows, columns and channels of a picture."""
        return self.train.rows[0].picture.shape

    @property
    def source_sizes(self) -> Mapping[str, Any]:
        return dict(zip(("height", "width", "channels"), self.shape, strict=True))

    def task(self, config: ModelConfig) -> TargetWords:
        captioning.check_captions(config, "config.init_from")
        pictures.check_cut(config, self.shape, self.patch_size)
        return self.loss

    def encode(self, part: Captions, tokenizer: Tokenizer) -> EncodedPairs:
        pictures, targets = captioned.sides(part)
        encoded = captioning.encode(pictures, self.patch_size, self.options)
        return EncodedPairs(encoded, translation.encode_targets(tokenizer, targets))

    def written(self, scorer: Scorer, part: Captions, options: TranslationOptions) -> list[list[Translation]]:
        assert isinstance(options, CaptioningOptions)
        return captioning.captions(scorer, captioned.sides(part)[0], options)

    def keys_of(self, part: Captions) -> Iterable[Hashable]:
        return map(captioned.key_of, part.rows)

    def contents(self, part: Captions) -> Iterable[Any]:
        return ((hashlib.sha256(row.picture.tobytes()).hexdigest(), row.target) for row in part.rows)

    def extra(self, scores: Metrics) -> dict[str, Any]:
        keys = super().extra(scores)
        keys[captioning.KEY]["shape"] = list(self.shape)  # for people and the model card; the model has it, too
        return keys


def read(config: ConfigDict, *, equal_apart: bool = False) -> Job:
    """The job that the settings of configs/captioning.py describe; see `tasks.translation.job.read`."""
    options = settings_of(TranslationOptions, config)
    files = {name: config[name] for name in FILE_SETTINGS}
    names = translating.metrics_of(config)
    reader = functools.partial(captioned.read, settings=files)
    train, validation = read_parts(config, "captioned pictures", reader, captioned.split, equal_apart=equal_apart)
    if validation is not None:
        captioned.check_shapes(validation.rows, train.rows[0].picture.shape, "config.data has")
    mean, deviation = _scale(train.rows)
    if validation is not None and config.validation:
        pictures.warn_of_scale(captioned.sides(validation)[0], mean, deviation, config.validation)
    of_pixels = CaptioningOptions(**dataclasses.asdict(options), mean=mean, deviation=deviation)
    choice, loss = translating.chosen(config, names, validation), TargetWords(config.label_smoothing)
    return Job(train, validation, of_pixels, files, names, loss, choice, config.model.patch_size)


def _scale(rows: Iterable[Captioned]) -> tuple[float, float]:
    """Mean and standard deviation of all numbers of the pictures."""
    count, total, squares = 0, 0.0, 0.0
    for row in rows:
        values = row.picture.astype(np.float64)
        count, total, squares = count + values.size, total + values.sum(), squares + np.square(values).sum()
    mean = total / count
    return float(mean), float(np.sqrt(max(squares / count - mean**2, 0.0))) or 1.0
