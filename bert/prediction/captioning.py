"""Writes captions of pictures with an encoder-decoder, and shows which cells of a picture each word reads.

The search and the costs of given captions are those of translation.py. Sizes of pictures are in the model's
configuration, the scale of the pixels in config.json. Training is tasks/captioning/job.py.
Axes: N picture, A map (a head of a layer), U word, X row of the grid, Y column.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bert import architectures
from bert.architectures import ModelConfig
from bert.data.encoded_pictures import EncodedPictures
from bert.data.sequence_pairs import EncodedPairs
from bert.errors import InputError, check_range
from bert.prediction import pictures, source_attention, task_options, translation
from bert.prediction.scores import Scorer
from bert.prediction.translation import Translation, TranslationOptions

KEY = "captioning"  # of config.json
TEXT = "caption"  # of an answer


@dataclasses.dataclass(frozen=True)
class CaptioningOptions(TranslationOptions):
    """How pictures become inputs and captions are searched; ``max_length`` is of captions."""

    key: ClassVar[str] = KEY
    mean: float = 0.0  # of the pixels in training, which is subtracted
    deviation: float = 1.0  # of these, which they are divided by

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("deviation", self.deviation, above=0, below=float("inf"))


class PictureAttention(NamedTuple):
    """The attention of a caption's U pieces to the X x Y cells of its picture.

    target, target_words: as of `source_attention.SourceAttention`.
    weights: float32 [A, U, X, Y]; those of a piece sum to 1. Of N heads, head n of layer l is map l N + n.
    """

    target: list[str]
    weights: np.ndarray
    target_words: list[int]


def options_of(extra: Mapping[str, Any], config: ModelConfig) -> CaptioningOptions:
    """The settings in a model directory."""
    return task_options.read(CaptioningOptions, extra, KEY, config.max_length)


def writes_captions(config: ModelConfig) -> bool:
    """Whether the model has a decoder that reads a picture."""
    return architectures.is_encoder_decoder(config) and bool(architectures.inputs_of(config))


def check_captions(config: ModelConfig, source: str) -> None:
    """Raises InputError for a model that does not write captions."""
    if not writes_captions(config):
        what = f"a {config.model_type!r} model has no decoder that reads pictures"
        raise InputError(f"{source}: {what}; train one by bert finetune --config=captioning")


def check_attends(scorer: Scorer) -> None:
    """Raises InputError for a model that attends to no cells."""
    config: Any = scorer.config
    if config.reads != "grid":
        raise InputError(f"{scorer.source}: reads is {config.reads!r}, so no word attends to cells; train with 'grid'")


def predict(scorer: Scorer, rows: Sequence[Any], *, details: bool = False, measure: str = "") -> list[dict[str, Any]]:
    """For each picture ``{"caption": text, "score": float}``, and ``candidates`` where there are several.

    ``rows``: pictures, numbers [N, X, Y, C] (or [N, X, Y]) of the size and scale of those in training.
    """
    del details
    if measure:
        raise InputError(f"{scorer.source}: writes captions, and has no {measure} of one; leave it out")
    check_captions(scorer.config, scorer.source)
    options = options_of(scorer.extra, scorer.config)
    read_rows = read(scorer, rows, options, "rows")
    return [translation.answer(candidates, options, TEXT) for candidates in captions(scorer, read_rows, options)]


def read(scorer: Scorer, values: Any, options: CaptioningOptions, name: str) -> list[np.ndarray]:
    """The pictures, float32 [X, Y, C], that numbers [N, X, Y, C] are; warns where their scale is not that of training.

    Raises InputError, with the ``name``, as `pictures.as_pictures`.
    """
    picture_NXYC = pictures.as_pictures(values, pictures.shape_of(scorer.config), name)
    pictures.warn_of_scale(picture_NXYC, options.mean, options.deviation, name)
    return list(picture_NXYC)


def captions(scorer: Scorer, given: Sequence[np.ndarray], options: CaptioningOptions) -> list[list[Translation]]:
    """The candidates of each picture [X, Y, C], the best first. They depend on no other picture."""
    config: Any = scorer.config
    encoded = encode(given, config.patch_size, options)
    return translation.written(scorer, encoded, lambda length: options.max_length, options, "picture")


def encode(given: Sequence[np.ndarray], patch_size: int, options: CaptioningOptions) -> EncodedPictures:
    return EncodedPictures(given, patch_size, options.mean, options.deviation)


def encode_pairs(
    scorer: Scorer, given: Sequence[np.ndarray], texts: Sequence[str], options: CaptioningOptions
) -> EncodedPairs:
    """Pictures and their captions."""
    config: Any = scorer.config
    targets = translation.encode_targets(scorer.tokenizer, texts)
    return EncodedPairs(encode(given, config.patch_size, options), targets)


def attention(
    scorer: Scorer, given: Sequence[np.ndarray], texts: Sequence[str], options: CaptioningOptions
) -> list[PictureAttention]:
    """Which cells of its picture each word of a caption reads.

    Raises InputError for a model that attends to no cells.
    """
    check_attends(scorer)
    config: Any = scorer.config
    pairs = encode_pairs(scorer, given, texts, options)
    translation.check_lengths(pairs.length_N, config.max_length, [f"caption {i}" for i in range(len(texts))])
    pieces_N = source_attention.pieces_of_targets(scorer.tokenizer, texts)
    weights_N = source_attention.weights_of(scorer, pairs)
    results = []
    for (pieces, words), weights_AUS in zip(pieces_N, weights_N, strict=True):
        maps_AUXY = weights_AUS[:, : len(pieces)].reshape(len(weights_AUS), len(pieces), *config.grid)
        results.append(PictureAttention(pieces, maps_AUXY, words))
    return results
