"""Our pretraining step, timed in turns: python -m bench.ours --size=base --batch=8 --length=128"""

import dataclasses
import pathlib

import jax

from bench import turns, work
from bert.training import optim, sharding
from bert.training.pretraining import Pretraining
from bert.training.step import Setup, abstract_state, init_state, make_train_step
from launch import runtime

CACHE = pathlib.Path(".bench/cache")  # compiled programs, as in a run directory


def main() -> None:
    flags = work.parser(__doc__ or "")
    flags.add_argument("--attention", default="core", help="core, or fused (without dropout on attention weights)")
    options = flags.parse_args()
    workload = work.work_of(options)
    runtime.start(allocator="keep", cache=CACHE, options={})
    rate = 0.0 if options.attention == "fused" else workload.dropout
    config = dataclasses.replace(workload.config, attention=options.attention, attention_dropout=rate)
    task, mesh = Pretraining(), sharding.make_mesh(devices=jax.devices()[:1])
    optimizer = optim.OptimizerSettings(total_steps=1_000_000, warmup_steps=10_000, learning_rate=1e-4)
    setup = Setup(task.model(config), task, optimizer, mesh)
    with jax.set_mesh(mesh):
        arrays = workload.arrays()
        target = abstract_state(setup, arrays)
        state = init_state(setup, target, arrays)
        train_step, _ = make_train_step(setup, target)
        batch = sharding.place(arrays, mesh)
        values = None

        def step() -> None:
            nonlocal state, values
            state, values = train_step(state, batch)

        name = "ours" if options.attention == "core" else f"ours {options.attention}"
        versions = {"name": name, "jax": jax.__version__, "device": jax.devices()[0].device_kind}
        turns.serve(step, lambda: jax.block_until_ready(values), versions, memory)


def memory() -> int:
    """Peak bytes on the device, or of the process on a CPU."""
    stats = jax.devices()[0].memory_stats()
    return stats["peak_bytes_in_use"] if stats else turns.resident()


if __name__ == "__main__":
    main()
