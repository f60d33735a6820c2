"""Meshes, path rules and the checks of batch sizes; that results do not depend on them is in step_test.py."""

import jax
import numpy as np
import pytest

from bert.errors import InputError
from bert.training import sharding
from bert.training.step import abstract_state
from tests.bert.training import tiny


def test_a_batch_that_does_not_divide_is_refused_with_sizes_that_do():
    """Six rows on eight devices: the multiples are named; eight rows pass; micro-batches count, too."""
    mesh = sharding.make_mesh()
    with pytest.raises(InputError, match=r"batch_size is 6; it must be a multiple of 8 .*: 8, 16, 24"):
        sharding.check_batch_size(6, mesh)
    sharding.check_batch_size(8, mesh)
    with pytest.raises(InputError, match="multiple of 16"):
        sharding.check_batch_size(8, mesh, micro_batches=2)
    with pytest.raises(InputError, match="micro_batches is 0"):
        sharding.check_batch_size(8, mesh, micro_batches=0)


@pytest.mark.parametrize(
    ("mode", "model_devices", "said"),
    [("ddp", 1, "mesh.mode is 'ddp'; it must be one of dp, fsdp, tp, fsdp_tp"), ("tp", 3, "mesh.model_devices is 3")],
)
def test_unknown_modes_and_uneven_meshes_are_refused(mode, model_devices, said):
    with pytest.raises(InputError, match=said):
        sharding.make_mesh(mode, model_devices)


@pytest.mark.parametrize(("mode", "model_devices", "share"), [("dp", 1, 1.0), ("fsdp", 1, 0.15), ("fsdp_tp", 2, 0.16)])
def test_parameters_and_both_moments_are_split_as_the_mode_says(mode, model_devices, share):
    """Bytes of the state on one of eight devices, as a share of all: everything, or little more than an eighth."""
    made = tiny.setup(devices=8, mode=mode, model_devices=model_devices, hidden_size=64, intermediate_size=256)
    leaves = jax.tree.leaves(abstract_state(made, tiny.batch()))
    size = lambda shape: int(np.prod(shape))  # noqa: E731
    one = sum(size(x.sharding.shard_shape(x.shape)) for x in leaves)
    assert one / sum(size(x.shape) for x in leaves) <= share


def test_an_axis_that_the_devices_do_not_divide_stays_whole():
    """A vocabulary of 127 on eight devices: the table is not split, and training still works."""
    made = tiny.setup(devices=8, mode="fsdp", vocab_size=127)
    table = abstract_state(made, tiny.batch()).params["encoder"]["embeddings"]["token"]["embedding"]
    assert table.sharding.shard_shape(table.shape) == table.shape
