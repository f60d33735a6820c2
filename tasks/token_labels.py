"""Head and loss of tasks that tag each token. Targets are distributions over the tags.

The loss of an example is L = -sum_i sum_j t_ij log p_ij over its tokens i and the tags j. Tokens without a target
(question, padding, tokens that count in another window) have weight 0. With one-hot targets, L is the negative
log-likelihood.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from jax import Array

from bert.architectures import ModelConfig
from bert.data.encoded_examples import EncodedExamples
from bert.data.passages import Passages
from bert.errors import check_choice
from bert.model import losses
from bert.model.heads import Model, TokenHead
from bert.training.evaluate import Metrics
from bert.training.task import Task

PER = ("token", "example")


@dataclasses.dataclass(frozen=True)
class TokenLabels(Task):
    """For the training loop.

    Attributes:
      per: what the trained loss is a mean over: "token", or "example" (the mean of L).
      rate: dropout before the scores; None: as between the blocks.
      smoothing: of the targets, see `losses.smoothed`.
    """

    classes: int
    per: str = "token"
    rate: float | None = None
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        check_choice("config.loss_per", self.per, PER)

    def model(self, config: ModelConfig) -> Model:
        return Model(config, TokenHead(config, self.classes, self.rate))

    def counts(self, batch: Mapping[str, Any]) -> dict[str, Array]:
        return {"loss": self._measures(batch)[self.per]}

    def sums(self, outputs: dict[str, Array], batch: Mapping[str, Any]) -> dict[str, Array]:
        loss_BT = losses.soft_cross_entropy(outputs["token_logits"], losses.smoothed(batch["targets"], self.smoothing))
        measures = {f"labelled_{name}s": count for name, count in self._measures(batch).items()}
        return {"loss": losses.weighted_sum(loss_BT, batch["target_weights"])} | measures

    def metrics(self, totals: dict[str, float]) -> Metrics:
        """``loss``: as trained; the same sum a token and an example."""

        def per(count: float) -> float | None:
            return totals["loss"] / count if count else None

        return {
            "loss": per(totals["loss_count"]),
            "cross_entropy": per(totals["labelled_tokens"]),
            "cross_entropy_per_example": per(totals["labelled_examples"]),
        }

    def _measures(self, batch: Mapping[str, Any]) -> dict[str, Array]:
        return {"token": batch["target_weights"].sum(), "example": batch["example_share"].sum()}


def windows_with_targets(passages: Passages, target_KC: np.ndarray, weight_K: np.ndarray) -> EncodedExamples:
    """The windows of passages with targets a token, and each window's share of its example, by tokens that count.

    Args:
      target_KC, weight_K: float32, of the pieces of all passages.
    """
    encoded = passages.with_targets(target_KC, weight_K)
    window_K = np.searchsorted(encoded.starts, passages.place_K, side="right") - 1
    text_K = passages.text_W[window_K]
    counted_N = np.bincount(text_K, weights=weight_K, minlength=len(passages))
    counted_W = np.bincount(window_K, weights=weight_K, minlength=len(encoded))
    total_W = counted_N[passages.text_W]
    share_W = np.divide(counted_W, total_W, out=np.zeros(len(encoded)), where=total_W > 0)
    return dataclasses.replace(encoded, of_example={"example_share": share_W.astype(np.float32)})
