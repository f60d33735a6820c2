"""The pretraining task: masked words, and next sentence or sentence order."""

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
    """Masked words + next sentence; ``pairs=False`` drops the second (RoBERTa)."""

    pairs: bool = True

    def model(self, config: ModelConfig) -> Model:
        return Model(config, PretrainingHead(config, with_next_sentence=self.pairs))

    def counts(self, batch: Batch) -> dict[str, Array]:
        counts = {"mlm": batch["masked_weights"].sum()}
        return counts | ({"nsp": batch["next_sentence_weights"].sum()} if self.pairs else {})

    def sums(self, outputs: dict[str, Array], batch: Batch) -> dict[str, Array]:
        def summed(name: str, loss: Array, correct: Array, weights: Array) -> dict[str, Array]:
            return {name: losses.weighted_sum(loss, weights), f"{name}_correct": losses.weighted_sum(correct, weights)}

        sums = summed("mlm", outputs["mlm_cross_entropy"], outputs["mlm_correct"], batch["masked_weights"])
        if self.pairs:
            logits_BE2, labels_BE = outputs["nsp_logits"], batch["next_sentence_labels"]
            correct_BE = (logits_BE2.argmax(-1) == labels_BE).astype(jnp.float32)
            loss_BE = losses.cross_entropy(logits_BE2, labels_BE)
            sums |= summed("nsp", loss_BE, correct_BE, batch["next_sentence_weights"])
        return sums

    def metrics(self, totals: dict[str, float]) -> dict[str, float | None]:
        """Means mlm_loss, nsp_loss and loss, their sum; mlm_perplexity, mlm_accuracy and nsp_accuracy."""
        values: dict[str, float | None] = {}
        for name in ("mlm", "nsp") if self.pairs else ("mlm",):
            count = totals[f"{name}_count"]
            values[f"{name}_loss"] = totals[name] / count if count else None
            values[f"{name}_accuracy"] = totals[f"{name}_correct"] / count if count else None
        known = [value for key, value in values.items() if key.endswith("_loss") and value is not None]
        mlm = values["mlm_loss"]
        perplexity = math.exp(min(mlm, 700.0)) if mlm is not None else None
        return {"loss": sum(known) if known else None, "mlm_perplexity": perplexity, **values}


def baselines(batches: Iterable[dict[str, np.ndarray]]) -> dict[str, float]:
    """``mlm_accuracy`` of the most frequent masked token and, where there are labels, ``nsp_accuracy`` of the larger
    class of pairs, on these batches; each masked position and label counts by its weight."""
    tokens: np.ndarray = np.zeros(0)
    classes = np.zeros(2)
    for batch in batches:
        more = np.bincount(batch["masked_ids"].ravel(), batch["masked_weights"].ravel(), minlength=tokens.size)
        tokens = more + np.pad(tokens, (0, more.size - tokens.size))
        labels, weights = batch["next_sentence_labels"].ravel(), batch["next_sentence_weights"].ravel()
        classes += np.bincount(labels, weights, minlength=2)
    scores = {"mlm_accuracy": float(tokens.max() / tokens.sum())} if tokens.sum() else {}
    return scores | ({"nsp_accuracy": float(classes.max() / classes.sum())} if classes.sum() else {})
