"""Schedules against their definitions."""

import itertools
import json
from collections.abc import Callable

import numpy as np
import optax
import pytest

from bert.errors import InputError
from bert.training.optim import OptimizerSettings
from tests.bert.training import tiny
from tests.torch_package import import_torch


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


def test_cosine_and_wsd_equal_those_of_optax():
    """At every step, and behind the end; wsd decays in the last fifth."""
    peak, warm = 1e-4, optax.linear_schedule(0.0, 1e-4, 10)
    parts = [warm, optax.constant_schedule(peak), optax.linear_schedule(peak, 0.0, 20)]
    wanted = {
        "cosine": optax.schedules.warmup_cosine_decay_schedule(0.0, peak, warmup_steps=10, decay_steps=100),
        "wsd": optax.schedules.join_schedules(parts, [10, 80]),
    }
    for kind, theirs in wanted.items():
        ours = rate_of(schedule=kind, decay_share=0.2)
        np.testing.assert_allclose(ours(np.arange(120)), theirs(np.arange(120)), atol=1e-10)


def test_the_inverse_square_root_is_that_of_the_transformer():
    """rate = width^-0.5 min(step^-0.5, step warmup^-1.5): width 512, 4,000 steps (Vaswani et al. 2017, section 5.3)."""
    rate = rate_of(schedule="inverse_sqrt", learning_rate=(512 * 4000) ** -0.5, warmup_steps=4000, total_steps=100_000)
    steps = (1, 100, 4_000, 16_000, 100_000)
    wanted = [512**-0.5 * min(step**-0.5, step * 4000**-1.5) for step in steps]
    np.testing.assert_allclose(rate(np.array(steps)), wanted, rtol=1e-5)
    assert wanted[2] == pytest.approx(6.987712e-4)
    without = rate_of(schedule="inverse_sqrt", warmup_steps=0)  # as if 10,000 steps had passed
    np.testing.assert_allclose([without(0), without(30_000)], [1e-4, 0.5e-4], rtol=1e-5)


def test_warm_up_and_decay_of_wsd_must_fit_into_the_run():
    assert float(rate_of(schedule="wsd", warmup_steps=80, decay_share=0.2)(80)) == pytest.approx(1e-4)
    with pytest.raises(InputError, match=r"warmup_steps is 81; .*at most 80.*decay"):
        rate_of(schedule="wsd", warmup_steps=81, decay_share=0.2)
    rate_of(warmup_steps=100, decay_share=0.2)  # other schedules have no decay of their own
    for total, share in itertools.product(range(1, 50), (0.1, 0.2, 0.25, 0.3, 0.5)):  # no step is between the two
        sizes = {"warmup_steps": round(share * total), "total_steps": total}
        rate = rate_of(schedule="wsd", decay_share=1 - share, **sizes)
        assert float(rate(total)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("warmup", [0, 10])
def test_schedules_equal_those_of_transformers(warmup):
    """Under the same names, at every step; behind the end, theirs rises again with the cosine."""
    torch = import_torch()
    from transformers import optimization  # needs torch

    get = {name: getattr(optimization, f"get_{name}_schedule_with_warmup") for name in ("linear", "cosine", "constant")}
    theirs = {
        "linear": lambda of: get["linear"](of, warmup, 100),
        "cosine": lambda of: get["cosine"](of, warmup, 100),
        "constant": lambda of: get["constant"](of, warmup),
        "inverse_sqrt": lambda of: optimization.get_inverse_sqrt_schedule(of, warmup),
        "wsd": lambda of: optimization.get_wsd_schedule(of, warmup, 20, num_training_steps=100, decay_type="linear"),
    }
    for kind, make in theirs.items():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-4)
        (share,) = make(optimizer).lr_lambdas
        ours = rate_of(schedule=kind, warmup_steps=warmup, decay_share=0.2)
        wanted = [1e-4 * share(step) for step in range(101)]
        np.testing.assert_allclose(ours(np.arange(101)), wanted, atol=1e-10, err_msg=kind)
