"""Schedules against their definitions."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from bert.training.optim import OptimizerSettings
from tests.bert.training import tiny


def rate_of(**changes) -> Callable:
    return OptimizerSettings(**({"total_steps": 100, "learning_rate": 1e-4, "warmup_steps": 10} | changes)).rate()


def test_the_linear_schedule_starts_at_zero_peaks_after_the_warm_up_and_ends_at_zero():
    """Rates of updates 0, 9, 10, 55, 99, 100 for peak 1e-4, 10 warm-up steps of 100; never below 0."""
    rate = rate_of()
    wanted = [0, 9e-5, 1e-4, 5e-5, 1.1111e-6, 0, 0]
    np.testing.assert_allclose([rate(s) for s in (0, 9, 10, 55, 99, 100, 250)], wanted, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("name", ["hf", "google"])
def test_schedules_equal_the_closed_forms(name):
    """Linear as in Hugging Face, and as in google-research/bert, where the decay counts from step 0."""
    wanted = json.loads((tiny.GOLDEN / "hand_examples.json").read_text())["closed_forms"][f"linear_schedule_{name}"]
    kind = {"hf": "linear", "google": "google"}[name]
    sizes = {"warmup_steps": wanted["warmup"], "total_steps": wanted["total"]}
    rate = rate_of(schedule=kind, learning_rate=wanted["peak"], **sizes)
    steps = range(len(wanted["lr_at_step"]))
    np.testing.assert_allclose([rate(s) for s in steps], wanted["lr_at_step"], atol=1e-6)


def test_other_schedules():
    """A square-root decay half-way is above the linear one; "constant" stays at the peak; no warm-up starts there."""
    assert float(rate_of(schedule="polynomial", power=0.5)(55)) == pytest.approx(1e-4 * 0.5**0.5)
    assert float(rate_of(schedule="constant")(100)) == pytest.approx(1e-4)
    assert float(rate_of(warmup_steps=0)(0)) == pytest.approx(1e-4)
