"""RecurrentConfig: a bidirectional recurrent network, ``birnn``. The module is in recurrent_encoder.py."""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bert.architectures.plain_config import TwoSidedConfig

CELL_GATES = {"gru": 3, "lstm": 4, "vanilla": 1}  # products of the input, and of the state, in a step


@dataclasses.dataclass(frozen=True)
class RecurrentConfig(TwoSidedConfig):
    """Sizes of a bidirectional recurrent network."""

    model_type: ClassVar[str] = "birnn"
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"cell": tuple(CELL_GATES), "stacks": ("separate", "joint")}
    cell: str = "gru"  # gru, lstm or vanilla (tanh)
    # separate: one for each direction, as in ELMo, and the words on both sides of a blank predict it; joint: each layer
    # reads both directions of the one below, as in most taggers, so that a state has read its own word.
    stacks: str = "separate"

    @property
    def state_size(self) -> int:
        """J, the width of one direction."""
        return self.hidden_size // 2

    @property
    def gate_size(self) -> int:
        """G, the width of the gates of one direction side by side."""
        return CELL_GATES[self.cell] * self.state_size

    def inputs(self, layer: int) -> int:
        """The width of what a layer, from 0, reads."""
        above = self.state_size if self.stacks == "separate" else self.hidden_size
        return above if layer else self.embedding_size

    def matmul_flops_per_token(self, length: int) -> float:
        """Of the gates of all layers, 2 per multiply-add; a token costs the same in a row of any length."""
        return 2.0 * 2 * self.gate_size * sum(self.inputs(layer) + self.state_size for layer in range(self.num_layers))
