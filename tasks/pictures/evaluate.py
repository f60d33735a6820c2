"""Evaluates classifiers of pictures on files, as those of texts; writes predictions with the number of each picture."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from bert.inference import LoadedModel
from bert.prediction import classification, pictures, uncertainty
from bert.prediction.pictures import PicturesOptions
from tasks.classification.evaluate import ClassificationEvaluator
from tasks.files.examples import TextExamples
from tasks.pictures import picture_files
from tasks.pictures.job import pictures_of


class PicturesEvaluator(ClassificationEvaluator):
    """See `tasks.evaluation.Evaluator`; formats as of texts, where the number of a picture is the row."""

    formats = ("csv", "tsv", "jsonl")
    file_defaults: ClassVar = {"images": "images", "classes": "labels"}
    unit = "pictures"
    options: PicturesOptions

    def __init__(self, model: LoadedModel, changes: Mapping[str, str | None], batch_size: int = 32) -> None:
        super().__init__(model, changes, batch_size)
        # Of tables, which the parent reads: no column is one of the model's, and no cell has several labels.
        self.settings |= {"text": "", "label": "", "separator": ",", "glue": "", "votes": False}

    def _options_of(self, model: LoadedModel) -> PicturesOptions:
        return pictures.options_of(model.extra, model.config)

    def read(self, data: str, *, split: str, labelled: str) -> TextExamples:
        del split
        images, classes = self.settings["images"], self.settings["classes"]
        part = picture_files.read(data, images, classes, labels=self.model.labels, labelled=labelled)
        name, options = f"{data}: {images}", self.options
        picture_NXYC = pictures.as_pictures(pictures_of(part), options.shape, name)
        pictures.warn_of_scale(picture_NXYC, options.mean, options.deviation, name)
        return part

    def predictions(self, examples: TextExamples, *, details: bool, measure: str) -> list[dict[str, Any]]:
        del details  # every answer has its probabilities already
        p_NC = self._probabilities(examples)
        return uncertainty.added(classification.answers(p_NC, self.model.labels, self.options), measure, p_NC)

    def _probabilities(self, examples: TextExamples) -> np.ndarray:
        return pictures.probabilities(self.scorer, pictures_of(examples), self.options)


EVALUATOR = PicturesEvaluator
