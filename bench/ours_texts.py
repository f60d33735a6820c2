"""Our fine-tuning and inference of a classifier on packed rows, timed in turns.

python -m bench.ours_texts --step=finetune|classify --size=mini --lengths=sst2 --count=1024

Batches come from the training pipeline, and the time to make them counts.
"""

import jax
import numpy as np

from bench import ours, turns, work
from bench.texts import LONGEST, Texts
from bert.data import encoded_examples
from bert.data.encoded_examples import ExampleSettings, TrainingBatches
from bert.model import stack
from bert.prediction import scores
from bert.training import optim, sharding
from bert.training.step import Setup, abstract_state, draw_params, init_state, make_train_step
from launch import runtime
from tasks.classification.job import Classification


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "", Texts).parse_args(), Texts)
    runtime.start(allocator="keep", cache=ours.CACHE, options={})
    encoded = encoded_examples.join(
        [(ids.tolist(), len(ids)) for ids in workload.token_ids],
        targets=np.eye(2, dtype=np.float32)[workload.label_N],
        target_weights=np.ones(workload.count, np.float32),
    )
    config, task, mesh = workload.config, Classification("class", 2), sharding.make_mesh(devices=jax.devices()[:1])
    optimizer = optim.OptimizerSettings(total_steps=1_000_000, warmup_steps=10_000, learning_rate=1e-4)
    setup, settings = (
        Setup(task.model(config), task, optimizer, mesh),
        ExampleSettings(workload.batch, LONGEST),
    )
    batches = TrainingBatches(encoded, settings)
    versions = {"name": "ours", "jax": jax.__version__, "device": jax.devices()[0].device_kind}
    with jax.set_mesh(mesh):
        if workload.step == "classify":
            params = stack.by_layer(draw_params(setup, batches(0)), config)  # as in a loaded model
            scorer = scores.Scorer(params, config, None, batch_size=settings.batch_size)  # type: ignore[arg-type]
            turns.serve(lambda: scorer.of_examples(encoded, LONGEST), lambda: None, versions, ours.memory)
            return
        target = abstract_state(setup, batches(0))
        state, values, done = init_state(setup, target, batches(0)), None, 0
        train_step, read = make_train_step(setup, target)

        def step() -> None:
            """As in bert/training/train.py: dispatches this step, then reads the metrics of the step before."""
            nonlocal state, values, done
            before = values
            state, values = train_step(state, sharding.place(batches(done % workload.steps), mesh))
            done += 1
            if before is not None:
                read(before)

        turns.serve(step, lambda: jax.block_until_ready(values), versions, ours.memory)


if __name__ == "__main__":
    main()
