"""Every encoder-decoder on pairs of texts, or of pictures and texts: on eight devices it trains as on one, whatever is
split; a killed run ends with the same bits; its weights are written and read back."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

import bert
from bert import inference
from bert.data.encoded_pictures import EncodedPictures
from bert.data.sequence_pairs import EncodedPairs, join
from bert.training import optim, sharding, train
from bert.training.step import Setup
from tasks.target_words import TargetWords
from tests.bert.architectures import captions_test
from tests.bert.model import decoders_test
from tests.bert.training import tiny

VOCAB, ROWS, LENGTH = 64, 8, 8
OF_PICTURES = ("more convolutions", "patches", "additive")
CONFIGS = {kind: dataclasses.replace(of, vocab_size=VOCAB) for kind, of in decoders_test.CONFIGS.items()} | {
    kind: dataclasses.replace(captions_test.CONFIGS[kind], vocab_size=VOCAB, channels=8) for kind in OF_PICTURES
}
MODES = {"dp": 1, "fsdp": 1, "tp": 4, "fsdp_tp": 4}  # devices that share rows
# One mode splits rows, kernels and heads; those of Transformers are tested in all modes without a decoder.
EACH_MODE = ("bahdanau", "convs2s")
CASES = [(kind, mode) for kind in CONFIGS for mode in MODES if mode == "fsdp_tp" or kind in EACH_MODE]


def batch(kind: str, number: int) -> dict[str, np.ndarray]:
    """Two pairs of random lengths a row, or one of a picture and a text."""
    rng = np.random.default_rng((7, number))
    sources, targets = (
        [rng.integers(3, VOCAB, rng.integers(1, LENGTH // 2 + 1)) for _ in range(2 * ROWS)] for _ in "st"
    )
    if kind in OF_PICTURES:
        pictures = EncodedPictures(list(rng.integers(0, 256, (2 * ROWS, 8, 12, 8))), 4, 127.0, 70.0)
        pairs = EncodedPairs(pictures, join(targets, targets).target)
        return pairs.assembled([np.array([i]) for i in range(ROWS)], LENGTH, ROWS, 1)
    return join(sources, targets).assembled([np.array([2 * i, 2 * i + 1]) for i in range(ROWS)], LENGTH, ROWS, 2)


def make_setup(kind, devices=1, mode="dp"):
    """With dropout."""
    task = TargetWords(0.1)
    mesh = sharding.make_mesh(mode, MODES[mode] if devices > 1 else 1, jax.devices()[:devices])
    rule = optim.OptimizerSettings(100, 1e-2, schedule="constant")
    return Setup(task.model(CONFIGS[kind]), task, rule, mesh, mode)


def trained(kind, devices, mode):
    """The state after two steps, and the losses."""
    state, values = tiny.run_steps(make_setup(kind, devices, mode), [batch(kind, 0), batch(kind, 1)])
    return state, [step["loss"] for step in values]


@functools.cache
def on_one(kind):
    return trained(kind, 1, "dp")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "mode"), CASES)
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
    shapes = jax.eval_shape(setup.model.init, jax.random.key(0), batch(kind, 0))["params"]
    shards = sharding.state_shardings(shapes, setup.mesh, "fsdp")
    for (path, leaf), shard in zip(jax.tree.leaves_with_path(shapes), jax.tree.leaves(shards), strict=True):
        if optim.decays(tuple(key.key for key in path)):
            assert np.prod(shard.shard_shape(leaf.shape)) * 8 == leaf.size, path


class Killed(Exception):
    """Nothing in the loop catches it."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(CONFIGS.keys() - {"rnn", "bilinear", "dot"}))  # their loop is that of bahdanau
def test_a_killed_run_ends_bit_equal_and_its_model_loads_back(kind, tmp_path):
    """With dropout; the crash is in step 7, after the checkpoint of step 4."""

    def fit(workdir, killed_at=None):
        def train_batch(number):
            if number == killed_at:
                raise Killed
            return batch(kind, number)

        loop = train.LoopSettings(10, log_every=5, evaluate_every=10, save_every=4)
        return train.fit(train.Run(make_setup(kind), loop, workdir, train_batch, None, 1.0)).state

    whole = jax.device_get(fit(tmp_path / "whole"))
    with pytest.raises(Killed):
        fit(tmp_path / "killed", killed_at=7)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(fit(tmp_path / "killed")), whole)
    model = inference.from_params(CONFIGS[kind], whole.params, None)
    loaded = bert.load(bert.save(model, tmp_path / "export"))
    assert loaded.config == model.config
    jax.tree.map(np.testing.assert_array_equal, loaded.params, model.params)
