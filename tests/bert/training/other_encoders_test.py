"""Encoders beside BERT on eight devices: each mode trains as one device does, and splits parameters."""

import functools

import jax
import numpy as np
import pytest

from bert.architectures.convolution import DilatedConfig, StridedConfig
from bert.architectures.merged import MergedBertConfig
from bert.architectures.recurrent import RecurrentConfig
from bert.training import optim, sharding
from bert.training.pretraining import Pretraining
from bert.training.step import Setup
from tests.bert.training import tiny

SMALL = {"embedding_size": 16, "hidden_size": 32, "max_length": 16}
CONFIGS = {
    "birnn": RecurrentConfig(tiny.VOCAB, **SMALL),
    "dilated": DilatedConfig(tiny.VOCAB, **SMALL, num_layers=1),
    "strided": StridedConfig(tiny.VOCAB, **SMALL, num_layers=4),
    "bert-merged": MergedBertConfig(
        tiny.VOCAB, hidden_size=32, num_layers=1, num_heads=4, intermediate_size=64, max_position_embeddings=64
    ),
}
BY_MASKS = ("strided", "bert-merged")


def trained(kind, devices, mode, model_devices=1):
    """The state after two steps with dropout, and the losses."""
    config = CONFIGS[kind]
    task = Pretraining(pairs=False, objective="mlm" if kind in BY_MASKS else "blank")
    mesh = sharding.make_mesh(mode, model_devices, jax.devices()[:devices])
    optimizer = optim.OptimizerSettings(100, 1e-2, schedule="constant")
    state, told = tiny.run_steps(Setup(task.model(config), task, optimizer, mesh, mode), [tiny.batch(0), tiny.batch(1)])
    return state, [step[task.objective] for step in told]


@functools.cache
def on_one(kind):
    return trained(kind, 1, "dp")


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "mode", "model_devices"),
    [
        ("birnn", "dp", 1),
        ("birnn", "tp", 4),
        ("birnn", "fsdp", 1),
        *(
            pytest.param(kind, mode, 1 if mode == "fsdp" else 4, marks=pytest.mark.slow)
            for kind in ("dilated", *BY_MASKS)
            for mode in ("fsdp", "tp", "fsdp_tp")
        ),
    ],
)
def test_eight_devices_train_as_one_does(kind, mode, model_devices):
    state, losses = trained(kind, 8, mode, model_devices)
    wanted, wanted_losses = on_one(kind)
    np.testing.assert_allclose(losses, wanted_losses, rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), state.params, wanted.params)
    assert losses[0] != losses[1]


@pytest.mark.parametrize("kind", CONFIGS)
def test_fsdp_splits_every_kernel(kind):
    """No device holds a whole kernel or table."""
    task, mesh = Pretraining(pairs=False), sharding.make_mesh("fsdp", 1, jax.devices()[:8])
    batch = {name: array[:1] for name, array in tiny.batch(0).items()}
    shapes = jax.eval_shape(task.model(CONFIGS[kind]).init, jax.random.key(0), batch)["params"]
    shards = sharding.state_shardings(shapes, mesh, "fsdp")
    for (path, leaf), shard in zip(jax.tree.leaves_with_path(shapes), jax.tree.leaves(shards), strict=True):
        if optim.decays(tuple(key.key for key in path)):
            assert np.prod(shard.shard_shape(leaf.shape)) * 8 == leaf.size, path
