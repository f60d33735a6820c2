"""Recurrent cells, and the recurrence of one over time, with padding and with several examples in a row.

The gates, their order and the two biases are those of torch.nn.GRU, LSTM and RNN; kernels are float32 [in, gates * J].
Axes: T time, B row, I width of the input, J width of the state, G the gates side by side (3 J, 4 J or J).
"""

import functools
from collections.abc import Callable
from typing import NamedTuple, Protocol

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from bert.architectures import ModelConfig
from bert.model import matmul, recurrence
from bert.model.recurrence import Times
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
    """The outputs, float32 [T, B, J], of a cell whose input has given ``x_TBG`` to the gates."""
    zero_BJ = jnp.zeros((x_TBG.shape[1], len(kernel_JG)), jnp.float32)
    steps = (x_TBG, real_TB[..., None], first_TB[..., None])
    step = functools.partial(_step, CELLS[cell])
    begun = (zero_BJ,) * CELLS[cell].states
    _, output_TBJ = recurrence.scan(step, dtype, backward, {"state": kernel_JG}, bias_G, begun, steps)
    return output_TBJ


def _step(cell: Cell, times: Times, bias_G: Array, state: State, now: tuple[Array, ...]) -> tuple[State, Array]:
    x_BG, real_B1, first_B1 = now
    before = tuple(jnp.where(first_B1, 0.0, part) for part in state)
    after = cell.step(x_BG, times("state", before[0]) + bias_G, before)
    after = tuple(jnp.where(real_B1, new, old) for new, old in zip(after, before, strict=True))
    return after, after[0]
