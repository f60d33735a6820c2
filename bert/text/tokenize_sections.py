"""What a worker of `prepare` does: sections of text -> sentences -> token ids in a few flat arrays."""

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bert.text.layout import split_sentences
from bert.text.store import token_dtype
from bert.text.tokenizer import Tokenizer


class Piece(NamedTuple):
    """Tokens of one section; no sentence is empty."""

    tokens: np.ndarray  # [tokens], the store's type
    sentence_lengths: np.ndarray  # int64 [sentences]
    continues: np.ndarray | None  # bool [tokens]


@dataclasses.dataclass(frozen=True)
class Pieces:
    """Tokens of several sections, one after the other: few arrays travel faster between processes than many."""

    tokens: np.ndarray
    sentence_lengths: np.ndarray
    sentence_counts: np.ndarray  # int64 [sections]
    continues: np.ndarray | None
    unknown: int

    def sections(self) -> Iterator[Piece]:
        token = sentence = 0
        for count in self.sentence_counts:
            lengths = self.sentence_lengths[sentence : sentence + count]
            end = token + int(lengths.sum())
            words = None if self.continues is None else self.continues[token:end]
            yield Piece(self.tokens[token:end], lengths, words)
            token, sentence = end, sentence + count


class _Worker(NamedTuple):
    tokenizer: Tokenizer
    language: str
    special_in_text: bool
    word_boundaries: bool


_worker: _Worker | None = None  # of this process; set once by start_tokenizing


def start_tokenizing(tokenizer: Tokenizer, language: str, special_in_text: bool, word_boundaries: bool) -> None:
    global _worker
    _worker = _Worker(tokenizer, language, special_in_text, word_boundaries)


def tokenize_sections(sections: Sequence[tuple[str, str]]) -> Pieces:
    """Tokens of (text, layout) pairs, by the tokenizer that `start_tokenizing` gave to this process."""
    assert _worker is not None
    sentences = [split_sentences(text, layout, _worker.language) for text, layout in sections]
    flat = list(itertools.chain.from_iterable(sentences))
    ids, continues = _encode(_worker, flat)
    lengths = np.fromiter(map(len, ids), np.int64, len(ids))
    tokens = np.fromiter(
        itertools.chain.from_iterable(ids), token_dtype(_worker.tokenizer.vocab_size), int(lengths.sum())
    )
    # Sentences without a token (of zero-width characters, say) are left out of the counts.
    section_of = np.repeat(np.arange(len(sections)), [len(found) for found in sentences])
    counts = np.bincount(section_of[lengths > 0], minlength=len(sections))
    unknown = int((tokens == _worker.tokenizer.unk_id).sum())
    return Pieces(tokens, lengths[lengths > 0], counts, continues, unknown)


def _encode(worker: _Worker, sentences: list[str]) -> tuple[list[list[int]], np.ndarray | None]:
    if not worker.word_boundaries:
        return worker.tokenizer.encode_ids(sentences, special_in_text=worker.special_in_text), None
    found = worker.tokenizer.encode_batch(sentences, special_in_text=worker.special_in_text)
    flags = [_continues(text, one.offsets) for text, one in zip(sentences, found, strict=True)]
    return [one.ids for one in found], np.concatenate([*flags, np.zeros(0, bool)])


def _continues(sentence: str, offsets: Sequence[tuple[int, int]]) -> np.ndarray:
    """bool [tokens]; True where no blank stands between a token and the one before it."""
    blank = np.array([character == " " for character in sentence] + [False])
    blanks_before = np.concatenate([[0], np.cumsum(blank)])  # [i] = blanks among the first i characters
    spans = np.array(offsets, np.int64).reshape(-1, 2)
    starts, ends = blanks_before[spans[:, 0]], blanks_before[spans[:, 1]]
    return np.concatenate([[False], starts[1:] == ends[:-1]])[: len(spans)]
