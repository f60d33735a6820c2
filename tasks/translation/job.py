"""Pairs of a sentence and its translation, for an encoder-decoder whose weights and vocabulary begin with these texts.

Files: pairs.py. Loss: tasks/target_words.py. Scores: tasks/metrics/translation_metrics.py. Prediction:
bert/prediction/translation.py.
"""

import dataclasses
import functools
import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from absl import logging
from ml_collections import ConfigDict

from bert import architectures, config_fields
from bert.architectures import ModelConfig
from bert.data.encoded_examples import ExampleSettings, TrainingBatches
from bert.data.sequence_pairs import EncodedPairs
from bert.errors import InputError
from bert.interop import warm_start
from bert.interop.model_directory import ModelDirectory
from bert.interop.warm_start import WarmStart
from bert.prediction import translation
from bert.prediction.scores import Scorer
from bert.prediction.translation import Translation, TranslationOptions
from bert.tokenizer import bpe_training
from bert.tokenizer.added_words import words_of
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from tasks.job import ExamplesJob, choice_of, metric_names, read_parts, settings_of
from tasks.metrics import translation_metrics
from tasks.target_words import TargetWords
from tasks.translation import pairs
from tasks.translation.pairs import FILE_SETTINGS, Sourced

CONFIG = "configs/translation.py"


@dataclasses.dataclass(frozen=True)
class Job(ExamplesJob):
    """Pairs of texts; see `tasks.job.ExamplesJob`."""

    train: Sourced
    validation: Sourced | None
    options: TranslationOptions
    files: Mapping[str, Any]
    names: tuple[str, ...]  # of the metrics that are logged
    loss: TargetWords
    choice: Choice | None = None
    unit = "pairs"
    compared = "pairs"

    def new_model(self, config: ConfigDict) -> tuple[ModelConfig, Tokenizer]:
        """Sizes as the settings and the sources have them, and a vocabulary of the training part's texts."""
        if "variant" in config.model:
            what = f"config.init_from is missing; {config.model.variant} has the sizes and the vocabulary of a BERT"
            raise InputError(f"{what}: name its directory, also where nothing else is taken from it")
        tokenizer = bpe_training.train(self.texts(), config.vocab_size).add_words(words_of(config.add_tokens))
        sizes = {"vocab_size": tokenizer.vocab_size, "start_id": tokenizer.cls_id, **self.source_sizes}
        return architectures.described(config.model, **sizes), tokenizer

    def started(self, config: ConfigDict, loaded: ModelDirectory, seed: int) -> ModelDirectory:
        """Of a BERT and settings with a ``variant``, an encoder-decoder that begins with its weights."""
        if "variant" not in config.model or translation.translates(loaded.config):
            return loaded
        made = warm_start.encoder_decoder(loaded, config_fields.build(WarmStart, config.model), seed)
        logging.info("%s", made.report.notes[-1])
        return made

    def texts(self) -> Iterable[str]:
        """Of both sides."""
        return itertools.chain.from_iterable((row.source, row.target or "") for row in self.train.rows)

    @property
    def source_sizes(self) -> Mapping[str, Any]:
        """Fields of the model's configuration that the sources decide."""
        return {}

    def task(self, config: ModelConfig) -> TargetWords:
        translation.check_translates(config, "config.init_from")
        return self.loss

    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        encoded = self.encode(self.train, tokenizer)
        fit = pairs.fitting(self.train, encoded.length_N, settings.max_length)
        if fit.left_out:
            logging.warning(
                "%d of %d pairs are longer than max_length, %d tokens, and are left out (first %s); raise it to train "
                "on them",
                *(fit.left_out, len(encoded), settings.max_length, fit.first),
            )
            encoded = encoded.take(fit.kept)
        return TrainingBatches(encoded, settings)

    def encode(self, part: Sourced, tokenizer: Tokenizer) -> EncodedPairs:
        sides = ([row.source for row in part.rows], [row.target or "" for row in part.rows])
        return translation.encode_pairs(tokenizer, *sides)

    def score(self, scorer: Scorer, part: Sourced, encoded: EncodedPairs) -> Metrics:
        fit = pairs.fitting(part, encoded.length_N, scorer.config.max_length)
        if fit.left_out:
            limit = scorer.config.max_length
            raise InputError(f"{fit.first}: has more tokens than the model has positions, {limit}; split the sentence")
        values = translation_metrics.of_costs(*translation.costs(scorer, encoded))
        if translation_metrics.of_texts(self.names):
            greedy = dataclasses.replace(self.options, beams=1, best=1)
            candidates_N = self.written(scorer, part, greedy)
            texts = [candidates[0].text for candidates in candidates_N]
            values |= translation_metrics.scores(texts, [row.target or "" for row in part.rows])
        names = dict.fromkeys((*self.names, translation_metrics.LOSS))
        return {name: values[name].value for name in names}

    def written(self, scorer: Scorer, part: Sourced, options: TranslationOptions) -> list[list[Translation]]:
        """Candidates of each target."""
        return translation.translations(scorer, [row.source for row in part.rows], options)

    def keys_of(self, part: Sourced) -> Iterable[Hashable]:
        return map(pairs.key_of, part.rows)

    def contents(self, part: Sourced) -> Iterable[Any]:
        return ((row.source, row.target) for row in part.rows)


def read(config: ConfigDict, *, equal_apart: bool = False) -> Job:
    """The job that the settings of configs/translation.py describe; ``equal_apart``: see `tasks.job.as_begun`."""
    options = settings_of(TranslationOptions, config)
    files = {name: config[name] for name in FILE_SETTINGS}
    names = metrics_of(config)
    reader = functools.partial(pairs.read_pairs, settings=files)
    train, validation = read_parts(config, "pairs", reader, pairs.split, equal_apart=equal_apart)
    loss = TargetWords(config.label_smoothing)
    return Job(train, validation, options, files, names, loss, chosen(config, names, validation))


def metrics_of(config: ConfigDict) -> tuple[str, ...]:
    """The metrics that are logged, the one that chooses the best evaluation among them."""
    names = metric_names(config.metrics, translation_metrics.USUAL, translation_metrics.NAMES)
    more = [config.metric] if config.metric in translation_metrics.NAMES else []
    translation_metrics.check_installed([*names, *more], "config.metrics")
    return tuple(dict.fromkeys([*names, *more]))


def chosen(config: ConfigDict, names: Sequence[str], validation: Any) -> Choice | None:
    """Which evaluation is the best."""
    return choice_of(config, names, translation_metrics.LOWER_IS_BETTER, validation, translation_metrics.LOSS)
