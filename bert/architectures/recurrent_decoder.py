"""RecurrentDecoderConfig: a recurrent encoder and decoder, ``rnn-encoder-decoder``, with or without attention.

The modules are in recurrent_decoder_modules.py, which needs JAX.

Source: Bahdanau et al. 2015, "Neural machine translation by jointly learning to align and translate"; Cho et al. 2014,
"Learning phrase representations using RNN encoder-decoder" (without attention).
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

from bert.architectures.plain_config import PlainConfig
from bert.architectures.recurrent import CELL_GATES, RecurrentConfig
from bert.errors import InputError, check_range


@dataclasses.dataclass(frozen=True)
class RecurrentDecoderConfig(PlainConfig):
    """Sizes of a bidirectional recurrent network that reads the source, and of the recurrent decoder."""

    model_type: ClassVar[str] = "rnn-encoder-decoder"
    whole: ClassVar[tuple[str, ...]] = ("decoder_size", "attention_size", "output_size")
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "cell": tuple(CELL_GATES),
        "reset": ("before", "after"),
        "score": ("additive", "bilinear", "dot", "none"),
        "output": ("deep", "linear"),
    }
    embedding_size: int = 256  # width of the token embeddings
    hidden_size: int = 512  # width of the source's states, both directions together
    num_layers: int = 1  # of the encoder; the decoder has one
    decoder_size: int = 256  # width of the decoder's state
    cell: str = "gru"  # of both: gru, lstm or vanilla (tanh)
    # Where the reset gate of the decoder's GRU acts: before the product with the state (Cho et al. 2014), or after it
    # (torch.nn.GRU, and here the encoder). Other cells have none.
    reset: str = "before"
    # How the decoder's state attends to the source: additive (Bahdanau et al. 2015), bilinear, dot, which needs
    # decoder_size equal to hidden_size; none: it reads one vector instead, the last states of both directions.
    score: str = "additive"
    attention_size: int = 256  # width of the hidden layer of additive scores
    # What scores a word. deep: maxout of the state before it, the word before it, and what the state attends to; that
    # enters the next state, too (Bahdanau et al. 2015). linear: the state alone, which has read the words before it
    # with what the states before attended to.
    output: str = "deep"
    output_size: int = 256  # width of what scores words
    tied: bool = True  # one table embeds source and target and scores the words; False: a table for each
    start_id: int = 1  # the token that stands before the first word of the target

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("start_id", self.start_id, at_least=0, at_most=self.vocab_size - 1, whole=True)
        if self.tied and self.output_size != self.embedding_size:
            rule = f"tied is True, but output_size is {self.output_size} and embedding_size {self.embedding_size}"
            raise InputError(f"{rule}; one table has one width: make them equal, or set tied=False")
        if self.score == "dot" and self.decoder_size != self.hidden_size:
            rule = f"score is 'dot', but decoder_size is {self.decoder_size} and hidden_size {self.hidden_size}"
            raise InputError(f"{rule}; make them equal, or set score='bilinear'")
        if self.hidden_size % 2:
            rule = f"hidden_size is {self.hidden_size}; it must be even, for each direction has half of it"
            raise InputError(f"{rule}: {self.hidden_size + 1}, say")

    @property
    def source(self) -> RecurrentConfig:
        """The encoder's."""
        names = {field.name for field in dataclasses.fields(PlainConfig)}
        return RecurrentConfig(**{name: getattr(self, name) for name in names}, cell=self.cell, stacks="joint")

    @property
    def gate_size(self) -> int:
        """G, the width of the decoder's gates side by side."""
        return CELL_GATES[self.cell] * self.decoder_size

    def matmul_flops_per_token(self, length: int) -> float:
        """Of a token of the target and one of the source, in rows of that length, 2 per multiply-add."""
        J, C, A = self.decoder_size, self.hidden_size, self.attention_size
        products = self.gate_size * (self.embedding_size + C + J)
        if self.score != "none":
            keys, query = {"additive": (C * A, J * A + length * A), "bilinear": (C * J, length * J)}.get(
                self.score, (0, length * J)
            )
            products += keys + query + length * C
        deep = 2 * (J + self.embedding_size + C)
        products += self.output_size * (deep if self.output == "deep" else J)
        return self.source.matmul_flops_per_token(length) + 2.0 * products
