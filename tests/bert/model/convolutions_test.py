"""Convolutions: worked examples, the way back is the adjoint of the way up, and the gated block."""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.convolution import DilatedConfig
from bert.model import convolutions
from bert.model.convolutions import GatedBlock

HAND = json.loads((pathlib.Path(__file__).resolve().parents[2] / "golden" / "convolution" / "hand.json").read_text())


def rows(*lengths, T=None):
    """A batch of one row with examples of these lengths one after the other, and padding."""
    ids = np.concatenate([np.full(length, i, np.int32) for i, length in enumerate(lengths, 1)])
    positions = np.concatenate([np.arange(length, dtype=np.int32) for length in lengths])
    pad = (T or len(ids)) - len(ids)
    return {"example_ids": np.pad(ids, (0, pad))[None], "position_ids": np.pad(positions, (0, pad))[None]}


def test_the_worked_example_of_a_level():
    hand = HAND["strided_hand"]
    x, kernel = np.array(hand["x"], np.float32)[None], np.array([hand["W0"], hand["W1"]], np.float32)
    y = convolutions.strided(x, kernel, np.array(hand["B"], np.float32), "float32")
    np.testing.assert_allclose(jax.nn.relu(y)[0], hand["output"], atol=1e-6)


@pytest.mark.parametrize("kernel_size", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [1, 2, 7, 8])
def test_the_way_back_is_the_adjoint_of_the_way_up(kernel_size, length):
    """<up(x), y> = <x, back(y)> with the kernel's axes exchanged; a level has half of the positions, rounded up."""
    rng = np.random.default_rng(kernel_size)
    x, y = (rng.normal(size=(2, size, width)).astype(np.float32) for size, width in ((length, 3), (-(-length // 2), 4)))
    kernel = rng.normal(size=(kernel_size, 3, 4)).astype(np.float32)
    up = convolutions.strided(x, kernel, np.zeros(4, np.float32), "float32")
    back = convolutions.transposed(y, kernel.swapaxes(1, 2), np.zeros(3, np.float32), length, "float32")
    assert up.shape == y.shape
    np.testing.assert_allclose((up * y).sum(), (x * back).sum(), rtol=1e-4)


def gated(x_T, taps, bias=(0.0, 0.0), offsets=(-2, -1, 0)):
    block = GatedBlock(DilatedConfig(1), 1, offsets)
    kernel = jnp.array(taps, jnp.float32).T[:, None]
    params = {"convolution": {"kernel": kernel, "bias": jnp.array(bias, jnp.float32)}}
    x = jnp.array(x_T, jnp.float32)[None, :, None]
    return block.apply({"params": params}, x, rows(len(x_T)))[0, :, 0]


def test_the_worked_example_of_a_causal_gated_block():
    hand = HAND["causal_glu_hand"]
    np.testing.assert_allclose(gated(hand["x"], (hand["a_taps"], hand["gate_taps"])), hand["block"], atol=1e-6)


def test_an_open_gate_leaves_the_convolution():
    """A bias of 20 opens the gate: what is left is linear, plus the input, times the root of a half."""
    hand = HAND["causal_glu_hand"]
    wanted = (np.array(hand["a"]) + hand["x"]) * np.sqrt(0.5)
    np.testing.assert_allclose(gated(hand["x"], (hand["a_taps"], (0, 0, 0)), (0, 20)), wanted, atol=1e-6)


def test_a_tap_reads_its_own_example_only():
    """Examples of 3 and 2 tokens and a place of padding; offsets to both sides, and one beyond the row."""
    x = np.array([1, 2, 3, 4, 5, 6], np.float32)[None, :, None]
    batch = rows(3, 2, T=6)
    for offset, wanted in ((-1, [0, 1, 2, 0, 4, 0]), (1, [2, 3, 0, 5, 0, 0]), (2, [3, 0, 0, 0, 0, 0]), (9, [0] * 6)):
        assert convolutions.shifted(x, offset, batch)[0, :, 0].tolist() == wanted


def test_three_causal_blocks_see_nothing_to_their_right():
    """And the shift of the decoder's input makes it strictly so; every earlier input within reach has an influence."""
    x_T = np.random.default_rng(0).normal(size=9)
    taps = np.random.default_rng(1).normal(size=(2, 3))

    def stacked(x_T):
        for _ in range(3):
            x_T = gated(x_T, taps)
        return x_T

    influence_TS = np.abs(jax.jacobian(stacked)(jnp.array(x_T, jnp.float32))) > 0
    distance_TS = np.arange(9)[:, None] - np.arange(9)
    np.testing.assert_array_equal(influence_TS, (distance_TS >= 0) & (distance_TS <= 6))


@pytest.mark.parametrize("stride", [1, 2])
def test_in_two_directions_each_second_cell_stays_or_all(stride):
    """Against XLA's convolution, whose taps lie as these do where it pads one cell in front."""
    rng = np.random.default_rng(0)
    x_BXYI, kernel_KKIO = rng.standard_normal((2, 4, 6, 3), np.float32), rng.standard_normal((3, 3, 3, 5), np.float32)
    bias_O = rng.standard_normal(5).astype(np.float32)
    layout = ("NHWC", "HWIO", "NHWC")
    theirs = jax.lax.conv_general_dilated(
        x_BXYI, kernel_KKIO, (stride,) * 2, ((1, 2 - stride),) * 2, dimension_numbers=layout, precision="highest"
    )
    ours = convolutions.in_two(x_BXYI, kernel_KKIO, bias_O, "float32", stride)
    assert ours.shape == (2, 4 // stride, 6 // stride, 5)
    np.testing.assert_allclose(ours, theirs + bias_O, atol=1e-5)
