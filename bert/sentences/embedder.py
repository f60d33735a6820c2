"""Vectors of texts: reads them as a `SentenceEncoder` says, packs short ones into rows, and keeps their order.

Neither the batch size nor the neighbours of a text change its vector (beyond the rounding of float32).
Axes: N text, K width of a vector, B row, E text in a row.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from absl import logging
from jax import Array

from bert import architectures
from bert.architectures import ModelConfig
from bert.data import encoded_examples, packing
from bert.data.padding import batch_rows, bucket_length, power_of_two
from bert.errors import InputError
from bert.model import pooling
from bert.model.sentence_encoder import SentenceEncoder
from bert.tokenizer.tokenizer import Tokenizer
from bert.types import HostBatch, Params

BLOCK = 8192  # texts that are tokenized and packed together
_SHORTEST_ROW = 64  # tokens of a row that several short texts share; it holds a text for every 4 tokens at most
_MOST_IN_LONGER = 4  # texts in a longer row: each has more than a quarter of it


@dataclasses.dataclass(frozen=True)
class Embedder:
    """A model as it makes vectors.

    Attributes:
      params: {"encoder": ..., "head": ...}, on the host or on devices.
      prompt: the name of the prompt to put in front; None: the default one, where there is one.
      batch_size: rows of tokens computed at a time.
    """

    params: Params
    config: ModelConfig
    tokenizer: Tokenizer
    encoder: SentenceEncoder
    prompt: str | None = None
    batch_size: int = 16  # of 64 tokens, mostly: the states stay in the cache of a CPU's core

    @property
    def width(self) -> int:
        """K."""
        return self.encoder.width(self.config.hidden_size)

    @property
    def limit(self) -> int:
        """The longest input, in tokens."""
        return min(self.encoder.max_length or self.config.max_length, self.config.max_length)

    def blocks(self, texts: Iterable[str], done: Callable[[int], None] = lambda count: None) -> Iterator[np.ndarray]:
        """float32 [M, K] for each block of texts, in their order; ``done`` is called with numbers of texts.

        One warning at the end says how many were cut. Raises InputError for what is no text.
        """
        template, front = self.tokenizer.template, self.encoder.prompt(self.prompt)
        room = self.limit - template.special_tokens(pair=False)
        skipped = None
        if front and not self.encoder.include_prompt:
            skipped = len(template.before) + len(self._ids([front])[0])
            if skipped > room:
                what = f"the prompt {front!r:.60} fills the longest input of {self.limit} tokens"
                raise InputError(f"{what}, and its tokens are not pooled; shorten it")
        cut = count = 0
        waiting: list[tuple[np.ndarray, Array]] | None = None
        texts = iter(texts)
        while block := list(itertools.islice(texts, BLOCK)):
            pieces = self._ids([front + text if isinstance(text, str) else text for text in block])
            cut, count = cut + sum(len(ids) > room for ids in pieces), count + len(block)
            ahead = [
                (index_BE, self._vectors(batch, skipped))
                for batch, index_BE in self._batches([template.join(ids[:room])[0] for ids in pieces])
            ]
            if waiting is not None:  # read one late: the device is busy with the next block meanwhile
                yield self._fetched(waiting, done)
            waiting = ahead
        if waiting is not None:
            yield self._fetched(waiting, done)
        if cut:
            most = "the model's %d positions" if self.limit == self.config.max_length else "the declared %d tokens"
            logging.warning(
                f"%d of %d texts are longer than {most} and were cut; split them to have all of them read",
                *(cut, count, self.limit),
            )

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        if self.encoder.lower_case and not self.tokenizer.lower_case:
            # Letter by letter, as the `tokenizers` library does: a sigma at the end of a word is one like any other.
            texts = ["".join(map(str.lower, text)) if isinstance(text, str) else text for text in texts]
        return self.tokenizer.encode_ids(texts)

    def _batches(self, ids_N: Sequence[list[int]]) -> Iterator[tuple[HostBatch, np.ndarray]]:
        """(batch, int64 [B, E]: which text each slot holds, -1 for none)."""
        examples = encoded_examples.join([(ids, len(ids)) for ids in ids_N])
        for chosen_N, length, slots in self._shapes(examples.length_N):
            packed = packing.pack(examples.length_N[chosen_N], capacity=length, max_examples=slots, seed=0)
            rows = [chosen_N[row] for row in packed.rows()]
            size = batch_rows(len(rows), self.batch_size)
            for start in range(0, len(rows), size):
                members = rows[start : start + size]
                index_BE = np.full((size, slots), -1, np.int64)
                for row, texts in enumerate(members):
                    index_BE[row, : len(texts)] = texts
                yield encoded_examples.assemble(examples, members, length, size, slots), index_BE

    def _shapes(self, length_N: np.ndarray) -> Iterator[tuple[np.ndarray, int, int]]:
        """(which texts, length of a row, texts in it at most): few lengths, each for two of its texts at least."""
        longest = self.config.max_length
        if not architectures.packs(self.config):
            shape_N = np.array([bucket_length(tokens, longest) for tokens in length_N.tolist()])
            yield from ((np.flatnonzero(shape_N == length), int(length), 1) for length in np.unique(shape_N))
            return
        shape_N = np.array([min(longest, max(_SHORTEST_ROW, power_of_two(2 * n))) for n in length_N.tolist()])
        for length in np.unique(shape_N):
            chosen_N = np.flatnonzero(shape_N == length)
            length = bucket_length(min(int(length), int(length_N[chosen_N].sum())), longest)
            yield chosen_N, length, max(1, length // 4) if length <= _SHORTEST_ROW else _MOST_IN_LONGER

    def _vectors(self, batch: HostBatch, skipped: int | None) -> Array:
        params = {**self.params, "dense": self.encoder.dense}
        encoder = self.encoder
        return pooling.vectors(
            params, batch, skipped, config=self.config, pooling=encoder.pooling, layers=encoder.layers
        )

    def _fetched(self, pending: Sequence[tuple[np.ndarray, Any]], done: Callable[[int], None]) -> np.ndarray:
        count = sum(int((index_BE >= 0).sum()) for index_BE, _ in pending)
        vectors_MK = np.empty((count, self.width), np.float32)
        for index_BE, vectors_BEK in pending:
            real_BE = index_BE >= 0
            vectors_MK[index_BE[real_BE]] = np.asarray(vectors_BEK)[real_BE]
            done(int(real_BE.sum()))
        return vectors_MK
