"""`TextGeneration`: a loaded causal model continues texts, an encoder-decoder translates them or writes captions of
pictures; of `LoadedModel`."""

import abc
import dataclasses
from collections.abc import Iterable, Mapping, Set
from typing import Any, TypeVar

import numpy as np

from bert import architectures
from bert.errors import InputError, check_choice, check_range, short_repr
from bert.prediction import captioning, source_attention, translation
from bert.prediction.captioning import PictureAttention
from bert.prediction.fill_mask import FilledMasks
from bert.prediction.generation import GenerationSettings, continued_texts
from bert.prediction.scores import Scorer
from bert.prediction.source_attention import SourceAttention
from bert.prediction.translation import Translation, TranslationOptions
from bert.sentences.text_vectors import TextVectors

Options = TypeVar("Options", bound=TranslationOptions)


class TextGeneration(TextVectors):
    """What `LoadedModel` inherits."""

    source: str  # what messages call the model

    @abc.abstractmethod
    def outputs(self, token_ids: Any) -> dict[str, np.ndarray]:
        """What the encoder and its heads give for token ids [B, T]."""

    def next_words(self, text: str, top: int = 5) -> list[tuple[str, float]]:
        """The likeliest tokens behind a text, by a causal model: ``[(token, probability), ...]``."""
        self._need_causal()
        tokenizer = self.vocabulary
        ids = [*tokenizer.template.before, *tokenizer.encode_ids([text], special_in_text=True)[0]]
        if not 0 < len(ids) <= (limit := self.config.max_length):
            raise InputError(f"the text has {len(ids)} tokens; give it 1 to {limit}, the model's positions")
        logits_BTV = self.outputs([ids])["mlm_logits"]
        return FilledMasks(text, [], logits_BTV[0, -1:], tokenizer).ranked(top)[0]

    def generate(self, texts: Any, *, batch_size: int = 32, **settings: Any) -> Any:
        """The text as it was given, continued by a causal model; of a list of texts the list.

        ``settings``: of `GenerationSettings`: max_new_tokens, temperature, top_k, top_p, seed. A text's continuation
        depends on its place in the list, but not on the other texts. Special tokens may be written in the text.
        """
        self._need_causal()
        check_range("batch_size", batch_size, at_least=1, whole=True)
        known = [field.name for field in dataclasses.fields(GenerationSettings)]
        for name in settings:
            check_choice("a setting of generate", name, known)
        continued = continued_texts(
            self.on_device,
            self.config,
            self.vocabulary,
            _rows(texts),
            GenerationSettings(**settings),
            batch_size=batch_size,
        )
        return continued[0] if isinstance(texts, str) else continued

    @abc.abstractmethod
    def scorer(self, *, batch_size: int = 32) -> Scorer:
        """The model as functions of bert/prediction take it."""

    def translate(self, texts: Any, *, batch_size: int = 32, **settings: Any) -> Any:
        """The translation of a text by an encoder-decoder; of a list of texts the list.

        ``settings``: of `TranslationOptions`: beams, length_penalty; others are the model's. With ``best`` above 1, the
        candidates of each text, `Translation`s with their scores, the best first. No text depends on another.
        """
        scorer = self.scorer(batch_size=batch_size)
        options = _changed(translation.options_of(scorer.extra, scorer.config), "translate", settings)
        candidates_N = translation.translations(scorer, _rows(texts), options)
        results = _best(candidates_N, options)
        return results[0] if isinstance(texts, str) else results

    def caption(self, pictures: Any, *, batch_size: int = 32, **settings: Any) -> Any:
        """The caption of a picture [X, Y, C] by an encoder-decoder; of pictures [N, X, Y, C] or a list the list.

        Numbers of the size and scale of those in training: 0 to 255 of picture files; a warning says where they seem of
        another. ``settings`` and results: as of `translate`.
        """
        captioning.check_captions(self.config, self.source)
        scorer, one = self.scorer(batch_size=batch_size), getattr(pictures, "ndim", 0) == 3
        options = _changed(captioning.options_of(scorer.extra, scorer.config), "caption", settings)
        rows = captioning.read(scorer, pictures[None] if one else pictures, options, "pictures")
        results = _best(captioning.captions(scorer, rows, options), options)
        return results[0] if one else results

    def picture_attention(self, picture: Any, target: str | None) -> PictureAttention:
        """Which cells of a picture [X, Y, C] an encoder-decoder reads to write the target; None: its own caption."""
        scorer, values = self.scorer(batch_size=1), np.asarray(picture)
        if values.ndim not in (2, 3):
            what = f"the picture is {values.dtype} {list(values.shape)}"
            raise InputError(f"{what}; it must be numbers [rows, columns, channels], of one picture")
        options = captioning.options_of(scorer.extra, scorer.config)
        rows = captioning.read(scorer, values[None], options, "the picture")
        written = captioning.captions(scorer, rows, options)[0][0].text if target is None else target
        return captioning.attention(scorer, rows, [written], options)[0]

    def source_attention(self, source: str, target: str | None) -> SourceAttention:
        """How an encoder-decoder reads the source to write the target; None: its own translation."""
        written = self.translate(source) if target is None else target
        return source_attention.of_texts(self.scorer(batch_size=1), [source], [written])[0]

    def _need_causal(self) -> None:
        if not architectures.is_causal(self.config):
            trained = " or ".join(architectures.objectives_of(self.config)) or self.config.model_type
            raise InputError(
                f"{self.source}: is a {trained!r} model; pretrain one with objective=causal to generate text"
            )
        self.need("mlm", "only a pretrained model can generate text")

    def refuse_causal(self, way_out: str) -> None:
        """Raises InputError, with the way out, for a causal model: it cannot predict a word from those behind it."""
        if architectures.is_causal(self.config):
            raise InputError(f"{self.source}: is a causal model, which sees only what stands before; {way_out}")


def _changed(options: Options, method: str, settings: dict[str, Any]) -> Options:
    """The options with the settings that a method was given."""
    for name in settings:
        check_choice(f"a setting of {method}", name, ("beams", "length_penalty", "best"))
    # One beam has one candidate, whatever the model's settings are.
    return dataclasses.replace(options, **{"best": 1} | settings)


def _best(candidates_N: list[list[Translation]], options: TranslationOptions) -> list[Any]:
    """The text of each, or its candidates where several are asked for."""
    return candidates_N if options.best > 1 else [candidates[0].text for candidates in candidates_N]


def _rows(texts: Any) -> list[Any]:
    """A text as a list of one; a list of texts as it is."""
    is_list = isinstance(texts, Iterable) and not isinstance(texts, Mapping | Set | bytes)
    if not is_list or getattr(texts, "shape", None) == ():  # an array without axes has no items
        raise InputError(f"{short_repr(texts)}: give a text or a list of texts")
    return [texts] if isinstance(texts, str) else list(texts)
