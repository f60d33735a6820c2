"""ConvS2S: convolutional blocks read the source; others read the words before, and each attends to the source.

Axes: B row, S source position, U target position, R hypothesis, N hypothesis of a row, K tap, E width of embeddings and
of attention, I width of a block's input, D of its output, M of the memory.

Source: Gehring et al. 2017, section 3. Left out: the encoder's gradient divided by twice the number of attentions
(section 3.5). Adam takes such a factor out again, but for the share that the token table gets from there.
"""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from bert.architectures.convs2s import ConvS2SConfig
from bert.model import matmul
from bert.model.attention import attention, attention_scores, attention_weights
from bert.model.convolutions import GatedBlock
from bert.model.decoders import DecoderState, Memory, without_bias, words_before
from bert.model.dropout import by_number
from bert.model.embeddings import Embedding
from bert.model.pattern import Pattern
from bert.model.reading import TOKENS, Reads, States, of_tokens
from bert.model.stack import rows_over_data
from bert.model.weights import Weights
from bert.types import Batch


class ReadingBlock(GatedBlock):
    """A gated block whose output reads a memory before the input is added to it."""

    config: ConvS2SConfig

    def setup(self) -> None:
        super().setup()
        E = self.config.embedding_size
        self.query = Weights((self.width, E), weight_norm=self.weight_norm)
        self.context = Weights((E, self.width), weight_norm=self.weight_norm)

    def read(self, y_BUD: Array, words_BUE: Array, memory_BSM: Array, reading: Pattern) -> Array:
        """[B, U, D]: the gated output and what it reads; ``words_BUE``: the embedded words before, M = 2 E."""
        key_BS1E, value_BS1E = jnp.split(memory_BSM[:, :, None], 2, axis=-1)
        context_BU1E = attention(self._query(y_BUD, words_BUE), key_BS1E, value_BS1E, reading, scale=1.0)
        # A mean of m vectors varies as one over m of them; times this, it varies as one of them does.
        root_BU1 = jnp.sqrt(reading.allowed().sum(-1).swapaxes(1, 2).astype(jnp.float32))
        return y_BUD + self._dense(context_BU1E[:, :, 0] * root_BU1.astype(y_BUD.dtype), self.context)

    def weights(self, y_BUD: Array, words_BUE: Array, memory_BSM: Array, reading: Pattern) -> Array:
        """float32 [B, 1, U, S]: the weights with which it reads."""
        key_BS1E, _ = jnp.split(memory_BSM[:, :, None], 2, axis=-1)
        scores_B1US = attention_scores(self._query(y_BUD, words_BUE), key_BS1E, scale=1.0)
        return attention_weights(scores_B1US, reading)

    def _query(self, y_BUD: Array, words_BUE: Array) -> Array:
        """[B, U, 1, E]: of one head."""
        return (self._dense(y_BUD, self.query) + words_BUE)[:, :, None]

    def _dense(self, x: Array, weights: Weights) -> Array:
        return matmul.dense(x, *weights(), self.config.dtype, self.config.dtype)


class ConvS2S(nn.Module):
    """A `decoders.Decoder`, which is an `architectures.Encoder` of the source, too.

    Reads ``token_ids``, ``position_ids`` and ``example_ids`` of the source, int32 [B, S], and of the target
    ``target_ids``, ``target_position_ids`` and ``target_example_ids``, int32 [B, U]. Of the memory [B, S, 2 E], the
    first half is what is compared, the encoder's output, and the second what is read, that and the embeddings.
    """

    config: ConvS2SConfig
    packing: ClassVar[str] = "exact"
    heads: ClassVar[str] = "none"
    objectives: ClassVar[tuple[str, ...]] = ()

    def setup(self) -> None:
        config = self.config
        E, K, kept = config.embedding_size, config.kernel_size, math.sqrt(1 - config.hidden_dropout)
        normed: dict[str, Any] = {"weight_norm": config.weight_norm}
        self.token = Embedding(config, config.vocab_size, E)
        self.source_position, self.target_position = (Embedding(config, config.max_length, E) for _ in range(2))
        source, target = config.widths
        self.enter_source, self.enter_target = (Weights((E, of[0]), gain=kept, **normed) for of in (source, target))
        self.leave_source, self.leave_target = (Weights((of[-1], E), **normed) for of in (source, target))
        centred, before = tuple(range(-((K - 1) // 2), K // 2 + 1)), tuple(range(1 - K, 1))
        self.source = [
            GatedBlock(config, width, centred, inputs, 2 * kept, **normed)
            for width, inputs in zip(source, (source[0], *source), strict=False)
        ]
        self.target = [
            ReadingBlock(config, width, before, inputs, 2 * kept, **normed)
            for width, inputs in zip(target, (target[0], *target), strict=False)
        ]

    def __call__(self, batch: Batch, *, train: bool = False, reads: Reads = TOKENS) -> States:
        """The states of the source that are read (bert/model/reading.py)."""
        memory = self.memory(batch, train=train)
        if self.is_initializing():  # so that the decoder has its parameters, too
            ids_BS = jnp.ones_like(batch["example_ids"])
            target = {"target_ids": ids_BS, "target_position_ids": ids_BS, "target_example_ids": ids_BS}
            self.teacher_forced(memory, target)
        return of_tokens(memory.hidden_BSD[..., : self.config.embedding_size], batch, reads)

    def memory(self, batch: Batch, *, train: bool = False) -> Memory:
        dropped = by_number(self.config.hidden_dropout, self.make_rng("dropout") if train else None)
        embedded_BSE = rows_over_data(self.token(batch["token_ids"]) + self.source_position(batch["position_ids"]))
        embedded_BSE = dropped(embedded_BSE, 0).astype(self.config.dtype)
        x_BSD = self._dense(embedded_BSE, self.enter_source)
        for depth, block in enumerate(self.source, 1):
            x_BSD = block.added(block.gated(dropped(x_BSD, depth), batch), x_BSD)
        key_BSE = self._dense(x_BSD, self.leave_source)
        return Memory(jnp.concatenate([key_BSE, key_BSE + embedded_BSE], axis=-1), batch["example_ids"])

    def teacher_forced(self, memory: Memory, batch: Batch, *, train: bool = False) -> Array:
        return self._run(memory, batch, root=self.make_rng("dropout") if train else None)[0]

    def attention(self, memory: Memory, batch: Batch) -> Array:
        weights_BAUS = jnp.concatenate(self._run(memory, batch, look_inside=True)[1], axis=1)
        return jnp.where((batch["target_example_ids"] != 0)[:, None, :, None], weights_BAUS, 0.0)

    def _run(
        self, memory: Memory, batch: Batch, root: Array | None = None, look_inside: bool = False
    ) -> tuple[Array, list[Array]]:
        """The states that score, [B, U, E], and (``look_inside``) the weights of each block; ``root``: of dropout."""
        dropped = by_number(self.config.hidden_dropout, root)
        ids_BU = batch["target_example_ids"]
        reading, inside = Pattern(ids_BU, memory.example_ids_BS), {"example_ids": ids_BU}
        words_BU = words_before(batch, self.config.start_id)
        words_BUE = dropped(self._words(words_BU, batch["target_position_ids"]), 0)
        x_BUD, weights = self._dense(words_BUE, self.enter_target), []
        for depth, block in enumerate(self.target, 1):
            y_BUD = block.gated(dropped(x_BUD, depth), inside)
            inputs = (y_BUD, words_BUE, memory.hidden_BSD, reading)
            if look_inside:
                weights.append(block.weights(*inputs))
            x_BUD = block.added(block.read(*inputs), x_BUD)
        return dropped(self._dense(x_BUD, self.leave_target), len(self.target) + 1), weights

    def _words(self, ids: Array, positions: Array) -> Array:
        """Embedded words of the target, [..., E]."""
        return rows_over_data(self.token(ids) + self.target_position(positions)).astype(self.config.dtype)

    def _dense(self, x: Array, weights: Weights) -> Array:
        return matmul.dense(x, *weights(), self.config.dtype, self.config.dtype)

    def begin(self, memory: Memory, rows: int, places: int) -> DecoderState:
        """The memory, and the inputs of each block before the first word, zeros."""
        shape = (rows, self.config.kernel_size - 1)
        caches = tuple(jnp.zeros((*shape, block.inputs), self.config.dtype) for block in self.target)
        return DecoderState(memory, caches)

    def step(self, state: DecoderState, ids_R: Array, position: Array) -> tuple[Array, DecoderState]:
        memory, caches = state
        B = len(memory.example_ids_BS)
        words_RE, extended = self._words(ids_R, jnp.full_like(ids_R, position)), list[Array]()
        x_RD = self._dense(words_RE, self.enter_target)
        # The hypotheses of a row read the same source.
        of_row = lambda x_R: x_R.reshape(B, -1, x_R.shape[-1])  # noqa: E731
        reading = Pattern(jnp.ones((B, len(ids_R) // B), jnp.int32), memory.example_ids_BS)
        for block, cache in zip(self.target, caches, strict=True):
            x_RKI = jnp.concatenate([cache, x_RD[:, None]], axis=1)
            extended.append(x_RKI[:, 1:])
            y_BND = block.read(of_row(block.gated_last(x_RKI)), of_row(words_RE), memory.hidden_BSD, reading)
            x_RD = block.added(y_BND.reshape(len(ids_R), -1), x_RD)
        return self._dense(x_RD, self.leave_target), DecoderState(state.fixed, tuple(extended))

    def token_table(self) -> Any:
        """Token embeddings float32 [V, E], of both languages."""
        return self.token.embedding

    def output_projection(self) -> tuple[Array, Array]:
        return without_bias(self.token_table())

    def depth_of(self, path: Sequence[str]) -> int:
        """0 for the embeddings; 1 to L for the encoder's blocks, L + 1 to 2 L for the decoder's; of what leads into a
        stack that of its first block, of what leads out of it that of its last."""
        part, _, number = path[0].partition("_")
        if number == "position" or part == "token":
            return 0
        first = 1 + self.config.num_layers * ("target" in path[0])
        return first + (int(number) if number.isdecimal() else (self.config.num_layers - 1) * (part == "leave"))
