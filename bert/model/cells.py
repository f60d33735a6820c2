"""Recurrent cells, and the recurrence of one over time, with padding and with several examples in a row.

The gates, their order and the two biases are those of torch.nn.GRU, LSTM and RNN; kernels are float32 [in, gates * J].
Axes: T time, B row, I width of the input, J width of the state, G the gates side by side (3 J, 4 J or J).
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from bert.architectures import ModelConfig
from bert.model import matmul
from bert.model.weights import Weights

State = tuple[Array, ...]  # float32 [B, J] each; the first is the output


class Cell(NamedTuple):
    """``step``: what input and state give to the gates, float32 [B, G] each, and the state -> the next state."""

    states: int
    step: Callable[[Array, Array, State], State]


def _gru(x_BG: Array, h_BG: Array, state: State) -> State:
    (x_reset, x_update, x_new), (h_reset, h_update, h_new) = jnp.split(x_BG, 3, -1), jnp.split(h_BG, 3, -1)
    reset, update = jax.nn.sigmoid(x_reset + h_reset), jax.nn.sigmoid(x_update + h_update)
    new = jnp.tanh(x_new + reset * h_new)
    return ((1 - update) * new + update * state[0],)


def _lstm(x_BG: Array, h_BG: Array, state: State) -> State:
    enter, forget, new, leave = jnp.split(x_BG + h_BG, 4, -1)
    memory = jax.nn.sigmoid(forget) * state[1] + jax.nn.sigmoid(enter) * jnp.tanh(new)
    return jax.nn.sigmoid(leave) * jnp.tanh(memory), memory


def _vanilla(x_BG: Array, h_BG: Array, state: State) -> State:
    return (jnp.tanh(x_BG + h_BG),)


CELLS = {"gru": Cell(1, _gru), "lstm": Cell(2, _lstm), "vanilla": Cell(1, _vanilla)}


class CellConfig(ModelConfig, Protocol):
    """What a recurrence reads of a configuration beside what everybody reads."""

    @property
    def cell(self) -> str: ...  # of `CELLS`
    @property
    def state_size(self) -> int: ...  # J
    @property
    def gate_size(self) -> int: ...  # G


class Recurrence(nn.Module):
    """A cell run over time in one direction: [T, B, I] -> its output after each step, float32 [T, B, J].

    The state passes padding unchanged, and starts at zero where an example does.
    """

    config: CellConfig
    inputs: int  # I
    backward: bool = False  # from the last step to the first

    def setup(self) -> None:
        config = self.config
        self.input, self.state = (
            Weights((self.inputs, config.gate_size)),
            Weights((config.state_size, config.gate_size)),
        )

    def __call__(self, x_TBI: Array, real_TB: Array, first_TB: Array) -> Array:
        """``real_TB``: bool, False for padding; ``first_TB``: bool, the first token of an example in this direction."""
        x_TBG = matmul.dense(x_TBI, *self.input(), self.config.dtype, "float32")  # of all steps at once
        return run(self.config.cell, self.backward, self.config.dtype, x_TBG, *self.state(), real_TB, first_TB)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def run(
    cell: str,
    backward: bool,
    dtype: str,
    x_TBG: Array,
    kernel_JG: Array,
    bias_G: Array,
    real_TB: Array,
    first_TB: Array,
) -> Array:
    """The outputs, float32 [T, B, J], of a cell whose input has given ``x_TBG`` to the gates.

    The gradient of the kernel is one product over all steps behind the loop, not a sum of one in each step.
    """
    return _forward(cell, backward, dtype, x_TBG, kernel_JG, bias_G, real_TB, first_TB)[0]


def _forward(
    cell: str,
    backward: bool,
    dtype: str,
    x_TBG: Array,
    kernel_JG: Array,
    bias_G: Array,
    real_TB: Array,
    first_TB: Array,
) -> tuple[Array, Any]:
    kernel = matmul.operand(kernel_JG, dtype)

    def step(state: State, now: tuple[Array, ...]) -> tuple[State, Any]:
        x_BG, real_B1, first_B1 = now
        before = tuple(jnp.where(first_B1, 0.0, part) for part in state)
        h_BG = _times(before[0], kernel, dtype, 0) + bias_G
        after = CELLS[cell].step(x_BG, h_BG, before)
        after = tuple(jnp.where(real_B1, new, old) for new, old in zip(after, before, strict=True))
        return after, (before, h_BG, after[0])

    zero_BJ = jnp.zeros((x_TBG.shape[1], len(kernel_JG)), jnp.float32)
    steps = (x_TBG, real_TB[..., None], first_TB[..., None])
    _, (before, h_TBG, output_TBJ) = jax.lax.scan(step, (zero_BJ,) * CELLS[cell].states, steps, reverse=backward)
    return output_TBJ, (x_TBG, kernel_JG, *steps[1:], before, h_TBG)


def _backward(cell: str, backward: bool, dtype: str, saved: Any, doutput_TBJ: Array) -> tuple[Any, ...]:
    x_TBG, kernel_JG, real_TB1, first_TB1, before, h_TBG = saved
    kernel = matmul.operand(kernel_JG, dtype)

    def step(dstate: State, now: Any) -> tuple[State, Any]:
        x_BG, h_BG, before, real_B1, first_B1, doutput_BJ = now
        dafter = (dstate[0] + doutput_BJ, *dstate[1:])
        dnew = tuple(jnp.where(real_B1, part, 0.0) for part in dafter)
        dx_BG, dh_BG, dbefore = jax.vjp(CELLS[cell].step, x_BG, h_BG, before)[1](dnew)
        dbefore = (dbefore[0] + _times(dh_BG, kernel, dtype, 1), *dbefore[1:])
        dbefore = tuple(part + jnp.where(real_B1, 0.0, past) for part, past in zip(dbefore, dafter, strict=True))
        return tuple(jnp.where(first_B1, 0.0, part) for part in dbefore), (dx_BG, dh_BG)

    steps = (x_TBG, h_TBG, before, real_TB1, first_TB1, doutput_TBJ)
    zeros = tuple(jnp.zeros_like(part[0]) for part in before)
    _, (dx_TBG, dh_TBG) = jax.lax.scan(step, zeros, steps, reverse=not backward)
    operands = matmul.operand(before[0], dtype), matmul.operand(dh_TBG, dtype)
    dkernel_JG = matmul.dot(*operands, ((0, 1), (0, 1)), result="float32")
    return dx_TBG, dkernel_JG, matmul.column_sums(dh_TBG), None, None


def _times(x: Array, kernel: Array, dtype: str, axis: int) -> Array:
    return matmul.dot(matmul.operand(x, dtype), kernel, ((1,), (axis,)), result="float32")


run.defvjp(_forward, _backward)
