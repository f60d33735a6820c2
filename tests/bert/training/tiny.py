"""A tiny model and made-up batches for the tests of training."""

import functools
import pathlib
from typing import Any

import jax
import numpy as np

from bert.architectures.bert import BertConfig
from bert.training import evaluate, optim, sharding
from bert.training.pretraining import Pretraining
from bert.training.step import Setup, TrainState, abstract_state, init_state, make_train_step
from bert.training.train import LoopSettings, Run

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
VOCAB, ROWS, LENGTH, MASKED = 128, 8, 16, 4


def config(**changes) -> BertConfig:
    sizes = {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64}
    return BertConfig(**({"vocab_size": VOCAB} | sizes | {"hidden_dropout": 0.0, "attention_dropout": 0.0} | changes))


def batch(number: int = 0, rows: int = ROWS, labels: list[int] | None = None) -> dict[str, np.ndarray]:
    """Batch ``number``: one example a row, of random length; ``labels``: masked positions of each row that count."""
    rng = np.random.default_rng((7, number))
    lengths = rng.integers(LENGTH // 2, LENGTH + 1, rows)
    inside = np.arange(LENGTH) < lengths[:, None]
    counted = rng.integers(1, MASKED + 1, rows) if labels is None else np.array(labels)
    return {
        "token_ids": np.where(inside, rng.integers(5, VOCAB, (rows, LENGTH)), 0).astype(np.int32),
        "type_ids": (inside & (np.arange(LENGTH) >= lengths[:, None] // 2)).astype(np.int32),
        "position_ids": np.where(inside, np.arange(LENGTH), 0).astype(np.int32),
        "example_ids": inside.astype(np.int32),
        "cls_positions": np.zeros((rows, 1), np.int32),
        "masked_positions": np.stack([rng.permutation(LENGTH // 2)[:MASKED] for _ in range(rows)]).astype(np.int32),
        "masked_ids": rng.integers(5, VOCAB, (rows, MASKED)).astype(np.int32),
        "masked_weights": (np.arange(MASKED) < counted[:, None]).astype(np.float32),
        "next_sentence_labels": rng.integers(0, 2, (rows, 1)).astype(np.int32),
        "next_sentence_weights": (rng.random((rows, 1)) < 0.8).astype(np.float32),
    }


def setup(
    *, devices: int = 1, mode: str = "dp", model_devices: int = 1, micro_batches: int = 1, **changes: Any
) -> Setup:
    """A pretraining set-up on some of the virtual devices; changes go to the model's config or the optimizer."""
    model_names = BertConfig.__dataclass_fields__.keys()
    of_model = {name: value for name, value in changes.items() if name in model_names}
    of_optimizer = {name: value for name, value in changes.items() if name not in model_names}
    task = Pretraining()
    sizes = config(**of_model)
    rule = {"total_steps": 100, "learning_rate": 1e-2, "schedule": "constant", "weight_decay": 0.1} | of_optimizer
    mesh = sharding.make_mesh(mode, model_devices, jax.devices()[:devices])
    return Setup(task.model(sizes), task, optim.OptimizerSettings(**rule), mesh, mode, micro_batches)


def run_steps(made: Setup, batches: list[dict[str, np.ndarray]], params=None) -> tuple[TrainState, list[dict]]:
    """The state after one step a batch, and what each step told (floats)."""
    with jax.set_mesh(made.mesh):
        target = abstract_state(made, batches[0])
        state, (step, read) = init_state(made, target, batches[0], params), make_train_step(made, target)
        told = []
        for one in batches:
            state, values = step(state, sharding.place(one, made.mesh))
            told.append(read(values))
    return jax.device_get(state), told


@functools.cache
def one_block() -> Setup:
    """A set-up of one block, without dropout: the same for all, so that its programs are traced once."""
    return setup(num_layers=1)


@functools.lru_cache(maxsize=2)
def scored(made: Setup) -> evaluate.Step:
    """The compiled evaluation of a set-up, the same for all its runs."""
    return evaluate.make_evaluation_step(made.model, made.task, made.mesh)


def run(workdir: pathlib.Path, made: Setup | None = None, *, held_out: int = 0, **settings) -> Run:
    """A run on made-up batches, with ``held_out`` validation batches; by default of one block, without dropout."""
    made = made or one_block()
    timing = {"total_steps": 20, "log_every": 5, "evaluate_every": 10, "save_every": 4} | settings
    held = lambda: (batch(1000 + i) for i in range(held_out))  # noqa: E731
    scores = (
        (lambda params: evaluate.evaluate(scored(made), params, held(), made.task, made.mesh)) if held_out else None
    )
    return Run(made, LoopSettings(**timing), workdir, batch, scores, flops_per_token=1e6)
