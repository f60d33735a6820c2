"""Language models that are timed: GPT-2, and bidirectional recurrent networks that predict each word from all others.

Every implementation imports this in its own environment, so it needs only NumPy.
"""

import dataclasses

import numpy as np

from bench.work import FIRST_WORD, VOCABULARY
from bert.architectures.gpt import GPT2Config
from bert.architectures.recurrent import RecurrentConfig


@dataclasses.dataclass(frozen=True)
class Language:
    """A training step with AdamW, or texts that are continued.

    Attributes:
      model: gpt2, of size mini; or the cell of a recurrent network with one layer, gru or lstm.
      step: train, or generate: the most probable tokens, one after the other, with a cache.
      batch: number of rows. length: tokens in each, or in each prompt. new: tokens to generate.
      dtype: of matrix products. dropout: rate for embeddings, hidden states and attention weights.
    """

    model: str
    step: str = "train"
    batch: int = 32
    length: int = 128
    new: int = 0
    dtype: str = "float32"
    dropout: float = 0.1

    @property
    def gpt(self) -> GPT2Config:
        rates = {"hidden_dropout": self.dropout, "attention_dropout": self.dropout}
        return GPT2Config.of_size("mini", vocab_size=VOCABULARY, hidden_act="gelu_new", dtype=self.dtype, **rates)

    @property
    def recurrent(self) -> RecurrentConfig:
        return RecurrentConfig(VOCABULARY, cell=self.model, hidden_dropout=self.dropout, dtype=self.dtype)

    @property
    def objective(self) -> str:
        return "causal" if self.model == "gpt2" else "blank"

    def token_ids(self) -> np.ndarray:
        """int32 [B, T], random words."""
        return np.random.default_rng(0).integers(FIRST_WORD, VOCABULARY, (self.batch, self.length)).astype(np.int32)

    def arrays(self) -> dict[str, np.ndarray]:
        """The batch of a training step (keys: bert/data/batches.py): one example per row, all words predicted."""
        token_ids = self.token_ids()
        last = self.length - (self.objective == "causal")  # nothing stands behind the last word
        places = np.broadcast_to(np.arange(self.length), token_ids.shape).astype(np.int32)
        return {
            "token_ids": token_ids,
            "type_ids": np.zeros_like(token_ids),
            "position_ids": places,
            "example_ids": np.ones_like(token_ids),
            "cls_positions": np.zeros((self.batch, 1), np.int32),
            "masked_positions": places[:, :last],
            "masked_ids": token_ids[:, self.length - last :],
            "masked_weights": np.ones((self.batch, last), np.float32),
        }
