"""Evaluates models that write captions, and writes captions of files; of drawn scenes also where words look,
of emoji which attributes are right."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from bert.data.sequence_pairs import EncodedPairs
from bert.errors import check_choice
from bert.pages import caption_page
from bert.prediction import captioning, pictures
from bert.prediction.captioning import CaptioningOptions
from bert.prediction.translation import Translation, TranslationOptions
from tasks.captioning import captioned, emoji, looking
from tasks.captioning.captioned import FILE_SETTINGS, Captions
from tasks.captioning.emoji import Person
from tasks.metrics import translation_metrics
from tasks.metrics.score import Score
from tasks.translation.evaluate import SEARCH, TranslationEvaluator


class CaptioningEvaluator(TranslationEvaluator):
    """See `tasks.evaluation.Evaluator`; formats as of translations, where the name of a picture is the source."""

    file_defaults: ClassVar = FILE_SETTINGS | dict.fromkeys((*SEARCH, "attention"), "")
    unit = "pictures"
    written: ClassVar[str] = captioning.TEXT
    read_from: ClassVar[str] = "picture"
    options: CaptioningOptions
    options_of: ClassVar[Callable[..., CaptioningOptions]] = staticmethod(captioning.options_of)

    def read(self, data: str, *, split: str, labelled: str) -> Captions:
        del split
        shape = pictures.shape_of(self.scorer.config)
        part = captioned.read(data, self.settings, labelled=labelled == "needed", shape=shape)
        pictures.warn_of_scale(captioned.sides(part)[0], self.options.mean, self.options.deviation, data)
        return part

    def check_metrics(self, names: Sequence[str], examples: Captions) -> None:
        more = looking.NAMES if self._has_boxes(examples) else emoji.NAMES if _people(examples) else ()
        known = (*translation_metrics.NAMES, *more)
        for name in names:
            check_choice("--metrics", name, known)
        translation_metrics.check_installed(names, "--metrics")

    def _add_lengths(self, *arguments: Any) -> None:
        """Pictures are of one size."""

    def _has_boxes(self, examples: Captions) -> bool:
        """Whether it is known where objects are, and the model looks at places."""
        return any(row.things for row in examples.rows) and getattr(self.scorer.config, "reads", "") == "grid"

    def _more_scores(self, examples: Captions, texts: Sequence[str]) -> dict[str, Score]:
        if people := _people(examples):
            return emoji.scores(people, texts)
        if not self._has_boxes(examples):
            return {}
        read = captioning.attention(self.scorer, *captioned.sides(examples), self.options)
        config: Any = self.scorer.config
        maps = [found.weights[-looking.last_maps(config) :].mean(0) for found in read]
        words = [found.target_words for found in read]
        return looking.scores([row.things for row in examples.rows], maps, words, config.patch_size)

    def _encoded(self, examples: Captions) -> EncodedPairs:
        return captioning.encode_pairs(self.scorer, *captioned.sides(examples), self.options)

    def _translated(self, examples: Captions, options: TranslationOptions) -> list[list[Translation]]:
        assert isinstance(options, CaptioningOptions)
        return captioning.captions(self.scorer, captioned.sides(examples)[0], options)

    def _check_attention(self) -> None:
        captioning.check_attends(self.scorer)

    def _page(self, examples: Captions, texts: list[str]) -> str:
        pictures, names = captioned.sides(examples)[0], [row.source for row in examples.rows]
        return caption_page.of_captions(self.scorer, self.options, pictures, texts, names)


def _people(examples: Captions) -> list[Person]:
    """Of a part of the emoji; else none."""
    return [row.person for row in examples.rows if row.person is not None]


EVALUATOR = CaptioningEvaluator
