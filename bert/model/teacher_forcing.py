"""`TeacherForced`: an encoder-decoder in training, which scores each word of a target from those before it.

Axes: as in decoders.py; V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn

from bert import architectures
from bert.architectures import ModelConfig
from bert.model import vocabulary
from bert.model.heads import Outputs
from bert.types import Batch


class TeacherForced(nn.Module):
    """A batch of pairs -> what each word of the targets costs, float32 [B, U].

    Outputs: ``smoothed``, the cross-entropy in nats to labels of which ``smoothing`` is a share (`losses.smoothed`);
    ``nats``, that to the words themselves, without a gradient; ``correct``, 1 where no other word scores higher.
    Parameters: ``{"encoder": ...}``, the decoder's among them.
    """

    config: ModelConfig
    smoothing: float = 0.0

    def setup(self) -> None:
        self.encoder = architectures.build(self.config)

    def __call__(self, batch: Batch, *, train: bool = False) -> Outputs:
        if "cls_positions" in batch:
            architectures.check_packing(self.config, batch["cls_positions"].shape[1] > 1)
        encoder: Any = self.encoder
        hidden_BUD = encoder.teacher_forced(encoder.memory(batch, train=train), batch, train=train)
        table_VD, bias_V = encoder.output_projection()
        smoothed, nats, correct = vocabulary.smoothed_cross_entropy(
            hidden_BUD, table_VD, bias_V, batch["target_ids"], self.config.dtype, self.smoothing
        )
        return {"smoothed": smoothed, "nats": nats, "correct": correct}

    def depth_of(self, path: Sequence[str]) -> int | Sequence[int] | None:
        """As `heads.Model.depth_of`."""
        encoder: Any = architectures.build(self.config)
        return encoder.depth_of(path[1:]) if path[0] == "encoder" else None
