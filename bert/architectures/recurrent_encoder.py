"""A bidirectional recurrent network: token embeddings, and layers that read the text from both sides.

Axes: T time, B row, D hidden width (both directions), J width of one direction, I width of embeddings, P position.

Source: Peters et al. 2018 (ELMo) and Melamud et al. 2016 (context2vec): a stack for each direction.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from bert.architectures.recurrent import RecurrentConfig
from bert.model.cells import Recurrence
from bert.model.dropout import by_number
from bert.model.embeddings import Embedding
from bert.model.stack import rows_over_data
from bert.model.two_sides import TwoSidedEncoder, ends
from bert.types import Batch


class RecurrentEncoder(TwoSidedEncoder):
    """A batch (bert/data/batches.py) -> hidden states [B, T, D]; the first half has read from the left.

    Reads ``token_ids``, ``position_ids`` and ``example_ids``. States pass padding unchanged, and start at zero in each
    example of a row.
    """

    config: RecurrentConfig

    @property
    def objectives(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("blank",) if self.config.stacks == "separate" else ("mlm",)

    def setup(self) -> None:
        config = self.config
        self.token = Embedding(config, config.vocab_size, config.embedding_size)
        inputs = [config.inputs(layer) for layer in range(config.num_layers)]
        self.forward = [Recurrence(config, width) for width in inputs]
        self.backward = [Recurrence(config, width, backward=True) for width in inputs]

    def sides(self, batch: Batch, train: bool) -> tuple[Array, Array]:
        dropped = by_number(self.config.hidden_dropout, self.make_rng("dropout") if train else None)
        first_BT, last_BT = ends(batch)
        real_TB, first_TB, last_TB = (x.T for x in (batch["example_ids"] != 0, first_BT, last_BT))
        x_BTI = dropped(rows_over_data(self.token(batch["token_ids"])), 0)
        left_TBI = right_TBI = x_BTI.swapaxes(0, 1)
        for depth, (forward, backward) in enumerate(zip(self.forward, self.backward, strict=True), 1):
            if depth > 1 and self.config.stacks == "joint":
                left_TBI = right_TBI = jnp.concatenate([left_TBI, right_TBI], axis=-1)
            left_TBI = dropped(forward(left_TBI, real_TB, first_TB), 2 * depth - 1)
            right_TBI = dropped(backward(right_TBI, real_TB, last_TB), 2 * depth)
        return left_TBI.swapaxes(0, 1).astype(self.config.dtype), right_TBI.swapaxes(0, 1).astype(self.config.dtype)

    def depth_of(self, path: Sequence[str]) -> int:
        """0 for the embeddings, from 1 for the layers, whose number ends their name."""
        return 0 if path[0] == "token" else int(path[0].rpartition("_")[2]) + 1
