"""The pretraining task: words, by an objective, and next sentence or sentence order."""

import dataclasses
import math
from collections.abc import Iterable

import jax.numpy as jnp
import numpy as np
from jax import Array

from bert.architectures import ModelConfig
from bert.model import losses
from bert.model.heads import Model, PretrainingHead
from bert.training.task import Task
from bert.types import Batch


@dataclasses.dataclass(frozen=True)
class Pretraining(Task):
    """Words + next sentence; ``pairs=False`` drops the second (RoBERTa).

    ``objective``, a key of `objectives.OBJECTIVES`, is the name of the words' loss. Batches say which words those are.
    """

    pairs: bool = True
    objective: str = "mlm"

    def model(self, config: ModelConfig) -> Model:
        return Model(config, PretrainingHead(config, with_next_sentence=self.pairs))

    def counts(self, batch: Batch) -> dict[str, Array]:
        counts = {self.objective: batch["masked_weights"].sum()}
        return counts | ({"nsp": batch["next_sentence_weights"].sum()} if self.pairs else {})

    def sums(self, outputs: dict[str, Array], batch: Batch) -> dict[str, Array]:
        def summed(name: str, loss: Array, correct: Array, weights: Array) -> dict[str, Array]:
            return {name: losses.weighted_sum(loss, weights), f"{name}_correct": losses.weighted_sum(correct, weights)}

        sums = summed(self.objective, outputs["mlm_cross_entropy"], outputs["mlm_correct"], batch["masked_weights"])
        if self.pairs:
            logits_BE2, labels_BE = outputs["nsp_logits"], batch["next_sentence_labels"]
            correct_BE = (logits_BE2.argmax(-1) == labels_BE).astype(jnp.float32)
            loss_BE = losses.cross_entropy(logits_BE2, labels_BE)
            sums |= summed("nsp", loss_BE, correct_BE, batch["next_sentence_weights"])
        return sums

    def metrics(self, totals: dict[str, float]) -> dict[str, float | None]:
        """Means mlm_loss, nsp_loss and loss, their sum; mlm_perplexity, mlm_accuracy and nsp_accuracy.

        "mlm" is the name of the objective.
        """
        words, values = self.objective, dict[str, float | None]()
        for name in (words, "nsp") if self.pairs else (words,):
            count = totals[f"{name}_count"]
            values[f"{name}_loss"] = totals[name] / count if count else None
            values[f"{name}_accuracy"] = totals[f"{name}_correct"] / count if count else None
        known = [value for key, value in values.items() if key.endswith("_loss") and value is not None]
        nats = values[f"{words}_loss"]
        perplexity = math.exp(min(nats, 700.0)) if nats is not None else None
        return {"loss": sum(known) if known else None, f"{words}_perplexity": perplexity, **values}


def baselines(batches: Iterable[dict[str, np.ndarray]], objective: str = "mlm") -> dict[str, float]:
    """``mlm_accuracy`` ("mlm" is the name of the objective) of the most frequent predicted token and, where there are
    labels, ``nsp_accuracy`` of the larger class of pairs, on these batches; each counts by its weight."""
    tokens: np.ndarray = np.zeros(0)
    classes = np.zeros(2)
    for batch in batches:
        more = np.bincount(batch["masked_ids"].ravel(), batch["masked_weights"].ravel(), minlength=tokens.size)
        tokens = more + np.pad(tokens, (0, more.size - tokens.size))
        labels, weights = batch["next_sentence_labels"].ravel(), batch["next_sentence_weights"].ravel()
        classes += np.bincount(labels, weights, minlength=2)
    scores = {f"{objective}_accuracy": float(tokens.max() / tokens.sum())} if tokens.sum() else {}
    return scores | ({"nsp_accuracy": float(classes.max() / classes.sum())} if classes.sum() else {})
