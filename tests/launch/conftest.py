"""What tests of commands share."""

import functools

import jax
import pytest

from bert.training import sharding


@pytest.fixture(scope="module")
def one_device():
    """On one of the eight devices: the step compiles in a third of the time."""
    made = functools.partial(sharding.make_mesh, devices=jax.devices()[:1])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharding, "make_mesh", made)
        yield
