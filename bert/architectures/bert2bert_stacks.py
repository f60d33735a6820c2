"""An encoder and a decoder that are both a BERT, the decoder with a causal mask and attention to the source.

Axes: as in encoder_decoder_stacks.py.

Source: Rothe et al. 2020; transformers ``models/encoder_decoder``, ``models/bert`` (BertLMHeadModel).
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array

from bert.architectures.bert2bert import BertToBertConfig
from bert.architectures.bert_encoder import BertEncoder, Embeddings
from bert.architectures.encoder_decoder_stacks import EncoderDecoder
from bert.model.decoder_blocks import DecoderStack
from bert.model.embeddings import Embedding
from bert.model.heads import MaskedWords
from bert.model.stack import StackedEncoder
from bert.types import Batch, Params

_OF_DECODER = ("memory_attention", "memory_norm")  # what a decoder's block has and an encoder's has not


class BertDecoder(DecoderStack):
    """BERT's embeddings, blocks that read the source, too, and what BERT's masked-word head does to their states.

    ``shared``: the encoder whose embeddings and blocks it has; None: its own.
    """

    config: BertToBertConfig
    shared: StackedEncoder | None = None

    def setup(self) -> None:
        super().setup()
        self.words = MaskedWords(self.config)
        if self.shared is None:
            self.embeddings = Embeddings(self.config)
        if not self.config.tied:
            self.table = Embedding(self.config, self.config.vocab_size)

    def _init_blocks(self, key: Array) -> Params:
        blocks = super()._init_blocks(key)
        return blocks if self.shared is None else {name: blocks[name] for name in _OF_DECODER}

    def _stacked(self) -> Any:
        own = super()._stacked()
        if self.shared is None:
            return own
        encoders: Any = self.shared.blocks
        if isinstance(own, tuple):
            return tuple({**theirs, **ours} for theirs, ours in zip(encoders, own, strict=True))
        return {**encoders, **own}

    def embedded(self, words: Batch, key: Array | None) -> Array:
        return (self.shared or self).embeddings({**words, "type_ids": jnp.zeros_like(words["token_ids"])}, key)

    def transformed(self, hidden: Array) -> Array:
        """The states that score words."""
        return self.words.transformed(hidden)

    def output_projection(self) -> tuple[Array, Array]:
        table: Any = self.table if not self.config.tied else (self.shared or self).embeddings.token
        return table.embedding, self.words.bias


class BertToBert(EncoderDecoder):
    """As `EncoderDecoder`; reads ``type_ids`` of the source, too. Parameters: ``source``, a BERT's, and ``decoder``."""

    config: BertToBertConfig

    def _encoder(self) -> StackedEncoder:
        return BertEncoder(self.config.of_source())

    def _decoder(self) -> DecoderStack:
        return BertDecoder(self.config, shared=self.source if self.config.share else None)

    def _embedded(self, words: Batch, key: Array | None) -> Any:
        decoder: Any = self.decoder
        return decoder.embedded(words, key)

    def _scoring(self, hidden: Array) -> Any:
        decoder: Any = self.decoder
        return decoder.transformed(hidden)

    def output_projection(self) -> Any:
        decoder: Any = self.decoder
        return decoder.output_projection()

    def depth_of(self, path: Sequence[str]) -> int | Sequence[int]:
        """As `EncoderDecoder.depth_of`; 2 L for what scores words."""
        return 2 * self.config.num_layers if path[1] in ("words", "table") else super().depth_of(path)
