"""Our training step of a Transformer that translates, timed in turns: python -m bench.ours_pairs [--count=1024]"""

import itertools

import jax

from bench import ours, turns, work
from bench.pairs import Pairs
from bert import config_fields
from bert.training import sharding
from bert.training.optim import OptimizerSettings
from bert.training.step import Setup, abstract_state, init_state, make_train_step
from configs import translation
from launch import runtime
from tasks.target_words import TargetWords


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "", Pairs).parse_args(), Pairs)
    runtime.start(allocator="keep", cache=ours.CACHE, options={})
    task, mesh = TargetWords(workload.smoothing), sharding.make_mesh(devices=jax.devices()[:1])
    optimizer = config_fields.build(OptimizerSettings, translation.get_config().optimizer, total_steps=1_000_000)
    setup, batches = Setup(task.model(workload.config), task, optimizer, mesh), workload.packed()
    with jax.set_mesh(mesh):
        target = abstract_state(setup, batches[0])
        state, values = init_state(setup, target, batches[0]), None
        train_step, _ = make_train_step(setup, target)
        placed = itertools.cycle([sharding.place(batch, mesh) for batch in batches])

        def step() -> None:
            nonlocal state, values
            state, values = train_step(state, next(placed))

        versions = {"name": "ours", "jax": jax.__version__, "device": jax.devices()[0].device_kind}
        turns.serve(step, lambda: jax.block_until_ready(values), versions, ours.memory)


if __name__ == "__main__":
    main()
