"""Model and loss of tasks that write a target, word by word, from a source."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from jax import Array

from bert.architectures import ModelConfig
from bert.model import losses
from bert.model.teacher_forcing import TeacherForced
from bert.training.evaluate import Metrics
from bert.training.task import Task


@dataclasses.dataclass(frozen=True)
class TargetWords(Task):
    """For the training loop: the mean cross-entropy of the targets' words, to smoothed labels.

    ``smoothing``: of these, see `losses.smoothed`; the negative log-likelihood of the words themselves is logged, too.
    """

    smoothing: float = 0.0

    def model(self, config: ModelConfig) -> TeacherForced:
        return TeacherForced(config, self.smoothing)

    def counts(self, batch: Mapping[str, Any]) -> dict[str, Array]:
        return {"loss": batch["target_weights"].sum()}

    def sums(self, outputs: dict[str, Array], batch: Mapping[str, Any]) -> dict[str, Array]:
        names = {"loss": "smoothed", "nats": "nats", "correct": "correct"}
        return {name: losses.weighted_sum(outputs[output], batch["target_weights"]) for name, output in names.items()}

    def size(self, batch: Mapping[str, Any]) -> Any:
        """Words of the targets."""
        return (batch["target_example_ids"] > 0).sum(dtype="float32")

    def metrics(self, totals: dict[str, float]) -> Metrics:
        """``loss``: as trained; those of `of_words`."""
        count = totals["loss_count"]
        trained = {"loss": totals["loss"] / count if count else None}
        return trained | of_words(totals["nats"], count, totals["correct"])


def of_words(nats: float, words: float, correct: float) -> Metrics:
    """nll: nats a word, without smoothing; its perplexity; accuracy: the share of words that no other outscores."""
    if not words:
        return {"nll": None, "perplexity": None, "accuracy": None}
    nll = nats / words
    return {"nll": nll, "perplexity": math.exp(min(nll, 700.0)), "accuracy": correct / words}
