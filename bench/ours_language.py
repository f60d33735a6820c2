"""Our training step of a language model, and our generation, timed in turns.

python -m bench.ours_language --model=gpt2|gru|lstm [--step=generate --new=64] [--batch=32 --length=128]
"""

import jax

from bench import ours, turns, work
from bench.language import Language
from bench.work import VOCABULARY
from bert.interop import names, parameters
from bert.model import stack
from bert.prediction.generation import GenerationSettings, continued_ids
from bert.training import optim, sharding
from bert.training.pretraining import Pretraining
from bert.training.step import Setup, abstract_state, draw_params, init_state, make_train_step
from launch import runtime


def main() -> None:
    workload = work.work_of(work.parser(__doc__ or "", Language).parse_args(), Language)
    runtime.start(allocator="keep", cache=ours.CACHE, options={})
    config = workload.gpt if workload.model == "gpt2" else workload.recurrent
    task, mesh = Pretraining(pairs=False, objective=workload.objective), sharding.make_mesh(devices=jax.devices()[:1])
    optimizer = optim.OptimizerSettings(total_steps=1_000_000, warmup_steps=10_000, learning_rate=1e-4)
    setup, arrays = Setup(task.model(config), task, optimizer, mesh), workload.arrays()
    versions = {"name": "ours", "jax": jax.__version__, "device": jax.devices()[0].device_kind}
    with jax.set_mesh(mesh):
        if workload.step == "generate":
            params = parameters.with_implied_parts(draw_params(setup, arrays), names.table(config))
            params = jax.device_put(stack.by_layer(params, config))  # as in a loaded model
            prompts, settings = workload.token_ids().tolist(), GenerationSettings(max_new_tokens=workload.new)
            step = lambda: continued_ids(params, config, prompts, settings, words=VOCABULARY)  # noqa: E731
            turns.serve(step, lambda: None, versions, ours.memory)
            return
        target = abstract_state(setup, arrays)
        state, values = init_state(setup, target, arrays), None
        train_step, _ = make_train_step(setup, target)
        batch = sharding.place(arrays, mesh)

        def train() -> None:
            nonlocal state, values
            state, values = train_step(state, batch)

        turns.serve(train, lambda: jax.block_until_ready(values), versions, ours.memory)


if __name__ == "__main__":
    main()
