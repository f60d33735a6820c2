"""Evaluation: every row once, whatever the batches and the devices."""

import jax
import numpy as np
import pytest

from bert.training import evaluate, sharding
from tests.bert.training import tiny


def rows_of(batch: dict, rows: slice, size: int) -> dict:
    """Some rows of a batch, filled up with empty rows to ``size``."""
    picked = {name: x[rows] for name, x in batch.items()}
    return {name: np.concatenate([x, np.zeros((size - len(x), *x.shape[1:]), x.dtype)]) for name, x in picked.items()}


@pytest.mark.long
def test_metrics_do_not_depend_on_batch_size_or_devices_and_count_each_row_once():
    """13 rows in batches of 1, 4 and 13 on one device and of 8 on eight: equal to 1e-6, and all rows counted."""
    everything = tiny.batch(rows=13)
    results = []
    drawn = jax.jit(tiny.setup(num_layers=1).model.init)(jax.random.key(0), everything)["params"]
    for size, devices in ((1, 1), (4, 1), (13, 1), (8, 8)):
        made = tiny.setup(devices=devices, num_layers=1)
        with jax.set_mesh(made.mesh):
            params = jax.device_put(drawn, sharding.replicated(made.mesh))
            step = evaluate.make_evaluation_step(made.model, made.task, made.mesh)
            batches = [rows_of(everything, slice(i, i + size), size) for i in range(0, 13, size)]
            results.append(evaluate.evaluate(step, params, batches, made.task, made.mesh))
            counted = sum(float(step(params, sharding.place(b, made.mesh))["mlm_count"]) for b in batches)
        assert counted == everything["masked_weights"].sum()
    for other in results[1:]:
        assert other == pytest.approx(results[0], rel=1e-6, abs=1e-6)


def test_nothing_held_out_is_undefined_and_not_zero():
    """No batches at all: losses and accuracies are null, not 0 or NaN."""
    made = tiny.setup()
    step = evaluate.make_evaluation_step(made.model, made.task, made.mesh)
    totals = {"mlm_count": 0.0, "nsp_count": 0.0, "mlm": 0.0, "nsp": 0.0, "mlm_correct": 0.0, "nsp_correct": 0.0}
    assert made.task.metrics(totals)["mlm_accuracy"] is None
    metrics = evaluate.evaluate(step, {}, [], made.task, made.mesh)
    assert set(metrics.values()) == {None}
    assert metrics == made.task.metrics(totals)
