"""A recurrent encoder-decoder: a bidirectional network reads the source, and a decoder with one state writes.

Axes: B row, S source position, U target position, R hypothesis, K hypothesis of a row, I width of embeddings, C width
of the source's states, n width of one direction, J width of the decoder's state, G its gates, D width of what scores
words.

Source: Bahdanau et al. 2015, appendix A; Cho et al. 2014 (without attention: the context is one vector).
"""

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from bert.architectures.recurrent_decoder import RecurrentDecoderConfig
from bert.architectures.recurrent_encoder import RecurrentEncoder
from bert.errors import InputError
from bert.model import matmul, recurrence, scored_attention
from bert.model.blocks import pick
from bert.model.cells import CELLS, State
from bert.model.decoders import DecoderState, Memory, without_bias, words_before
from bert.model.dropout import by_number
from bert.model.embeddings import Embedding
from bert.model.reading import TOKENS, Reads, States
from bert.model.recurrence import Times
from bert.model.scored_attention import ScoredAttention
from bert.model.stack import rows_over_data
from bert.model.weights import Weights
from bert.types import Batch


class RecurrentDecoder(nn.Module):
    """What writes a target: a recurrent state, attention of it to the source, and what scores words.

    Of a deep output a step reads the word before the one that it scores; of a linear output it scores a word, and reads
    that afterwards.
    """

    config: RecurrentDecoderConfig
    of_grid: bool = False  # whether the memory has no order, so that its summary is its mean, not its ends

    def setup(self) -> None:
        config = self.config
        J, C, G = config.decoder_size, config.hidden_size, config.gate_size
        self.first = Weights((C if self.of_grid else C // 2, J))
        self.word, self.context = Weights((config.embedding_size, G)), Weights((C, G), bias=False)
        self.state = Weights((J, G), bias=config.cell != "gru" or config.reset == "after")
        if self.attends:
            self.attention = ScoredAttention(config.score, J, C, config.attention_size, config.dtype)
        pieces = 2 if config.output == "deep" else 1
        self.from_state = Weights((J, pieces * config.output_size))
        if config.output == "deep":
            self.from_word = Weights((config.embedding_size, 2 * config.output_size), bias=False)
            self.from_context = Weights((C, 2 * config.output_size), bias=False)

    @property
    def attends(self) -> bool:
        return self.config.score != "none"

    def __call__(self, words_BUI: Array, memory: Memory, batch: Batch) -> Array:
        """[B, U, D]; ``words_BUI``: the embedded words that each step reads."""
        before_BUJ, context_BUC = self._states(words_BUI, memory, batch)
        return self._output(before_BUJ, words_BUI, context_BUC)

    def weights(self, words_BUI: Array, memory: Memory, batch: Batch) -> Array:
        """float32 [B, U, S]: how the state that scores each word attends to the source."""
        before_BUJ, _ = self._states(words_BUI, memory, batch)
        keys_BSA, allowed_BUS = self.attention.of_memory(memory.hidden_BSD), _allowed(memory, batch)
        return self._weights(before_BUJ, keys_BSA, allowed_BUS)

    def _states(self, words_BUI: Array, memory: Memory, batch: Batch) -> tuple[Array, Array]:
        """float32 [B, U, J], the state before each step, and [B, U, C], the context that the step reads."""
        config, dtype = self.config, self.config.dtype
        allowed_BUS = _allowed(memory, batch)
        summary_BUC = self._summary(memory, allowed_BUS)
        first_BU = batch["target_position_ids"] == 0
        x_BUG = self._of_word(words_BUI)  # of all steps at once, as all that no state enters
        if not self.attends:
            x_BUG = x_BUG + self._of_context(summary_BUC)
        begun_BUJ, zero_BJ = self._begun(summary_BUC), jnp.zeros((len(x_BUG), config.decoder_size))
        steps = tuple(x.swapaxes(0, 1) for x in (x_BUG, begun_BUJ, first_BU, allowed_BUS))
        kernel_JG, bias_G = self.state()
        kernels, reading = _state_kernels(config, kernel_JG), None
        if self.attends:
            kernels |= {"context": self.context()[0], "memory": memory.hidden_BSD.astype(jnp.float32)}
            reading = self.attention.of_memory(memory.hidden_BSD), self.attention.additive()
        step, constants, carry = functools.partial(_step, config), (bias_G, reading), _with_rest(config, zero_BJ)
        _, (before_UBJ, context_UBC) = recurrence.scan(step, dtype, False, kernels, constants, carry, steps)
        context_BUC = context_UBC.swapaxes(0, 1) if self.attends else summary_BUC
        return before_UBJ.swapaxes(0, 1), context_BUC

    def begin(self, memory: Memory, rows: int) -> DecoderState:
        """As `decoders.Decoder.begin`."""
        allowed_B1S = (memory.example_ids_BS != 0)[:, None]
        summary_B1C = self._summary(memory, allowed_B1S)
        begun_RJ = jnp.repeat(self._begun(summary_B1C)[:, 0], rows // len(summary_B1C), axis=0)
        keys_BSA = self.attention.of_memory(memory.hidden_BSD) if self.attends else None
        return DecoderState((memory.hidden_BSD, keys_BSA, allowed_B1S, summary_B1C), _with_rest(self.config, begun_RJ))

    def step(self, words_RI: Array, state: DecoderState, position: Array) -> tuple[Array, DecoderState]:
        """[R, D] of the words embedded as ``words_RI``, and the state with them."""
        (memory_BSC, keys_BSA, allowed_B1S, context_BKC), before = state
        if keys_BSA is not None:
            before_BKJ = before[0].reshape(len(memory_BSC), -1, self.config.decoder_size)
            weights_BKS = self._weights(before_BKJ, keys_BSA, allowed_B1S)
            context_BKC = scored_attention.mixed(weights_BKS, memory_BSC, self.config.dtype)
        context_RC = jnp.repeat(context_BKC, len(words_RI) // context_BKC[..., 0].size, axis=1)
        context_RC = context_RC.reshape(len(words_RI), -1)
        x_RG = self._of_word(words_RI) + self._of_context(context_RC)
        kernel_JG, bias_G = self.state()
        times = recurrence.times(_state_kernels(self.config, kernel_JG), self.config.dtype)
        after = _cell(self.config, x_RG, before, times, bias_G)
        if self.config.output == "linear":  # no start token: the first word is scored by the first state
            before = after = _where(position == 0, before, after)
        return self._output(before[0], words_RI, context_RC), DecoderState(state.fixed, after)

    def _begun(self, summary_BUC: Array) -> Array:
        """float32 [B, U, J]: the first state, of what has read the source from its end to its beginning, or of all."""
        read_BUn = summary_BUC if self.of_grid else summary_BUC[..., self.config.hidden_size // 2 :]
        return jnp.tanh(matmul.dense(read_BUn, *self.first(), self.config.dtype, "float32"))

    def _summary(self, memory: Memory, allowed_BUS: Array) -> Array:
        """[B, U, C]: of the source that may be read, its ends or its mean."""
        if not self.of_grid:
            return ends_of(memory, allowed_BUS)
        share_BUS = allowed_BUS / jnp.maximum(allowed_BUS.sum(-1, keepdims=True), 1)
        return scored_attention.mixed(share_BUS, memory.hidden_BSD, self.config.dtype).astype(self.config.dtype)

    def _of_word(self, words: Array) -> Array:
        """What embedded words give to the gates, float32 [..., G]."""
        return matmul.dense(words, *self.word(), self.config.dtype, "float32")

    def _of_context(self, context: Array) -> Array:
        return matmul.dense(context, *self.context(), self.config.dtype, "float32")

    def _weights(self, state_BKJ: Array, keys_BSA: Array, allowed_BKS: Array) -> Array:
        return scored_attention.weights(state_BKJ, keys_BSA, allowed_BKS, self.attention.additive(), self.config.dtype)

    def _output(self, state: Array, words: Array, context: Array) -> Array:
        """[..., D] in the compute dtype: what scores the next word."""
        dtype = self.config.dtype
        x = matmul.dense(state, *self.from_state(), dtype, "float32")
        if self.config.output == "deep":
            x = x + matmul.dense(words, *self.from_word(), dtype, "float32")
            x = x + matmul.dense(context, *self.from_context(), dtype, "float32")
            x = x.reshape(*x.shape[:-1], -1, 2).max(-1)  # maxout of neighbours
        return x.astype(dtype)


class RecurrentEncoderDecoder(nn.Module):
    """A `decoders.Decoder`, which is an `architectures.Encoder` of the source, too.

    Reads the keys of a batch that `EncoderDecoder` reads (encoder_decoder_stacks.py).
    """

    config: RecurrentDecoderConfig
    packing: ClassVar[str] = "exact"
    heads: ClassVar[str] = "none"
    objectives: ClassVar[tuple[str, ...]] = ()

    def setup(self) -> None:
        config = self.config
        self.source: Any = RecurrentEncoder(config.source)
        self.decoder = RecurrentDecoder(config)
        if not config.tied:
            self.target_token = Embedding(config, config.vocab_size, config.embedding_size)
            self.output_token = Embedding(config, config.vocab_size, config.output_size)

    def __call__(self, batch: Batch, *, train: bool = False, reads: Reads = TOKENS) -> States:
        """The states of the source that are read (bert/model/reading.py)."""
        if self.is_initializing():  # so that the decoder has its parameters, too
            ids_BS = jnp.ones_like(batch["example_ids"])
            target = {"target_ids": ids_BS, "target_position_ids": ids_BS, "target_example_ids": ids_BS}
            self.teacher_forced(self.memory(batch), target)
            self.output_projection()
        return self.source(batch, train=train, reads=reads)

    def memory(self, batch: Batch, *, train: bool = False) -> Memory:
        return Memory(self.source(batch, train=train)["tokens"], batch["example_ids"])

    def teacher_forced(self, memory: Memory, batch: Batch, *, train: bool = False) -> Array:
        dropped = by_number(self.config.hidden_dropout, self.make_rng("dropout") if train else None)
        hidden_BUD = self.decoder(dropped(rows_over_data(self._words(batch)), 0), memory, batch)
        return dropped(rows_over_data(hidden_BUD), 1)

    def attention(self, memory: Memory, batch: Batch) -> Array:
        """As `decoders.Decoder.attention`; InputError where the decoder attends to nothing."""
        if not self.decoder.attends:
            raise InputError(
                "score is 'none': the decoder reads one vector of the source, and has no attention to show"
            )
        return self.decoder.weights(self._words(batch), memory, batch)[:, None]

    def begin(self, memory: Memory, rows: int, places: int) -> DecoderState:
        del places  # a state has one size
        return self.decoder.begin(memory, rows)

    def step(self, state: DecoderState, ids_R: Array, position: Array) -> tuple[Array, DecoderState]:
        return self.decoder.step(self._embedded(ids_R), state, position)

    def _words(self, batch: Batch) -> Array:
        """[B, U, I]: the embedded words that the decoder's steps read."""
        linear = self.config.output == "linear"
        return self._embedded(batch["target_ids"] if linear else words_before(batch, self.config.start_id))

    def _embedded(self, ids: Array) -> Array:
        embedded: Array = (self.source.token if self.config.tied else self.target_token)(ids)
        return embedded

    def token_table(self) -> Any:
        """Token embeddings of the source, float32 [V, I]."""
        return self.source.token_table()

    def output_projection(self) -> tuple[Array, Array]:
        return without_bias(self.token_table() if self.config.tied else self.output_token.embedding)

    def depth_of(self, path: Sequence[str]) -> int:
        """0 for the embeddings; 1 to L for the encoder's layers, L + 1 for the decoder and a table of the output."""
        if path[0] == "source":
            return RecurrentEncoder(self.config.source, parent=None).depth_of(path[1:])
        return 0 if path[0] == "target_token" else self.config.num_layers + 1


def _allowed(memory: Memory, batch: Batch) -> Array:
    """bool [B, U, S]: each target reads the source of its own number, and padding none."""
    target_BU1, source_B1S = batch["target_example_ids"][:, :, None], memory.example_ids_BS[:, None]
    return (target_BU1 == source_B1S) & (source_B1S != 0)


def ends_of(memory: Memory, allowed_BUS: Array) -> Array:
    """[B, U, C]: of the source that may be read, the left state of its last token and the right state of its first."""
    left_BSn, right_BSn = jnp.split(memory.hidden_BSD, 2, axis=-1)
    first_BU, last_BU = allowed_BUS.argmax(-1), allowed_BUS.shape[-1] - 1 - allowed_BUS[..., ::-1].argmax(-1)
    return jnp.concatenate([pick(left_BSn, last_BU), pick(right_BSn, first_BU)], axis=-1)


def _step(config: RecurrentDecoderConfig, times: Times, constants: Any, state: State, now: Any) -> tuple[State, Any]:
    """A step of `recurrence.scan`."""
    (bias_G, reading), (x_BG, begun_BJ, first_B, allowed_BS) = constants, now
    state = _where(first_B, _with_rest(config, begun_BJ), state)
    context_BC = None
    if reading is not None:
        keys_BSA, additive = reading
        weights_B1S = scored_attention.weights(state[0][:, None], keys_BSA, allowed_BS[:, None], additive, config.dtype)
        context_BC = times("memory", weights_B1S[:, 0])
        x_BG = x_BG + times("context", context_BC)
    return _cell(config, x_BG, state, times, bias_G), (state[0], context_BC)


def _state_kernels(config: RecurrentDecoderConfig, kernel_JG: Array) -> dict[str, Array]:
    """What `_cell` multiplies with; ``new``: the part behind the reset gate, where this acts before the product."""
    if config.cell != "gru" or config.reset == "after":
        return {"state": kernel_JG}
    return {"state": kernel_JG[:, : 2 * config.decoder_size], "new": kernel_JG[:, 2 * config.decoder_size :]}


def _cell(config: RecurrentDecoderConfig, x_BG: Array, state: State, times: Times, bias_G: Array) -> State:
    """The next state, of what word and context give to the gates."""
    h_BG = times("state", state[0])
    if config.cell != "gru" or config.reset == "after":
        return CELLS[config.cell].step(x_BG, h_BG + bias_G, state)
    gates = h_BG.shape[-1]
    reset_BJ, update_BJ = jnp.split(jax.nn.sigmoid(x_BG[:, :gates] + h_BG), 2, axis=-1)
    new_BJ = jnp.tanh(x_BG[:, gates:] + times("new", reset_BJ * state[0]))
    return ((1 - update_BJ) * state[0] + update_BJ * new_BJ,)


def _with_rest(config: RecurrentDecoderConfig, first_BJ: Array) -> State:
    """The state that begins with this output; what else a cell keeps is 0."""
    return (first_BJ, *[jnp.zeros_like(first_BJ)] * (CELLS[config.cell].states - 1))


def _where(condition: Array, ours: State, others: State) -> State:
    """Row by row, or all rows alike."""
    return tuple(jnp.where(condition[..., None], a, b) for a, b in zip(ours, others, strict=True))
