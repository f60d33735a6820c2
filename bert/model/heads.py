"""What is read off the hidden states, and the model that joins an encoder with a head.

A head is a Linen module called as ``head(hidden_BTD, batch, token_table_VD, train=...)`` that returns a dict of
float32 arrays; the pretraining head is one like any other. Heads own their parameters only: the token table is lent
by the encoder in the call. Losses are in losses.py.
Axes: as in layers.py; P predicted position, E example in a row, C class, V vocabulary.

Source: Devlin et al. 2018, section 3.1; google-research/bert ``run_pretraining.py`` (get_masked_lm_output,
get_next_sentence_output).
"""

import flax.linen as nn
import jax.numpy as jnp

from bert.config import BertConfig
from bert.model.encoder import Encoder, pick
from bert.model.layers import ACTIVATION_FUNCTIONS, Array, Dense, LayerNorm


class MaskedWords(nn.Module):
    """Scores of every vocabulary entry at some positions: [B, P, D] -> float32 [B, P, V]."""

    config: BertConfig

    def setup(self):
        self.transform, self.norm = Dense(self.config, self.config.hidden_size), LayerNorm(self.config)
        self.bias = self.param("bias", nn.initializers.zeros, (self.config.vocab_size,), jnp.float32)

    def __call__(self, picked_BPD: Array, token_table_VD: Array) -> Array:
        x_BPD = self.norm(ACTIVATION_FUNCTIONS[self.config.hidden_act](self.transform(picked_BPD)))
        dtype = self.config.dtype
        logits_BPV = jnp.einsum(
            "BPD,VD->BPV", x_BPD.astype(dtype), token_table_VD.astype(dtype), preferred_element_type=jnp.float32
        )
        return logits_BPV + self.bias


class PretrainingHead(nn.Module):
    """Masked words and, if asked for, the relation of segments A and B.

    Outputs: ``mlm_logits`` float32 [B, P, V] at ``batch["masked_positions"]`` only; ``with_next_sentence`` also
    ``pooled_output`` [B, E, D] and ``nsp_logits`` [B, E, 2] (class 0: B follows A) at ``batch["cls_positions"]``.
    """

    config: BertConfig
    with_next_sentence: bool = True

    def setup(self):
        self.mlm = MaskedWords(self.config)
        if self.with_next_sentence:
            self.pooler = Dense(self.config, self.config.hidden_size, float32_result=True)
            self.next_sentence = Dense(self.config, 2, float32_result=True)

    def __call__(self, hidden_BTD: Array, batch: dict[str, Array], token_table_VD: Array, *, train: bool = False):
        del train  # no dropout in this head, as in the references
        outputs = {"mlm_logits": self.mlm(pick(hidden_BTD, batch["masked_positions"]), token_table_VD)}
        if self.with_next_sentence:
            pooled_BED = self.pooled(pick(hidden_BTD, batch["cls_positions"]))
            outputs |= {"pooled_output": pooled_BED, "nsp_logits": self.next_sentence_logits(pooled_BED)}
        return outputs

    def pooled(self, first_D: Array) -> Array:
        """float32 [..., D]: the pooler's output for hidden states at [CLS], [..., D]."""
        return jnp.tanh(self.pooler(first_D))

    def next_sentence_logits(self, pooled_D: Array) -> Array:
        """float32 [..., 2] for the pooler's output; class 0: B follows A."""
        return self.next_sentence(pooled_D)


class Model(nn.Module):
    """An encoder and a head on top: batch -> the head's outputs, a dict of float32 arrays.

    Parameters: ``{"encoder": ..., "head": ...}``.
    """

    config: BertConfig
    head: nn.Module

    def setup(self):
        self.encoder = Encoder(self.config)

    def __call__(self, batch: dict[str, Array], *, train: bool = False) -> dict[str, Array]:
        hidden_BTD = self.encoder(batch, train=train)
        return self.head(hidden_BTD, batch, self.encoder.embeddings.token.embedding, train=train)
