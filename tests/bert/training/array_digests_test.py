"""Digests of arrays: every flipped bit changes them, sharding does not, and both ways of computing them agree."""

import jax
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from bert.training import array_digests, sharding

RNG = np.random.default_rng(0)
TREE = {
    "kernel": RNG.standard_normal((3, 8, 16)).astype(np.float32),
    "long": RNG.standard_normal(70_001).astype(np.float32),  # more words than are mixed together
    "half": RNG.standard_normal((5, 7)).astype(ml_dtypes.bfloat16),
    "step": np.int32(7),
    "nothing": np.zeros((0, 4), np.float32),
}


def test_devices_and_host_agree_on_any_mesh():
    want = array_digests.of_host(TREE)
    assert set(want) == set(TREE)
    assert len(set(want.values())) == len(TREE)
    assert array_digests.of_devices(TREE) == want
    for mode, devices in (("dp", 8), ("fsdp_tp", 8), ("tp", 2)):
        mesh = sharding.make_mesh(mode, 1 if mode == "dp" else 2, jax.devices()[:devices])
        with jax.set_mesh(mesh):
            for spec in (P(), P(None, "data"), P(None, "data", "model"), P(None, None, ("model", "data"))):
                placed = jax.device_put(TREE["kernel"], NamedSharding(mesh, spec))
                assert array_digests.of_devices({"kernel": placed}) == {"kernel": want["kernel"]}


@pytest.mark.parametrize("name", ["kernel", "half", "step"])
def test_every_flipped_bit_changes_both_halves(name):
    array = np.atleast_1d(TREE[name])
    want = array_digests.of_host({"x": array})["x"]
    for bit in range(array.nbytes * 8):
        changed = bytearray(array.tobytes())
        changed[bit // 8] ^= 1 << bit % 8
        found = array_digests.of_host({"x": np.frombuffer(changed, array.dtype).reshape(array.shape)})["x"]
        assert found[:8] != want[:8]
        assert found[8:] != want[8:]


@pytest.mark.parametrize("damage", ["swapped", "negated", "zeroed", "shifted"])
def test_damage_of_many_words_changes_them(damage):
    """What a plain sum, or one with a weight a place, would not see."""
    array = TREE["long"].copy()
    match damage:
        case "swapped":
            array[[3, 4]] = array[[4, 3]]
        case "negated":
            array[:2] *= -1
        case "zeroed":
            array[512:1024] = 0
        case "shifted":
            array = np.roll(array, 1)
    assert array_digests.of_host({"long": array}) != array_digests.of_host({"long": TREE["long"]})
