"""Learning-rate schedules. A new one is a line in `SCHEDULES`: its shape behind the warm-up, a share of the peak.

The names and formulas are those of transformers (`get_SCHEDULE_schedule_with_warmup`, `get_inverse_sqrt_schedule`,
`get_wsd_schedule` with ``decay_type="linear"``), except "google": google-research/bert, optimization.py.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

_TIMESCALE = 10_000  # steps of "inverse_sqrt" without a warm-up, as in transformers


class Shape(NamedTuple):
    """What a schedule is made of besides its peak; steps are optimizer steps."""

    warmup_steps: int
    total_steps: int
    power: float
    decay_steps: int  # of "wsd": the last ones


def _left(step: Array, start: int, of: Shape) -> Array:
    """1 up to the step ``start``, then falling evenly to 0 at the end."""
    return jnp.clip((of.total_steps - step) / max(1, of.total_steps - start), 0.0, 1.0)


def _inverse_sqrt(step: Array, of: Shape) -> Array:
    """sqrt(warm-up / step); without a warm-up as if `_TIMESCALE` steps had passed. It does not end at 0."""
    timescale = of.warmup_steps or _TIMESCALE
    return jnp.sqrt(timescale / (jnp.maximum(step, of.warmup_steps) + timescale - of.warmup_steps))


SCHEDULES: dict[str, Callable[[Array, Shape], Array | float]] = {
    "linear": lambda step, of: _left(step, of.warmup_steps, of),
    "polynomial": lambda step, of: _left(step, of.warmup_steps, of) ** of.power,
    "google": lambda step, of: _left(step, 0, of) ** of.power,  # so the rate drops when the warm-up ends
    "constant": lambda step, of: 1.0,
    "cosine": lambda step, of: 0.5 * (1 + jnp.cos(jnp.pi * (1 - _left(step, of.warmup_steps, of)))),
    "inverse_sqrt": _inverse_sqrt,
    "wsd": lambda step, of: _left(step, of.total_steps - of.decay_steps, of),  # warm-up, stable, decay
}


def schedule(kind: str, *, peak: float, shape: Shape) -> Callable[[Any], Array]:
    """A function from the step (0 for the first update) to the learning rate, float32. A warm-up begins with rate 0."""
    share, warmup_steps = SCHEDULES[kind], shape.warmup_steps

    def rate(step: Any) -> Array:
        step = jnp.asarray(step, jnp.float32)
        return jnp.where(step < warmup_steps, peak * step / max(1, warmup_steps), peak * share(step, shape))

    return rate
