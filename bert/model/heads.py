"""Task heads, and the model that joins an encoder with one. Losses are in losses.py.

A head is a Linen module called as ``head(states, batch, token_table_VD, train=...)`` that returns a dict of float32
arrays. ``head.reads(batch)`` says which hidden states it reads (reading.py). The token table is the encoder's, and is
passed in the call. A head consists of named parts; training, inference and files find its parameters by these names.
Axes: as in blocks.py; P predicted position, E example in a row, C class, V vocabulary.

Source: Devlin et al. 2018, sections 3.1 and 4; google-research/bert ``run_pretraining.py`` (get_masked_lm_output,
get_next_sentence_output), ``run_classifier.py`` and ``run_squad.py`` (create_model).
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from bert import architectures
from bert.architectures import ModelConfig
from bert.errors import InputError
from bert.model import matmul, vocabulary
from bert.model.blocks import ACTIVATION_FUNCTIONS, Dense, LayerNorm, gelu
from bert.model.dropout import dropout
from bert.model.reading import TOKENS, Reads, States
from bert.model.weights import Weights
from bert.types import Batch

Outputs = dict[str, Array]
Table = Array | None  # the encoder's token table [V, D], where it has one


class MaskedWords(nn.Module):
    """Scores of every vocabulary entry at some positions: [B, P, D] -> float32 [B, P, V]."""

    config: ModelConfig

    def setup(self) -> None:
        width = architectures.table_width(self.config)
        self.transform, self.norm = Dense(self.config, width), LayerNorm(self.config)
        self.bias = self.param("bias", nn.initializers.zeros, (self.config.vocab_size,), jnp.float32)

    def __call__(self, picked_BPD: Array, token_table_VD: Array) -> Array:
        return vocabulary.logits(self.transformed(picked_BPD), token_table_VD, self.bias, self.config.dtype)

    def cross_entropy_and_correct(self, picked_BPD: Array, table_VD: Array, words_BP: Array) -> tuple[Array, Array]:
        """Cross-entropy of these words in nats, and whether none scores higher; float32 [B, P] each."""
        x_BPD = self.transformed(picked_BPD)
        return vocabulary.cross_entropy_and_correct(x_BPD, table_VD, self.bias, words_BP, self.config.dtype)

    def transformed(self, picked_BPD: Array) -> Array:
        return self.norm(ACTIVATION_FUNCTIONS[self.config.hidden_act](self.transform(picked_BPD)))


class BlankConfig(ModelConfig, Protocol):
    """What scores of blanks read of a configuration beside what everybody reads."""

    @property
    def mix(self) -> str: ...  # "sum" or "mlp"
    @property
    def mix_size(self) -> int: ...  # hidden width of the latter


class BlankWords(MaskedWords):
    """The same of the states on both sides of a blank, joined by a linear map, or by a layer with GELU and such a map.

    Source: Melamud et al. 2016 (context2vec), section 2.2, for the second.
    """

    config: BlankConfig

    def setup(self) -> None:
        D, inner, width = self.config.hidden_size, self.config.mix_size, architectures.table_width(self.config)
        if self.config.mix == "mlp":
            self.hidden = Weights((D, inner))
        self.mix = Weights((inner if self.config.mix == "mlp" else D, width), bias=False)
        self.bias = self.param("bias", nn.initializers.zeros, (self.config.vocab_size,), jnp.float32)

    def transformed(self, picked_BPD: Array) -> Array:
        dtype = self.config.dtype
        if self.config.mix == "mlp":
            picked_BPD = gelu(matmul.dense(picked_BPD, *self.hidden(), dtype, dtype))
        return matmul.dense(picked_BPD, *self.mix(), dtype, dtype)


class TiedWords(nn.Module):
    """Scores of every vocabulary entry by the token table alone: [B, P, D] -> float32 [B, P, V]; no parameters."""

    config: ModelConfig

    def __call__(self, picked_BPD: Array, token_table_VD: Array) -> Array:
        return vocabulary.logits(picked_BPD, token_table_VD, self._no_bias(), self.config.dtype)

    def cross_entropy_and_correct(self, picked_BPD: Array, table_VD: Array, words_BP: Array) -> tuple[Array, Array]:
        """As `MaskedWords.cross_entropy_and_correct`."""
        no_bias_V = self._no_bias()
        return vocabulary.cross_entropy_and_correct(picked_BPD, table_VD, no_bias_V, words_BP, self.config.dtype)

    def _no_bias(self) -> Array:
        return jnp.zeros((self.config.vocab_size,), jnp.float32)


def lent_table(token_table_VD: Array | None) -> Array:
    """The encoder's token table; InputError where it has none to lend."""
    if token_table_VD is None:
        raise InputError("masked words are scored with the encoder's token table, and this encoder has none")
    return token_table_VD


def reads_blanks(config: ModelConfig) -> bool:
    """Whether words are scored by states that have not read the word itself."""
    return "blank" in architectures.objectives_of(config)


def part(name: str, config: ModelConfig, classes: int = 2) -> nn.Module:
    """The module whose parameters stand under ``head/NAME``; ``classes``: C of the two classifiers."""
    bare = architectures.heads_of(config) == "bare"
    if name == "mlm":
        words: Any = TiedWords if bare else BlankWords if reads_blanks(config) else MaskedWords
        scores: nn.Module = words(config)
        return scores
    features = {"pooler": config.hidden_size, "next_sentence": 2, "span": 2}
    features |= {"sequence_classifier": classes, "token_classifier": classes}
    without_bias = bare and name == "sequence_classifier"
    return Dense(config, features[name], float32_result=True, with_bias=not without_bias)


class PretrainingHead(nn.Module):
    """Masked words and, if asked for, the relation of segments A and B.

    Outputs: ``mlm_logits`` float32 [B, P, V] at ``batch["masked_positions"]`` and, where the batch has ``masked_ids``,
    ``mlm_cross_entropy`` and ``mlm_correct`` [B, P] (1 where no other word scores higher). ``with_next_sentence`` also
    ``pooled_output`` [B, E, D] and ``nsp_logits`` [B, E, 2] (class 0: B follows A).
    """

    config: ModelConfig
    with_next_sentence: bool = True

    def setup(self) -> None:
        self.mlm = part("mlm", self.config)
        if self.with_next_sentence:
            self.pooler, self.next_sentence = part("pooler", self.config), part("next_sentence", self.config)

    def reads(self, batch: Batch) -> Reads:
        words: Reads = {"words": batch["masked_positions"]}
        return {**words, "examples": None} if self.with_next_sentence else words

    def __call__(self, states: States, batch: Batch, token_table_VD: Table, *, train: bool = False) -> Outputs:
        picked_BPD, table_VD = states["words"], lent_table(token_table_VD)
        outputs = {"mlm_logits": self.mlm(picked_BPD, table_VD)}
        if "masked_ids" in batch:
            loss_BP, correct_BP = self.mlm.cross_entropy_and_correct(picked_BPD, table_VD, batch["masked_ids"])
            outputs |= {"mlm_cross_entropy": loss_BP, "mlm_correct": correct_BP}
        if self.with_next_sentence:
            pooled_BED = pooled(self.pooler, states["examples"])
            outputs |= {"pooled_output": pooled_BED, "nsp_logits": self.next_sentence(pooled_BED)}
        return outputs


class SequenceHead(nn.Module):
    """Scores of each example: one a class (of one or of several labels), or one number (regression, C = 1).

    Outputs: ``pooled_output`` float32 [B, E, D], where the architecture has a pooler, and ``sequence_logits``
    [B, E, C].
    ``rate``: dropout before the scores; None: as between the blocks.
    """

    config: ModelConfig
    classes: int
    rate: float | None = None

    def setup(self) -> None:
        self.has_pooler = architectures.heads_of(self.config) == "bert"
        if self.has_pooler:
            self.pooler = part("pooler", self.config)
        self.sequence_classifier = part("sequence_classifier", self.config, self.classes)

    def reads(self, batch: Batch) -> Reads:
        return {"examples": None}

    def __call__(self, states: States, batch: Batch, token_table_VD: Table, *, train: bool = False) -> Outputs:
        read_BED = pooled(self.pooler, states["examples"]) if self.has_pooler else states["examples"]
        outputs = {"sequence_logits": self.sequence_classifier(_dropped(self, read_BED, train))}
        return outputs | ({"pooled_output": read_BED} if self.has_pooler else {})


class TokenHead(nn.Module):
    """Scores of each class at each token: ``token_logits`` float32 [B, T, C]; ``rate`` as in `SequenceHead`."""

    config: ModelConfig
    classes: int
    rate: float | None = None

    def setup(self) -> None:
        self.token_classifier = part("token_classifier", self.config, self.classes)

    def reads(self, batch: Batch) -> Reads:
        return TOKENS

    def __call__(self, states: States, batch: Batch, token_table_VD: Table, *, train: bool = False) -> Outputs:
        return {"token_logits": self.token_classifier(_dropped(self, states["tokens"], train))}


class SpanHead(nn.Module):
    """Where an answer starts and ends: ``start_logits`` and ``end_logits``, float32 [B, T] each; no dropout."""

    config: ModelConfig

    def setup(self) -> None:
        self.span = part("span", self.config)

    def reads(self, batch: Batch) -> Reads:
        return TOKENS

    def __call__(self, states: States, batch: Batch, token_table_VD: Table, *, train: bool = False) -> Outputs:
        return start_and_end(self.span(states["tokens"]))


def _dropped(head: SequenceHead | TokenHead, x: Array, train: bool) -> Array:
    """What a classifier reads, with the head's dropout in training."""
    rate = head.config.hidden_dropout if head.rate is None else head.rate
    return dropout(x, rate, head.make_rng("dropout") if train and rate else None)


def pooled(pooler: Callable[[Array], Array], first_D: Array) -> Array:
    """float32 [..., D]: the pooler's output for hidden states at [CLS], [..., D]."""
    return jnp.tanh(pooler(first_D))


def start_and_end(span_BT2: Array) -> Outputs:
    """The two scores of each position by name, float32 [B, T] each."""
    return {"start_logits": span_BT2[..., 0], "end_logits": span_BT2[..., 1]}


class Model(nn.Module):
    """An encoder and a head on top: batch -> the head's outputs, a dict of float32 arrays.

    Parameters: ``{"encoder": ..., "head": ...}``.
    """

    config: ModelConfig
    head: nn.Module

    def setup(self) -> None:
        self.encoder = architectures.build(self.config)

    def __call__(self, batch: Batch, *, train: bool = False) -> Outputs:
        if "cls_positions" in batch:
            architectures.check_packing(self.config, batch["cls_positions"].shape[1] > 1)
        states = self.encoder(batch, train=train, reads=self.head.reads(batch))
        outputs: Outputs = self.head(states, batch, self.encoder.token_table(), train=train)
        return outputs

    def depth_of(self, path: Sequence[str]) -> int | Sequence[int] | None:
        """Depth of a parameter as `architectures.Encoder.depth_of` has it; None for the head's."""
        encoder: Any = architectures.build(self.config)
        return encoder.depth_of(path[1:]) if path[0] == "encoder" else None
