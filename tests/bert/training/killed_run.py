"""Tiny training runs, one after the other, as a process for tests that kill it: ``python -m ...killed_run DIR...``.

Dropout, accumulation and evaluation are on; it saves every second step, so that kills fall into saves, too.
"""

import dataclasses
import os
import pathlib
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

from bert.training import arithmetic
from bert.training.train import fit
from launch import console
from tests.bert.training import tiny

STEPS = 20


def main(workdirs: list[pathlib.Path]) -> int:
    console.plain_logging()  # the test reads the lines
    # Measuring the peak takes seconds right after the first step: every kill would fall into it.
    arithmetic.peak_flops = lambda dtype: None
    made = tiny.setup(hidden_dropout=0.1, attention_dropout=0.1, micro_batches=2, num_layers=1)
    timing = {"total_steps": STEPS, "log_every": 3, "evaluate_every": 10, "save_every": 2}
    for workdir in workdirs:
        outcome = fit(dataclasses.replace(tiny.run(workdir, made, held_out=1, **timing), train_batch=slow_batch))
        np.savez(workdir / "result.npz", *_leaves(outcome.state))
        if outcome.stopped_by:
            return 128 + outcome.stopped_by
    return 0


def slow_batch(number: int) -> dict[str, np.ndarray]:
    time.sleep(0.02)
    return tiny.batch(number)


def _leaves(state) -> list[np.ndarray]:
    import jax

    return [np.asarray(x) for x in jax.tree.leaves(jax.device_get(state))]


if __name__ == "__main__":
    sys.exit(main([pathlib.Path(word) for word in sys.argv[1:]]))
