"""The work of one process of `prepare`: splits sections of text into sentences, and encodes them to flat arrays."""

import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bert.corpus.layout import split_sentences
from bert.store.reader import token_dtype
from bert.tokenizer.tokenizer import Encoding, Tokenizer

MAX_KNOWN = 1 << 18  # words remembered, about 40 MB
MAX_WORD = 32  # characters; longer ones (all text in scripts without blanks) hardly ever come again


class LostText(NamedTuple):
    """Counts of a section's text, and of what became unknown tokens. Characters are without white space."""

    characters: int = 0  # of all text, lost or not
    tokens: int = 0
    in_words: int = 0  # characters of the words that became unknown tokens
    in_long_words: int = 0  # of these, characters of words above the limit max_word_chars
    longest_word: int = 0  # characters of the longest of those words


class TokenizedSection(NamedTuple):
    """Tokens of one section; no sentence is empty."""

    tokens: np.ndarray  # [tokens], the store's type
    sentence_lengths: np.ndarray  # int64 [sentences]
    continues: np.ndarray | None  # bool [tokens]
    lost: LostText


class TokenizedSections(NamedTuple):
    """Tokens of several sections, one after the other: few arrays travel faster between processes than many."""

    tokens: np.ndarray
    sentence_lengths: np.ndarray
    sentence_counts: np.ndarray  # int64 [sections]
    continues: np.ndarray | None
    lost: np.ndarray  # int64 [sections, 5]; the counts of `LostText`

    def sections(self) -> Iterator[TokenizedSection]:
        token = sentence = 0
        for count, lost in zip(self.sentence_counts.tolist(), self.lost.tolist(), strict=True):
            lengths = self.sentence_lengths[sentence : sentence + count]
            end = token + int(lengths.sum())
            words = None if self.continues is None else self.continues[token:end]
            yield TokenizedSection(self.tokens[token:end], lengths, words, LostText(*lost))
            token, sentence = end, sentence + count


Loss = tuple[int, int, int]  # characters that became unknown tokens, those in long words, the longest word


class WordCache:
    """Ids of texts, word by word, with the words that were met before remembered.

    Where no rule of the tokenizer crosses a blank, a text's ids are those of its blank-separated parts, and most parts
    of any text were seen before. On English prose this is four times as fast as giving whole sentences to the library,
    which is what is done for other tokenizers. Parts are stored as the bytes of their ids.
    """

    def __init__(self, tokenizer: Tokenizer, special_in_text: bool):
        self._tokenizer, self._special_in_text = tokenizer, special_in_text
        self._dtype = token_dtype(tokenizer.vocab_size)
        self._known: dict[str, bytes] = {}
        self._losses: dict[str, Loss] = {}  # of known words with unknown tokens

    def parts(self, sentences: Sequence[str]) -> tuple[list[list[bytes]], list[list[Loss]]]:
        """For each sentence (single blanks between words) the ids of each word, which may have none; and the loss of
        each of its words that have unknown tokens (where rules cross blanks, that of the sentence)."""
        if self._tokenizer.crosses_blanks:
            encodings = self._tokenizer.encode_batch(sentences, special_in_text=self._special_in_text)
            return list(map(self._by_words, sentences, encodings)), [
                [self._loss(sentence, encoding)] for sentence, encoding in zip(sentences, encodings, strict=True)
            ]
        words = [sentence.split(" ") for sentence in sentences]
        new = list(set(itertools.chain.from_iterable(words)).difference(self._known))
        unknown = []
        for word, ids in zip(new, self._tokenizer.encode_ids(new, special_in_text=self._special_in_text), strict=True):
            self._known[word] = np.array(ids, self._dtype).tobytes()
            # Often, and it needs no second encoding.
            if ids == [self._tokenizer.unk_id] and word.isascii() and word.isalnum():
                self._losses[word] = (len(word), len(word) * self._is_long(len(word)), len(word))
            elif self._tokenizer.unk_id in ids:
                unknown.append(word)
        encodings = self._tokenizer.encode_batch(unknown, special_in_text=self._special_in_text)
        self._losses |= zip(unknown, map(self._loss, unknown, encodings), strict=True)
        ids_of_words = [list(map(self._known.__getitem__, sentence)) for sentence in words]
        losses = [list(filter(None, map(self._losses.get, sentence))) for sentence in words]
        for word in new:
            if len(word) > MAX_WORD:
                del self._known[word]
                self._losses.pop(word, None)
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
            self._losses.clear()
        return ids_of_words, losses

    def _loss(self, text: str, encoding: Encoding) -> Loss:
        """The characters of a text that became unknown tokens."""
        characters = in_long_words = longest = 0
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if token == self._tokenizer.unk_id:
                size = self._tokenizer.word_length(text[start:end])
                characters += end - start
                in_long_words += (end - start) * self._is_long(size)
                longest = max(longest, size)
        return characters, in_long_words, longest

    def _is_long(self, characters: int) -> bool:
        limit = self._tokenizer.max_word_chars
        return limit is not None and characters > limit

    def _by_words(self, sentence: str, encoding: Encoding) -> list[bytes]:
        """The ids of a sentence by its words; a token of several words belongs to the first of them."""
        words: list[list[int]] = [[] for _ in sentence.split(" ")]
        word = 0
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            covered = sentence[start:end]
            first = start + len(covered) - len(covered.lstrip(" "))
            word = max(word, sentence.count(" ", 0, first) if covered.strip(" ") else word)
            words[word].append(token)
        return [np.array(ids, self._dtype).tobytes() for ids in words]


class _Worker(threading.local):
    """What `start_tokenizing` gave to this thread; a process of Dask makes shards of several jobs at once."""

    setup: tuple[Tokenizer, WordCache, str, bool]  # tokenizer, words, language, word boundaries


_worker = _Worker()


def start_tokenizing(tokenizer: Tokenizer, language: str, special_in_text: bool, word_boundaries: bool) -> None:
    _worker.setup = (tokenizer, WordCache(tokenizer, special_in_text), language, word_boundaries)


def tokenize_sections(sections: Sequence[tuple[str, str]]) -> TokenizedSections:
    """Tokens of (text, layout) pairs, by the tokenizer that `start_tokenizing` gave to this thread."""
    tokenizer, cache, language, word_boundaries = _worker.setup
    dtype = token_dtype(tokenizer.vocab_size)
    by_section = [split_sentences(text, layout, language) for text, layout in sections]
    sentences = list(itertools.chain.from_iterable(by_section))
    parts, losses = cache.parts(sentences)
    joined = list(map(b"".join, parts))
    tokens = np.frombuffer(b"".join(joined), dtype)
    lengths = np.fromiter(map(len, joined), np.int64, len(joined)) // dtype.itemsize
    # Sentences without a token (of zero-width characters, say) are left out of the counts.
    section_of = np.repeat(np.arange(len(sections)), list(map(len, by_section)))
    counts = np.bincount(section_of[lengths > 0], minlength=len(sections))
    words = itertools.chain.from_iterable(parts)
    continues = _continues(words, dtype, len(tokens)) if word_boundaries else None
    lost = np.zeros((len(sections), len(LostText._fields)), np.int64)
    characters = np.fromiter((len(s) - s.count(" ") for s in sentences), np.int64, len(sentences))
    np.add.at(lost[:, 0], section_of, characters)
    np.add.at(lost[:, 1], np.repeat(section_of, lengths)[tokens == tokenizer.unk_id], 1)
    for section, of_sentence in zip(section_of.tolist(), losses, strict=True):
        for in_words, in_long_words, longest in of_sentence:
            lost[section, 2:4] += in_words, in_long_words
            lost[section, 4] = max(lost[section, 4], longest)
    return TokenizedSections(tokens, lengths[lengths > 0], counts, continues, lost)


def _continues(words: Iterable[bytes], dtype: np.dtype, num_tokens: int) -> np.ndarray:
    """bool [tokens]; True for the tokens of a word after its first."""
    lengths = np.fromiter(map(len, words), np.int64) // dtype.itemsize
    flags = np.ones(num_tokens, bool)
    flags[(np.cumsum(lengths) - lengths)[lengths > 0]] = False
    return flags
