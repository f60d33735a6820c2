"""Recurrent cells: the numbers of torch, padding, rows with several examples, and gradients of the loop."""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert.architectures.recurrent import CELL_GATES, RecurrentConfig
from bert.model.cells import CELLS, Recurrence, run

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "recurrent"


def params_of(weights, end):
    return {
        "input": {"kernel": weights[f"weight_ih_l0{end}"].T, "bias": weights[f"bias_ih_l0{end}"]},
        "state": {"kernel": weights[f"weight_hh_l0{end}"].T, "bias": weights[f"bias_hh_l0{end}"]},
    }


@pytest.mark.parametrize("cell", ["gru", "lstm"])
@pytest.mark.parametrize("backward", [False, True])
def test_outputs_and_gradients_are_those_of_torch(cell, backward):
    """Packed rows of 7, 5 and 2 steps; the loss is a weighted sum of the outputs."""
    name, end = GOLDEN / f"{cell}_bidirectional", "_reverse" if backward else ""
    arrays, weights = np.load(f"{name}.npz"), load_file(f"{name}.safetensors")
    module = Recurrence(RecurrentConfig(1, hidden_size=32, cell=cell), 12, backward)
    half = slice(16, 32) if backward else slice(0, 16)
    real_TB = (np.arange(7)[:, None] < arrays["lengths"])[:, :]
    first_TB = np.zeros_like(real_TB)

    def loss(params):
        y_TBJ = module.apply({"params": params}, arrays["x"].swapaxes(0, 1), real_TB, first_TB)
        y_TBJ = jnp.where(real_TB[..., None], y_TBJ, 0.0)
        return (y_TBJ * arrays["cotangent"][..., half].swapaxes(0, 1)).sum(), y_TBJ

    gradients, y_TBJ = jax.grad(loss, has_aux=True)(params_of(weights, end))
    np.testing.assert_allclose(y_TBJ.swapaxes(0, 1), arrays["output"][..., half], atol=1e-5)
    wanted = params_of({name[5:]: arrays[name] for name in arrays if name.startswith("grad|")}, end)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5 * max(1, np.abs(b).max())), gradients, wanted)


def test_the_worked_example_of_the_vanilla_cell():
    """Three words read by one cell from both sides; rows of the file are the states beside each word."""
    hand = json.loads((GOLDEN / "blank_vanilla_hand.json").read_text())
    table, kernel = np.array(hand["e"], np.float32), np.array(hand["Uh"], np.float32).T
    x_TBG = table[hand["words"]][:, None] @ np.array(hand["Ux"], np.float32).T
    zero, real, first = np.zeros(2, np.float32), np.ones((3, 1), bool), np.zeros((3, 1), bool)
    left, right = (run("vanilla", backward, "float32", x_TBG, kernel, zero, real, first) for backward in (False, True))
    np.testing.assert_allclose(left[:2, 0], [row["left"] for row in hand["rows"][1:]], atol=1e-6)
    np.testing.assert_allclose(right[1:, 0], [row["right"] for row in hand["rows"][:2]], atol=1e-6)


def by_loop(cell, backward, x_TBG, kernel, bias, real_TB, first_TB):
    """The same as `run`, step by step, for autodiff."""
    state = (jnp.zeros((x_TBG.shape[1], len(kernel))),) * CELLS[cell].states
    outputs = [state[0]] * len(x_TBG)
    for t in reversed(range(len(x_TBG))) if backward else range(len(x_TBG)):
        state = tuple(jnp.where(first_TB[t][:, None], 0.0, part) for part in state)
        new = CELLS[cell].step(x_TBG[t], state[0] @ kernel + bias, state)
        state = tuple(jnp.where(real_TB[t][:, None], a, b) for a, b in zip(new, state, strict=True))
        outputs[t] = state[0]
    return jnp.stack(outputs)


@pytest.mark.parametrize("cell", list(CELLS))
@pytest.mark.parametrize("backward", [False, True])
def test_the_written_gradient_is_that_of_autodiff(cell, backward):
    """With padding in the midst and at the end, and examples that begin within a row."""
    rng = np.random.default_rng(0)
    J, G = 3, 3 * CELL_GATES[cell]
    shapes = ((6, 2, G), (J, G), (G,))
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    weight_TBJ = rng.normal(size=(6, 2, J)).astype(np.float32)
    real_TB = np.array([[1, 1], [1, 1], [0, 1], [1, 1], [1, 0], [1, 0]], bool)
    first_TB = np.array([[1, 1], [0, 0], [0, 1], [0, 0], [1, 0], [0, 0]], bool)

    def gradients(function):
        return jax.grad(lambda *xs: (function(*xs, real_TB, first_TB) * weight_TBJ).sum(), argnums=(0, 1, 2))(*arrays)

    ours = gradients(lambda *xs: run(cell, backward, "float32", *xs))
    for one, other in zip(ours, gradients(lambda *xs: by_loop(cell, backward, *xs)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_products_in_bfloat16_stay_close_and_the_state_stays_float32():
    rng = np.random.default_rng(1)
    x, kernel = (rng.normal(size=shape).astype(np.float32) / 4 for shape in ((9, 2, 12), (4, 12)))
    zero, real = np.zeros(12, np.float32), np.ones((9, 2), bool)
    wide, narrow = (run("gru", False, dtype, x, kernel, zero, real, ~real) for dtype in ("float32", "bfloat16"))
    assert narrow.dtype == jnp.float32
    assert 0 < np.abs(wide - narrow).max() < 0.02
