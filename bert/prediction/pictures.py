"""Predicts classes of pictures, from the classifier's scores at [CLS].

Sizes and scale of the pixels are stored in config.json, so a model directory and arrays are all that is needed.
Training is tasks/pictures/job.py. Axes: N picture, X row, Y column, C channel.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from bert.architectures import ModelConfig
from bert.data import encoded_pictures
from bert.data.encoded_examples import EncodedExamples
from bert.errors import InputError
from bert.prediction import classification, scores, uncertainty
from bert.prediction.classification import ClassificationOptions
from bert.prediction.scores import Scorer

KEY = "pictures"  # of config.json


@dataclasses.dataclass(frozen=True)
class PicturesOptions(ClassificationOptions):
    """How pixels become inputs: cut into patches, less the ``mean`` of those in training, over their ``deviation``."""

    shape: tuple[int, int, int] = (8, 8, 1)  # rows, columns and channels of a picture
    patch_size: int = 2
    mean: float = 0.0
    deviation: float = 1.0

    def to_json(self) -> dict[str, Any]:
        names = ("shape", "patch_size", "mean", "deviation")
        values = {name: getattr(self, name) for name in names} | {"shape": list(self.shape)}
        return {KEY: values, "problem_type": super().to_json()["problem_type"]}


def options_of(extra: Mapping[str, Any], config: ModelConfig) -> PicturesOptions:
    """The settings in a model directory. Raises InputError for values of another form."""
    match extra.get(KEY):
        case {
            "shape": [int(rows), int(columns), int(channels)],
            "patch_size": int(size),
            "mean": float(mean),
            "deviation": float(deviation),
        } if deviation > 0:
            shape = (rows, columns, channels)
            return PicturesOptions("class", (), config.max_length, 0.5, shape, size, mean, deviation)
    like = PicturesOptions("class", (), 0).to_json()[KEY]
    raise InputError(f"{KEY} in config.json is {extra.get(KEY)!r:.200}; it must be like {like}")


def predict(scorer: Scorer, rows: Sequence[Any], *, details: bool = False, measure: str = "") -> list[dict[str, Any]]:
    """As of `classification.answers`, with ``measure`` also the uncertainty; there are no further details.

    ``rows``: pictures, numbers [N, X, Y] or [N, X, Y, C] of the size and scale of those in training.
    """
    del details
    options = options_of(scorer.extra, scorer.config)
    picture_NXYC = as_pictures(rows, options.shape)
    warn_of_scale(picture_NXYC, options.mean, options.deviation, "rows")
    p_NC = probabilities(scorer, picture_NXYC, options)
    return uncertainty.added(classification.answers(p_NC, scorer.labels, options), measure, p_NC)


def shape_of(config: Any) -> tuple[int, int, int]:
    """Rows, columns and channels of the pictures that a model reads."""
    return config.height, config.width, config.channels


def check_cut(config: Any, shape: tuple[int, ...], patch_size: int) -> None:
    """Raises InputError where the model that training starts from reads other pictures, or cuts them otherwise."""
    if (theirs := shape_of(config)) != shape:
        sizes = [" x ".join(map(str, size)) for size in (shape, theirs)]
        raise InputError(f"the pictures are {sizes[0]}, but config.init_from reads {sizes[1]}; scale them to that")
    if config.patch_size != patch_size:
        rule = f"config.init_from has {config.patch_size}; set it to that"
        raise InputError(f"config.model.patch_size is {patch_size}, but {rule}")


def as_pictures(values: Any, shape: tuple[int, int, int] | None = None, name: str = "rows") -> np.ndarray:
    """Float32 [N, X, Y, C] of numbers with or without C. InputError, naming them, for others, or of another shape."""
    if hasattr(values, "getbands"):  # an image of Pillow has no ndim, and NumPy takes its rows for pictures
        raise InputError(f"{name} is an image of Pillow; give an array, numpy.asarray(picture)[None]")
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{name} holds pictures of several sizes; give all the same size") from None
    if array.dtype.kind not in "buif" or array.ndim not in (3, 4) or 0 in array.shape[1:]:
        what = f"{name} is {array.dtype} {list(array.shape)}"
        raise InputError(f"{what}; it must be numbers [N, rows, columns] or [N, rows, columns, channels]")
    with np.errstate(over="ignore"):  # what is infinite in float32 is refused below
        array = (array if array.ndim == 4 else array[..., None]).astype(np.float32)
    if shape is not None and array.shape[1:] != shape:
        theirs, ours = (" x ".join(map(str, size)) for size in (array.shape[1:], shape))
        raise InputError(f"{name} holds pictures of {theirs}, the model reads {ours}; scale them to that")
    if not np.isfinite(array).all():
        first = int(np.flatnonzero(~np.isfinite(array).all((1, 2, 3)))[0])
        raise InputError(f"{name}: picture {first} holds a pixel that is no finite number; mend or drop it")
    return array


def warn_of_scale(given: Iterable[np.ndarray], mean: float, deviation: float, name: str) -> None:
    """Logs a warning where the numbers are ten times those in training, or a tenth of them (root mean squares).

    ``mean``, ``deviation``: of those in training. Where all are 0, which is black in any scale, nothing is known.
    """
    trained = math.hypot(mean, deviation)
    squares = [float(np.square(picture, dtype=np.float64).mean()) for picture in given]
    new = math.sqrt(sum(squares) / max(1, len(squares)))
    if new and not trained / 10 < new < trained * 10:
        what = "the root mean square of the numbers is %.3g, in training it was %.3g"
        logging.warning(f"%s: {what}; are they of the same scale (0 to 255, or 0 to 1)?", name, new, trained)


def encode(pictures_NXYC: np.ndarray, options: PicturesOptions, **of_example: np.ndarray) -> EncodedExamples:
    """The pictures as the encoder reads them."""
    scaled = (pictures_NXYC - np.float32(options.mean)) / np.float32(options.deviation)
    return encoded_pictures.encode(scaled, options.patch_size, **of_example)


def probabilities(scorer: Scorer, pictures_NXYC: np.ndarray, options: PicturesOptions) -> np.ndarray:
    """float64 [N, classes]."""
    return scores.softmax(scorer.of_examples(encode(pictures_NXYC, options), options.max_length))
