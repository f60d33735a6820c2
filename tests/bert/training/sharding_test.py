"""Meshes, path rules and the checks of batch sizes; that results do not depend on them is in step_test.py."""

import jax
import numpy as np
import pytest

from bert.architectures.bert import BertConfig
from bert.architectures.bert_encoder import BertEncoder
from bert.errors import InputError
from bert.training import sharding
from bert.training.step import abstract_state
from tests.bert.training import tiny


def test_a_batch_that_does_not_divide_is_refused_with_sizes_that_do():
    """Six rows on eight devices: the multiples are named; eight rows pass; micro-batches count, too."""
    mesh = sharding.make_mesh()
    with pytest.raises(InputError, match=r"batch_size is 6; .*: 8, 16, "):
        sharding.check_batch_size(6, mesh)
    with pytest.raises(InputError, match=r"batch_size is 100; .*: 96, 128, "):
        sharding.check_batch_size(100, mesh, micro_batches=4)
    sharding.check_batch_size(8, mesh)
    with pytest.raises(InputError, match="multiple of 16"):
        sharding.check_batch_size(8, mesh, micro_batches=2)
    with pytest.raises(InputError, match="micro_batches is 0"):
        sharding.check_batch_size(8, mesh, micro_batches=0)


@pytest.mark.parametrize(
    ("mode", "model_devices", "heads", "said"),
    [
        ("ddp", 1, 12, "mesh.mode is 'ddp'; it must be one of dp, fsdp, tp, fsdp_tp"),
        ("tp", 3, 0, "mesh.model_devices is 3; .*divide the 8 devices of a process: 2 or 4$"),
        ("tp", 16, 0, "mesh.model_devices is 16; .*: 4 or 8$"),
        ("tp", 0, 12, "mesh.model_devices is 0; .*: 1 or 2$"),
        ("fsdp_tp", 8, 12, "mesh.model_devices is 8; .*the 12 attention heads: 2 or 4$"),
        ("fsdp", 2, 12, "mesh.model_devices is 2, .*mesh.mode is fsdp, .*tp or fsdp_tp"),
        ("tp", 1, 12, "mesh.mode is tp, .*mesh.model_devices to 2 or 4, "),
    ],
)
def test_impossible_meshes_are_refused_with_the_nearest_possible_ones(mode, model_devices, heads, said):
    """On eight devices; sizes that are named can be made."""
    with pytest.raises(InputError, match=said):
        sharding.make_mesh(mode, model_devices, heads=heads)
    assert sharding.make_mesh("tp", 4, heads=12).shape == {"data": 2, "model": 4}
    assert sharding.make_mesh("tp", 1, jax.devices()[:1], heads=12).size == 1


@pytest.mark.parametrize(("mode", "model_devices", "share"), [("dp", 1, 1.0), ("fsdp", 1, 0.15), ("fsdp_tp", 2, 0.16)])
def test_parameters_and_both_moments_are_split_as_the_mode_says(mode, model_devices, share):
    """Bytes of the state on one of eight devices, as a share of all: everything, or little more than an eighth."""
    made = tiny.setup(devices=8, mode=mode, model_devices=model_devices, hidden_size=64, intermediate_size=256)
    leaves = jax.tree.leaves(abstract_state(made, tiny.batch()))
    size = lambda shape: int(np.prod(shape))  # noqa: E731
    one = sum(size(x.sharding.shard_shape(x.shape)) for x in leaves)
    assert one / sum(size(x.shape) for x in leaves) <= share


def test_a_vocabulary_that_the_devices_do_not_divide_is_split_by_width():
    """30,522 entries on eight devices: of the state of base, each has under 15 %, and an axis of 3 stays whole."""
    config = BertConfig.of_size("base", vocab_size=30522, type_vocab_size=3)
    params = jax.eval_shape(BertEncoder(config).init, jax.random.key(0), tiny.batch(rows=1))["params"]
    mesh = sharding.make_mesh("fsdp")
    shards = sharding.state_shardings(params, mesh, "fsdp")
    local = jax.tree.map(lambda x, shard: shard.shard_shape(x.shape), params, shards)
    assert local["embeddings"]["token"]["embedding"] == (30522, 96)
    assert local["embeddings"]["type"]["embedding"] == (3, 96)
    assert local["blocks"]["attention"]["query"]["bias"] == (12, 768)
    sizes = jax.tree.map(lambda x, shape: np.array([np.prod(shape), x.size]), params, local, is_leaf=_is_shape)
    one, whole = sum(jax.tree.leaves(sizes))
    assert one / whole < 0.15
    assert sharding.state_shardings(params, sharding.make_mesh("tp", 8), "tp")["embeddings"]["token"][
        "embedding"
    ].is_fully_replicated


def _is_shape(x: object) -> bool:
    return isinstance(x, tuple)


@pytest.mark.slow
def test_a_table_that_is_split_by_width_trains_as_a_whole_one():
    batches = [tiny.batch(i) for i in range(2)]
    for batch in batches:
        batch["token_ids"] %= 127
        batch["masked_ids"] %= 127
    sizes = {"vocab_size": 127, "num_layers": 1, "learning_rate": 1e-3}
    made = tiny.setup(devices=8, mode="fsdp", **sizes)
    table = abstract_state(made, tiny.batch()).params["encoder"]["embeddings"]["token"]["embedding"]
    assert table.sharding.shard_shape(table.shape) == (127, 4)
    (state, told), (wanted, wanted_told) = tiny.run_steps(made, batches), tiny.run_steps(tiny.setup(**sizes), batches)
    np.testing.assert_allclose([t["mlm"] for t in told], [t["mlm"] for t in wanted_told], rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), state.params, wanted.params)
