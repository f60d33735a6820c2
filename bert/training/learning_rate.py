"""Learning-rate schedules. A new one is a name in `SCHEDULES` and a branch in `schedule`."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array

SCHEDULES = ("linear", "polynomial", "google", "constant")


def schedule(kind: str, *, peak: float, warmup_steps: int, total_steps: int, power: float) -> Callable[[Any], Array]:
    """A function from the step (0 for the first update) to the learning rate, float32. A warm-up begins with rate 0.

    "linear" and "polynomial" decay from the peak at the end of the warm-up to 0 at ``total_steps`` (Hugging Face).
    "google" counts the decay from step 0, so the rate drops when the warm-up ends. "constant" stays at the peak.
    """
    start = 0 if kind == "google" else warmup_steps
    power = power if kind in ("polynomial", "google") else 1.0

    def rate(step: Any) -> Array:
        step = jnp.asarray(step, jnp.float32)
        left = jnp.clip((total_steps - step) / max(1, total_steps - start), 0.0, 1.0)
        decayed = peak * (left**power if kind != "constant" else 1.0)
        return jnp.where(step < warmup_steps, peak * step / max(1, warmup_steps), decayed)

    return rate
