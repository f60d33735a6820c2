"""`Tokenizer`, the base class of all tokenizers: text to token ids with offsets into the text, and back.

Other modules use only this interface. wordpiece.py implements it; backends.py registers the implementations.
"""

import abc
import contextlib
import functools
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import tokenizers

from bert import surrogates
from bert.errors import InputError
from bert.tokenizer.added_words import AddedWord

_FAILS = "the tokenizer's rules fail on a text ({}); simplify the patterns of its tokenizer.json, or shorten the text"


class Encoding(NamedTuple):
    """Pieces of one text, without special tokens around it."""

    ids: list[int]
    offsets: list[tuple[int, int]]  # [start, end) of each piece in code points of the original text
    word_ids: list[int]  # number of each piece's word; punctuation marks are words of their own


class Template(NamedTuple):
    """Special tokens around texts: before A after, or for pairs: before A between B after."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    type_of_b: int = 1  # segment type of B and of what follows it; everything before B has type 0

    def special_tokens(self, *, pair: bool) -> int:
        return len(self.before) + len(self.after) + (len(self.between) if pair else 0)

    def special_counts(self, b_length_N: np.ndarray) -> np.ndarray:
        """int32 [N], the special tokens of sequences whose B has so many tokens; 0: there is no B."""
        return np.where(b_length_N > 0, *(np.int32(self.special_tokens(pair=pair)) for pair in (True, False)))

    def join(self, a: Sequence[int], b: Sequence[int] | None = None) -> tuple[list[int], int]:
        """Token ids of a text or a pair, and how many of them have segment type 0."""
        if b is None:
            ids = [*self.before, *a, *self.after]
            return ids, len(ids)
        first = [*self.before, *a, *self.between]
        ids = [*first, *b, *self.after]
        return ids, len(first) if self.type_of_b else len(ids)


class Tokenizer(abc.ABC):
    """A vocabulary and its rules; never changed after it was made."""

    model_type: ClassVar[str]  # of the model in tokenizer.json
    vocab: tuple[str, ...]  # entries in the order of their ids
    settings: Any  # a dataclass of all else that decides ids
    model_max_length: int  # tokens, special ones included; only noted for other programs
    pad_id: int
    unk_id: int
    cls_id: int
    sep_id: int
    mask_id: int
    special_ids: tuple[int, ...]  # all that stand for no text: first those of the five roles, in the order above
    lower_case: bool  # whether letter case is lost
    crosses_blanks: bool  # whether a rule looks across a blank; if not, a text's ids are those of its parts between
    max_word_chars: int | None = None  # longer words become one unknown token; None: there is no such limit

    @classmethod
    @abc.abstractmethod
    def from_folder(cls, folder: pathlib.Path, content: dict[str, Any] | None) -> "Tokenizer":
        """The tokenizer of a folder; ``content`` is the object in its tokenizer.json, if there is one."""

    @abc.abstractmethod
    def save(self, directory: str | pathlib.Path, *, model_max_length: int | None = None) -> None:
        """Writes tokenizer.json, vocab.txt and tokenizer_config.json; AutoTokenizer reads an equal one."""

    @abc.abstractmethod
    def build(self, *, split_special: bool) -> tokenizers.Tokenizer:
        """The `tokenizers` object; ``split_special``: special tokens in a text are split like any other text."""

    @property
    @abc.abstractmethod
    def continues_word_V(self) -> np.ndarray:
        """bool [V]; True for pieces that continue a word ("##ing")."""

    @property
    @abc.abstractmethod
    def replacement_ids(self) -> np.ndarray:
        """int32 [R], ascending; ids that stand for text: no special token, no [unused7]."""

    @property
    @abc.abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 over the vocabulary and every setting that decides ids."""

    @abc.abstractmethod
    def piece_text(self, index: int) -> str:
        """The text of a piece, without the mark of its place in a word."""

    @abc.abstractmethod
    def summary(self) -> str:
        """One line: the vocabulary's size and what is done to text before it is looked up."""

    def add_words(self, words: Iterable[AddedWord]) -> "Tokenizer":
        """A tokenizer that keeps these words whole; those not in the vocabulary get the next ids. Words that it has
        added before stay as they are. InputError for a special token, for two words that are one when normalized, and
        for any word where a kind of tokenizer does not override this.
        """
        if any(True for _ in words):
            raise InputError(f"added tokens: a tokenizer of type {self.model_type} takes none; leave add_tokens empty")
        return self

    def extends(self, other: "Tokenizer") -> bool:
        """Whether this is the other tokenizer with words added."""
        return False

    def word_length(self, word: str) -> int:
        """The characters of a word that count for `max_word_chars`."""
        return len(word)

    @property
    def vocab_size(self) -> int:
        return len(self.vocab)

    @property
    def template(self) -> Template:
        return Template((self.cls_id,), (self.sep_id,), (self.sep_id,))

    def encode(self, text: str, *, special_in_text: bool = False) -> Encoding:
        """Pieces of one text. `special_in_text`: a literal "[MASK]" is that token, else it is split; other added words
        are found in both cases."""
        return self.encode_batch([text], special_in_text=special_in_text)[0]

    def encode_batch(self, texts: Sequence[str], *, special_in_text: bool = False) -> list[Encoding]:
        """Pieces of several texts, on all cores. Raises InputError for what is no text, such as None or NaN."""
        backend, plain = self._backend(special_in_text), _checked(texts)
        with library_errors(_FAILS):
            encodings = backend.encode_batch(plain, add_special_tokens=False)
        return [Encoding(e.ids, e.offsets, [-1 if word is None else word for word in e.word_ids]) for e in encodings]

    def encode_ids(self, texts: Sequence[str], *, special_in_text: bool = False) -> list[list[int]]:
        """Only the ids of `encode_batch`; a third faster."""
        backend, plain = self._backend(special_in_text), _checked(texts)
        with library_errors(_FAILS):
            encodings = backend.encode_batch_fast(plain, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int], *, skip_special: bool = False) -> str:
        """Text with the pieces joined; letter case is not restored where it was lost."""
        return self._backend(True).decode([int(i) for i in ids], skip_special_tokens=skip_special)

    def _backend(self, special_in_text: bool) -> tokenizers.Tokenizer:
        return self._keeping if special_in_text else self._splitting

    # The switch is state of the library's object, hence two.
    @functools.cached_property
    def _keeping(self) -> tokenizers.Tokenizer:
        return self.build(split_special=False)

    @functools.cached_property
    def _splitting(self) -> tokenizers.Tokenizer:
        return self.build(split_special=True)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.vocab, self.settings, self.model_max_length)  # without the library's objects

    def __repr__(self) -> str:
        return f"{type(self).__name__}(vocab_size={self.vocab_size}, lower_case={self.lower_case})"


def _checked(texts: Sequence[str]) -> list[str]:
    """The texts without unpaired surrogates. Raises InputError for what is no text."""
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"{text!r} is no text; leave out what is missing, or give an empty text")
    return list(map(surrogates.replace, texts))


@contextlib.contextmanager
def library_errors(message: str) -> Iterator[None]:
    """Raises InputError with the message, {} being the library's own, where the `tokenizers` library fails.

    Rust's panics (a pattern that takes too many steps) derive from BaseException.
    """
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        lines = str(error).splitlines() or [type(error).__name__]
        shown = repr(lines[0][:200])[1:-1]  # it may quote the file
        raise InputError(message.replace("{}", shown)) from None
