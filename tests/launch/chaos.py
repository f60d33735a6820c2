"""Random faults in a pretraining run and in a fine-tuning run, and a table of what each one did: ``make chaos``.

Commands run as users run them, in one process with two devices or in two with one each, on a model of one narrow block.
A fault strikes them at work, or what lies on disk between two starts. In the end, the weights are compared with those
of a run that nothing disturbed. Ends with code 1 where they differ, or where an answer was not the right one.
"""

import argparse
import contextlib
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

from tests.launch.chaos_faults import FAULTS, STARTED, Run, Wrong, other_devices  # sets up JAX, so it is imported first

# isort: split
import numpy as np
from safetensors.numpy import load_file

from bert.store.prepare import prepare
from bert.training import arithmetic
from launch import finetune, pretrain
from tests.launch.conftest import write_text
from tests.launch.review_table import TINY, reviews, write

STEPS_EACH = 24  # about as many steps does a run make before a fault


def endure(run: Run, whole: Run, faults: list[Callable[[Run], None]], steps: int, tolerance: float) -> bool:
    """Lets faults strike a run on its way to so many steps; whether it ends as the one that nothing disturbs."""
    run.steps = whole.steps = steps
    for fault in faults:
        fault(run)
    ends = []
    for one in (run, whole):
        (process,) = one.start()
        if process.wait() != 0:
            raise Wrong(f"{one.name}: its end: {process.tail()}")
        ends.append(load_file(one.workdir / "model" / "model.safetensors"))
    furthest = max(float(np.abs(ends[0][name] - ends[1][name]).max()) for name in ends[1])
    kind = "bit-equal" if furthest == 0 else f"equal within {furthest:.1e}"
    print(f"{run.name}: after {len(run.rows)} faults and {run.starts} starts, the weights of step {steps} are {kind}\n")
    return furthest <= tolerance


def chosen(count: int, rng: random.Random) -> list[Callable[[Run], None]]:
    """Each fault in turn, in an order of chance."""
    names = [name for _ in range(0, count, len(FAULTS)) for name in rng.sample(list(FAULTS), len(FAULTS))]
    return [FAULTS[name] for name in ["step", *names][:count]]


def pretraining(folder: pathlib.Path, logs: pathlib.Path, count: int, rng: random.Random) -> bool:
    """A fifth of the faults in the end are starts on another number of devices."""
    prepare(folder / "prepared", write_text(folder))
    words = (
        "--config=configs/pretrain.py:tiny",
        *("--config.batch_size=8", "--config.max_length=32", "--config.model.max_position_embeddings=64"),
        *("--config.model.hidden_size=32", "--config.model.num_layers=1", "--config.evaluate_every=50"),
        *("--config.optimizer.schedule=constant", "--config.optimizer.warmup_steps=2", "--config.save_every=4"),
        *(f"--config.data={folder / 'prepared'}", "--config.total_steps={}"),
    )
    run, whole = (Run(name, pretrain, words, (folder, logs), rng) for name in ("pretrain", "whole"))
    others = count // 5
    steps = [STEPS_EACH * (count - others), STEPS_EACH * count]
    same = endure(run, whole, chosen(count - others, rng), steps[0], 0)
    return endure(run, whole, [other_devices] * others, steps[1], 1e-5) and same


def finetuning(folder: pathlib.Path, logs: pathlib.Path, count: int, rng: random.Random) -> bool:
    write(folder / "train.csv", reviews(160, 0))
    words = (
        "--config=configs/table.py",
        *(f"--config.init_from={TINY}", f"--config.data={folder / 'train.csv'}", "--config.validation_share=0.2"),
        *("--config.text=review", "--config.label=liked", "--config.max_length=16", "--config.batch_size=8"),
        *("--config.packed=False", "--config.evaluations_per_epoch=4", "--config.steps={}"),  # saves when it evaluates
    )
    run, whole = (Run(name, finetune, words, (folder, logs), rng) for name in ("finetune", "untouched"))
    return endure(run, whole, chosen(count, rng), STEPS_EACH * count, 0)


@contextlib.contextmanager
def folders() -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
    """Two folders: for runs, a small file system of its own where that can be mounted; and for logs."""
    # No tempfile.TemporaryDirectory: each child would remove it at its end.
    top = pathlib.Path(tempfile.mkdtemp(prefix="chaos-"))
    small, logs = top / "disk", top / "logs"
    small.mkdir()
    logs.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(small)]
    mounted = subprocess.run(mount, check=False, stderr=subprocess.DEVNULL).returncode == 0
    try:
        yield small, logs
    finally:
        for process in STARTED:  # those that an error has left
            if not process.ended():
                process.kill(signal.SIGKILL)
                process.wait()
        if mounted:
            subprocess.run(["umount", "-l", small], check=True)
        shutil.rmtree(top)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in (("pretraining", 30), ("finetuning", 15), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=count)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    arithmetic.peak_flops = lambda dtype: None  # measuring it takes seconds at each start
    print("| run | fault | what was seen | steps lost |\n| --- | --- | --- | --- |")
    try:
        with folders() as (folder, logs):
            runs = [(pretraining, options.pretraining), (finetuning, options.finetuning)]
            return 0 if all([run(folder, logs, count, rng) for run, count in runs if count]) else 1
    except Wrong as error:
        print(f"wrong: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
