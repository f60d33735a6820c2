"""A tiny training run as a process of its own, for tests that kill it: ``python -m ...killed_run DIR``.

Dropout, accumulation and evaluation are on; it saves every second step, so that kills fall into saves, too.
"""

import os
import pathlib
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import numpy as np

from bert.training.train import Run, fit
from launch import console
from tests.bert.training import tiny

STEPS = 40


def main(workdir: pathlib.Path) -> int:
    console.plain_logging()  # the test reads the lines
    made = tiny.setup(hidden_dropout=0.1, attention_dropout=0.1, micro_batches=2)
    run = tiny.run(workdir, made, held_out=1, total_steps=STEPS, log_every=3, evaluate_every=10, save_every=2)

    def slow_batch(number: int):
        time.sleep(0.02)
        return tiny.batch(number)

    outcome = fit(Run(**{**run.__dict__, "train_batch": slow_batch}))
    np.savez(workdir / "result.npz", *_leaves(outcome.state))
    return 128 + outcome.stopped_by if outcome.stopped_by else 0


def _leaves(state) -> list[np.ndarray]:
    import jax

    return [np.asarray(x) for x in jax.tree.leaves(jax.device_get(state))]


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
