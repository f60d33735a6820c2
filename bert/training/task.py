"""The protocol of a task: what the training loop needs from pretraining and from every other task.

The loop knows losses by name only. Each is a sum divided once by a count over the whole global batch, so gradient
accumulation and the number of devices do not change results. The count must depend on the batch only.
"""

from typing import Any, Protocol

import flax.linen as nn
from jax import Array

from bert.architectures import ModelConfig
from bert.types import Batch


class Task(Protocol):
    """Model, losses and metrics of one job; a task is a subclass."""

    def model(self, config: ModelConfig) -> nn.Module:
        """A Linen module (batch, train=) -> outputs, with ``config`` and ``depth_of``, such as `heads.Model`."""
        ...

    def counts(self, batch: Batch) -> dict[str, Array]:
        """Loss name -> summed weight, float32 scalar. The total loss is the sum over names of sum / count."""
        ...

    def sums(self, outputs: dict[str, Array], batch: Batch) -> dict[str, Array]:
        """Loss name -> summed loss, and further sums that ``metrics`` reads; float32 scalars, added up over batches."""
        ...

    def size(self, batch: Batch) -> Any:
        """Size of a batch, float32 scalar, for rates: tokens."""
        return (batch["example_ids"] > 0).sum(dtype="float32")

    def metrics(self, totals: dict[str, float]) -> dict[str, float | None]:
        """Names for people -> values, from added-up sums and counts (``NAME_count``); None where undefined."""
        ...


def with_counts(sums: Batch, counts: Batch) -> dict[str, Any]:
    """A task's sums and counts in one dict, as ``metrics`` reads them: counts are named ``NAME_count``."""
    return {**sums, **{f"{name}_count": count for name, count in counts.items()}}
