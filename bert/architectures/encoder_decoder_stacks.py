"""The Transformer of two stacks: an encoder of the source, and a decoder that reads its states.

Axes: B row, S source position, U target position, R hypothesis, D hidden width, V vocabulary.

Source: Vaswani et al. 2017 (post-norm; one token table for source, target and scores, section 3.4).
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from bert.architectures.encoder_decoder import EncoderDecoderConfig
from bert.model import positions
from bert.model.blocks import Block, PreNormBlock
from bert.model.decoder_blocks import DecoderStack
from bert.model.decoders import DecoderState, Memory, without_bias, words_before
from bert.model.dropout import dropout
from bert.model.embeddings import Embedding
from bert.model.reading import TOKENS, Reads, States
from bert.model.stack import StackedEncoder, rows_over_data
from bert.types import Batch


class ScaledEmbeddings(nn.Module):
    """Token embeddings times sqrt(D), and sinusoidal positions; [B, S] ids -> [B, S, D]."""

    config: EncoderDecoderConfig

    def setup(self) -> None:
        self.token = Embedding(self.config, self.config.vocab_size)
        self.position = positions.embedding(self.config, "sinusoidal")

    def __call__(self, batch: Batch, key: Array | None) -> Array:
        scaled_BSD = self.token(batch["token_ids"]) * math.sqrt(self.config.hidden_size)
        x_BSD = rows_over_data(scaled_BSD + self.position(batch["position_ids"]))
        return dropout(x_BSD, self.config.hidden_dropout, key).astype(self.config.dtype)


class SourceEncoder(StackedEncoder):
    """States of the source, [B, S, D]."""

    config: EncoderDecoderConfig
    embeddings_class: ClassVar[type[nn.Module]] = ScaledEmbeddings
    block_class: ClassVar[type[nn.Module]] = Block


class PreNormSourceEncoder(SourceEncoder):
    """The same with norms before the sublayers, and one after the last block."""

    block_class: ClassVar[type[nn.Module]] = PreNormBlock
    final_norm: ClassVar[bool] = True


class EncoderDecoder(nn.Module):
    """A `decoders.Decoder`, which is an `architectures.Encoder` of the source, too.

    Reads ``token_ids``, ``position_ids`` and ``example_ids`` of the source, int32 [B, S], and of the target
    ``target_ids``, ``target_position_ids`` and ``target_example_ids``, int32 [B, U].
    """

    config: Any  # an EncoderDecoderConfig; a subclass has its own
    packing: ClassVar[str] = "exact"
    heads: ClassVar[str] = "none"
    objectives: ClassVar[tuple[str, ...]] = ()

    def setup(self) -> None:
        self.source = self._encoder()
        self.decoder = self._decoder()

    def _encoder(self) -> Any:
        """What reads the source."""
        return (PreNormSourceEncoder if self.config.norm == "pre" else SourceEncoder)(self.config)

    def _decoder(self) -> DecoderStack:
        return DecoderStack(self.config, self.config.norm == "pre")

    def __call__(self, batch: Batch, *, train: bool = False, reads: Reads = TOKENS) -> States:
        """The states of the source that are read (bert/model/reading.py)."""
        if self.is_initializing():  # so that the decoder has its parameters, too
            ids_BS = jnp.ones_like(batch["example_ids"])
            target = {"target_ids": ids_BS, "target_position_ids": ids_BS, "target_example_ids": ids_BS}
            self.teacher_forced(self.memory(batch), target)
        return self.source(batch, train=train, reads=reads)

    def memory(self, batch: Batch, *, train: bool = False) -> Memory:
        return Memory(self.source(batch, train=train)["tokens"], batch["example_ids"])

    def teacher_forced(self, memory: Memory, batch: Batch, *, train: bool = False) -> Array:
        root = self.make_rng("dropout") if train else None
        return self._scoring(self.decoder(self._words_before(batch, root), memory, batch, root))

    def attention(self, memory: Memory, batch: Batch) -> Array:
        return self.decoder.attention(self._words_before(batch, None), memory, batch)

    def _words_before(self, batch: Batch, root: Array | None) -> Any:
        """[B, U, D]: what the decoder's first block reads."""
        words_BU = words_before(batch, self.config.start_id)
        words = {"token_ids": words_BU, "position_ids": batch["target_position_ids"]}
        # Depth 0; the blocks count from 1.
        key = None if root is None else jax.random.fold_in(root, 0)
        return self._embedded(words, key)

    def _embedded(self, words: Batch, key: Array | None) -> Any:
        """[B, U, D] of the words of the target that are read."""
        return self.source.embeddings(words, key)

    def _scoring(self, hidden: Array) -> Array:
        """The states that score words, of the decoder's."""
        return hidden

    def begin(self, memory: Memory, rows: int, places: int) -> DecoderState:
        return self.decoder.begin(memory, rows, places)

    def step(self, state: DecoderState, ids_R: Array, position: Array) -> tuple[Array, DecoderState]:
        words = {"token_ids": ids_R[:, None], "position_ids": jnp.full((len(ids_R), 1), position)}
        hidden_RD, state = self.decoder.step(self._embedded(words, None)[:, 0], state, position)
        return self._scoring(hidden_RD), state

    def token_table(self) -> Any:
        """Token embeddings float32 [V, D], of both languages."""
        return self.source.token_table()

    def output_projection(self) -> tuple[Array, Array]:
        return without_bias(self.token_table())

    def depth_of(self, path: Sequence[str]) -> int | Sequence[int]:
        """0 for the embeddings; 1 to L for the encoder's blocks, L + 1 to 2 L for the decoder's."""
        layers, is_decoder = self.config.num_layers, path[0] == "decoder"
        if path[1] == "output_norm":
            return layers * (1 + is_decoder)
        first = 1 + layers * is_decoder
        return range(first, first + layers) if path[1] == "blocks" else 0
