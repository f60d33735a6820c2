"""WordPiece, BERT's tokenizer.

The pieces are those of google-research/bert, tokenization.py, except where the `tokenizers` library differs from it:
words of 101 to 200 characters are unknown (`max_word_chars=200` follows Google), private-use characters are dropped,
and a Greek capital sigma at the end of a word becomes the plain small one. Text is not normalised to a Unicode normal
form, unless tokenizer.json requires it: "a" + U+0301 and "á" are different entries of a cased vocabulary.
"""

import dataclasses
import functools
import pathlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tokenizers
from absl import logging

from bert import files, hub_names
from bert.errors import InputError, short_repr, short_text
from bert.tokenizer import tokenizer_files, wordpiece_model, wordpiece_training
from bert.tokenizer.added_words import AddedWord, split_protected
from bert.tokenizer.tokenizer import Tokenizer
from bert.tokenizer.vocab_file import SPECIAL_TOKENS, check_vocab, read_vocab_file, upper_case_entries
from bert.tokenizer.wordpiece_model import MAX_WORD_CHARS, WordPieceSettings


class WordPiece(Tokenizer):
    """Words cut into the longest entries of a vocabulary; made by `from_vocab`, `train` or `load_tokenizer`."""

    model_type = "WordPiece"
    settings: WordPieceSettings

    def __init__(self, vocab: Sequence[str], settings: WordPieceSettings, model_max_length: int = 512):
        self.vocab, self.settings, self.model_max_length = tuple(vocab), settings, model_max_length
        self.lower_case, self.max_word_chars = settings.lower_case, settings.max_word_chars
        # An added "new york" looks across a blank, and other rules than BERT's may.
        split = any(word.split() != [word] for word in settings.added_words())
        self.crosses_blanks = bool(settings.components) or split
        self._ids = {entry: index for index, entry in enumerate(self.vocab)}
        roles = dict(settings.special_tokens)
        special = [roles[name] for name in SPECIAL_TOKENS]
        more = [word.content for word in settings.added if word.special and word.content not in special]
        self.special_ids = tuple(self._ids[token] for token in (*special, *more))
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = self.special_ids[: len(SPECIAL_TOKENS)]

    @classmethod
    def from_vocab(
        cls,
        vocab: str | pathlib.Path | Sequence[str],
        *,
        lower_case: bool | None = None,
        strip_accents: bool | None = None,
        max_word_chars: int = MAX_WORD_CHARS,
        model_max_length: int = 512,
        special_tokens: Mapping[str, str] | None = None,
        added: Sequence[AddedWord] = (),
        source: str = "",
        **rules: Any,
    ) -> "WordPiece":
        """Tokenizer of a vocabulary file with one entry a line, or of entries in the order of their ids.

        Args:
          lower_case: None = no if the vocabulary has upper-case entries, else yes.
          strip_accents: None = as lower_case (the rule of the released models).
          special_tokens: "pad", "unk", "cls", "sep", "mask" -> entry, where they are not [PAD], [UNK], ...
          added: words that are found before texts are cut into words; those that are no entries get the next ids.
          source: what messages call the vocabulary.
          rules: other fields of `WordPieceSettings`: split_chinese, clean_text, prefix, components.
        """
        try:
            entries = read_vocab_file(vocab) if isinstance(vocab, str | pathlib.Path) else list(vocab)
        except FileNotFoundError:
            way_out = hub_names.advice(str(vocab)) or "name a vocabulary with an entry a line"
            raise InputError(f"{hub_names.shown(str(vocab))}: no such file; {way_out}") from None
        source = source or (str(vocab) if isinstance(vocab, str | pathlib.Path) else "vocabulary")
        special = {**SPECIAL_TOKENS, **(special_tokens or {})}
        words, vocab_size = {word.content: word for word in added}, len(entries)
        known = set(entries)
        new = [content for content in words if content not in known]
        entries += new
        ids = check_vocab(entries, special, source)
        upper = upper_case_entries([entry for entry in entries if entry not in words])
        if lower_case is None:
            lower_case = not upper
        elif lower_case and upper:
            logging.warning(
                "%s: lower-casing is on, so %d of %d entries can never be met (such as %s); cased vocabularies need "
                "lower_case=False",
                *(source, len(upper), len(entries), ", ".join(map(short_repr, upper[:3]))),
            )
        by_id = sorted(words.values(), key=lambda word: ids[word.content])
        protected, unusual = split_protected(by_id, special.values())
        settings = WordPieceSettings(
            lower_case,
            lower_case if strip_accents is None else strip_accents,
            max_word_chars=max_word_chars,
            special_tokens=tuple(special.items()),
            protected=protected,
            added=unusual,
            # The unknown token must be an entry that words can become.
            pieces=vocab_size if new and special["unk"] in known else None,
            **rules,
        )
        wordpiece_model.check_added_words(settings, source)
        return cls(entries, settings, model_max_length)

    @classmethod
    def train(
        cls, texts: Iterable[str], *, vocab_size: int, lower_case: bool = True, strip_accents: bool | None = None,
        source: str = "trained vocabulary", **rules: Any,
    ) -> "WordPiece":  # fmt: skip
        """Tokenizer with pieces learnt from texts, which are read twice; little text may give fewer than `vocab_size`.

        The same texts give the same pieces in each run, in any order.
        """
        settings = WordPieceSettings(lower_case, lower_case if strip_accents is None else strip_accents, **rules)
        return cls(wordpiece_training.learn(texts, settings, vocab_size, source), settings)

    @classmethod
    def from_folder(cls, folder: pathlib.Path, content: dict[str, Any] | None) -> "WordPiece":
        return cls.from_vocab(**tokenizer_files.read_tokenizer_folder(folder, content))

    def save(self, directory: str | pathlib.Path, *, model_max_length: int | None = None) -> None:
        special = [self.vocab[i] for i in self.special_ids[len(SPECIAL_TOKENS) :]]
        config = tokenizer_files.config_text(self.settings, model_max_length or self.model_max_length, special)
        texts = (self._keeping.to_str(pretty=True), "\n".join(self.vocab) + "\n", config)
        for name, text in zip(tokenizer_files.WRITTEN, texts, strict=True):
            files.write(pathlib.Path(directory) / name, text)

    def add_words(self, words: Iterable[AddedWord]) -> "WordPiece":
        known, special = self.settings.added_words(), dict(self.settings.special_tokens)
        new = {word.content: word for word in words}
        for content in special.values():
            if content in new:
                raise InputError(f"added tokens: {short_repr(content)} is a special token already; leave it out")
        new = {content: word for content, word in new.items() if content not in known}
        vocab = [*self.vocab, *(content for content in new if content not in self._ids)]
        ids = {entry: index for index, entry in enumerate(vocab)}
        by_id = sorted((known | new).values(), key=lambda word: ids[word.content])
        protected, added = split_protected(by_id, special.values())
        pieces = self.settings.pieces if len(vocab) == self.vocab_size else self.settings.pieces or self.vocab_size
        settings = dataclasses.replace(self.settings, protected=protected, added=added, pieces=pieces)
        wordpiece_model.check_added_words(settings, "added tokens")
        return WordPiece(vocab, settings, self.model_max_length)

    def extends(self, other: Tokenizer) -> bool:
        if not isinstance(other, WordPiece):
            return False
        known = other.settings.added_words()
        more = [word for content, word in self.settings.added_words().items() if content not in known]
        more.sort(key=lambda word: self._ids[word.content])
        try:
            return bool(more) and other.add_words(more).fingerprint == self.fingerprint
        except InputError:
            return False

    def build(self, *, split_special: bool) -> tokenizers.Tokenizer:
        return wordpiece_model.build(self.vocab, self.settings, split_special=split_special)

    @functools.cached_property
    def continues_word_V(self) -> np.ndarray:
        prefix = self.settings.prefix
        return np.array([entry.startswith(prefix) and len(entry) > len(prefix) for entry in self.vocab])

    @functools.cached_property
    def replacement_ids(self) -> np.ndarray:
        special, unused = set(self.special_ids), re.compile(r"\[unused\d+\]")
        ids = [i for i, entry in enumerate(self.vocab) if i not in special and not unused.fullmatch(entry)]
        return np.array(ids, np.int32)

    @functools.cached_property
    def fingerprint(self) -> str:
        return wordpiece_model.fingerprint(self.vocab, self.settings)

    def piece_text(self, index: int) -> str:
        entry = self.vocab[index]
        return entry.removeprefix(self.settings.prefix) if self.continues_word_V[index] else entry

    def word_length(self, word: str) -> int:
        """Characters after the removal of accents."""
        if not self.settings.strip_accents:
            return len(word)
        return sum(not unicodedata.combining(c) for c in unicodedata.normalize("NFD", word))

    def summary(self) -> str:
        small, plain = ("yes" if is_on else "no" for is_on in (self.lower_case, self.settings.strip_accents))
        others = "".join(f"; {name} {short_repr(rule)}" for name, rule in self.settings.components)
        return (
            f"vocabulary of {self.vocab_size:,}; lower-case: {small}; accents removed: {plain}; words longer than "
            f"{self.max_word_chars} characters are {short_text(self.vocab[self.unk_id])}{others}"
        )
