"""Evaluation: every row exactly once, one division of sums by counts at the end, no randomness."""

import collections
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import flax.linen as nn
import jax
from jax.sharding import Mesh

from bert.training import sharding
from bert.training.task import Task, with_counts
from bert.types import Batch, HostBatch, Params

Metrics = dict[str, float | None]  # by name; None where undefined
Step = Callable[[Params, Batch], Batch]


def on_batches(
    model: nn.Module, task: Task, mesh: Mesh, batches: Callable[[], Iterable[HostBatch]]
) -> Callable[[Params], Metrics]:
    """Parameters -> the task's metrics over all rows of the batches that ``batches`` makes anew each time."""
    step = make_evaluation_step(model, task, mesh)
    return lambda params: evaluate(step, params, batches(), task, mesh)


def make_evaluation_step(model: nn.Module, task: Task, mesh: Mesh) -> Step:
    """Compiled (params, batch) -> sums and ``NAME_count`` of that batch, replicated on all devices."""

    def evaluation_step(params: Params, batch: Batch) -> Batch:
        outputs: Any = model.apply({"params": params}, batch)
        return with_counts(task.sums(outputs, batch), task.counts(batch))

    return jax.jit(evaluation_step, out_shardings=sharding.replicated(mesh))


def evaluate(step: Step, params: Params, batches: Iterable[HostBatch], task: Task, mesh: Mesh) -> Metrics:
    """The task's metrics over all rows of ``batches``, this process's rows of each; the last has rows of weight 0."""
    totals: dict[str, float] = collections.defaultdict(float)  # without any batch all are 0
    waiting: Batch | None = None
    for batch in batches:
        result = step(params, sharding.place(batch, mesh))
        if waiting is not None:  # read one late: the device is busy with the next batch meanwhile
            add(totals, jax.device_get(waiting))
        waiting = result
    add(totals, jax.device_get(waiting) if waiting is not None else {})
    return task.metrics(totals)


def add(totals: dict[str, float], more: Mapping[str, Any]) -> None:
    """Adds scalars to running totals, in float64."""
    for name, value in more.items():
        totals[name] = totals.get(name, 0.0) + float(value)
