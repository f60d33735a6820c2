"""Every encoder but BERT, whose tests are beside this: on eight devices it trains as on one, whatever is split; a
killed run ends with the same bits; its weights are written and read back."""

import functools

import jax
import numpy as np
import pytest

import bert
from bert import inference
from bert.architectures import objectives_of
from bert.architectures.bert import BertConfig
from bert.architectures.convolution import DilatedConfig, StridedConfig
from bert.architectures.gpt import GPT2Config, GPTConfig
from bert.architectures.merged import MergedBertConfig
from bert.architectures.recurrent import RecurrentConfig
from bert.training import optim, sharding, train
from bert.training.pretraining import Pretraining
from bert.training.step import Setup
from tests.bert.training import tiny

SMALL = {"embedding_size": 16, "hidden_size": 32, "max_length": 16}
TRANSFORMER = {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 16}
CONFIGS = {
    "birnn": RecurrentConfig(tiny.VOCAB, **SMALL),
    "birnn-lstm": RecurrentConfig(tiny.VOCAB, **SMALL, num_layers=2, cell="lstm", mix="mlp", mix_size=16),
    "dilated": DilatedConfig(tiny.VOCAB, **SMALL, num_layers=1),
    "strided": StridedConfig(tiny.VOCAB, **SMALL, num_layers=4),
    "openai-gpt": GPTConfig(tiny.VOCAB, intermediate_size=128, **TRANSFORMER),
    "gpt2": GPT2Config(tiny.VOCAB, intermediate_size=64, **TRANSFORMER),
    "bert-merged": MergedBertConfig(tiny.VOCAB, intermediate_size=64, **TRANSFORMER),
    "bert-decoder": BertConfig(tiny.VOCAB, intermediate_size=64, is_decoder=True, **TRANSFORMER),
}
MODES = {"dp": 1, "fsdp": 1, "tp": 4, "fsdp_tp": 4}  # devices that share rows
FAST = [("birnn", "dp"), ("birnn", "tp"), ("birnn", "fsdp")]
# Their modules are those of another encoder here, so one mode, which splits rows, kernels and heads, is enough.
ALIKE = ("birnn-lstm", "openai-gpt", "bert-decoder")
SLOW = [(kind, mode) for kind in CONFIGS for mode in MODES
        if mode == "fsdp_tp" or (mode != "dp" and kind not in ALIKE and (kind, mode) not in FAST)]  # fmt: skip


def make_setup(kind, devices=1, mode="dp"):
    """With dropout."""
    config = CONFIGS[kind]
    task = Pretraining(pairs=False, objective=objectives_of(config)[0])
    mesh = sharding.make_mesh(mode, MODES[mode] if devices > 1 else 1, jax.devices()[:devices])
    return Setup(task.model(config), task, optim.OptimizerSettings(100, 1e-2, schedule="constant"), mesh, mode)


def trained(kind, devices, mode):
    """The state after two steps, and the losses."""
    setup = make_setup(kind, devices, mode)
    state, values = tiny.run_steps(setup, [tiny.batch(0), tiny.batch(1)])
    return state, [step[setup.task.objective] for step in values]


@functools.cache
def on_one(kind):
    return trained(kind, 1, "dp")


@pytest.mark.long
@pytest.mark.parametrize(("kind", "mode"), [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)])
def test_eight_devices_train_as_one_does(kind, mode):
    state, losses = trained(kind, 8, mode)
    wanted, wanted_losses = on_one(kind)
    np.testing.assert_allclose(losses, wanted_losses, rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-4), state.params, wanted.params)
    assert losses[0] != losses[1]


@pytest.mark.parametrize("kind", CONFIGS)
def test_fsdp_splits_every_kernel(kind):
    """No device holds a whole kernel or table."""
    setup = make_setup(kind, 8, "fsdp")
    batch = {name: array[:1] for name, array in tiny.batch(0).items()}
    shapes = jax.eval_shape(setup.model.init, jax.random.key(0), batch)["params"]
    shards = sharding.state_shardings(shapes, setup.mesh, "fsdp")
    for (path, leaf), shard in zip(jax.tree.leaves_with_path(shapes), jax.tree.leaves(shards), strict=True):
        if optim.decays(tuple(key.key for key in path)):
            assert np.prod(shard.shard_shape(leaf.shape)) * 8 == leaf.size, path


class Killed(Exception):
    """Nothing in the loop catches it."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_killed_run_ends_bit_equal_and_its_model_loads_back(kind, tmp_path):
    """With dropout; the crash is in step 7, after the checkpoint of step 4."""

    def fit(workdir, killed_at=None):
        def train_batch(number):
            if number == killed_at:
                raise Killed
            return tiny.batch(number)

        loop = train.LoopSettings(10, log_every=5, evaluate_every=10, save_every=4)
        return train.fit(train.Run(make_setup(kind), loop, workdir, train_batch, None, 1.0)).state

    whole = jax.device_get(fit(tmp_path / "whole"))
    with pytest.raises(Killed):
        fit(tmp_path / "killed", killed_at=7)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(fit(tmp_path / "killed")), whole)
    model = inference.from_params(CONFIGS[kind], whole.params, None)
    loaded = bert.load(bert.save(model, tmp_path / "export"))
    assert loaded.config == model.config
    assert jax.tree.structure(loaded.params) == jax.tree.structure(model.params)
    ids = [[2, 8, 9, 6, 3]]
    outputs = loaded.outputs(ids)
    assert "mlm_logits" in outputs
    for name, value in model.outputs(ids).items():
        np.testing.assert_array_equal(value, outputs[name])
