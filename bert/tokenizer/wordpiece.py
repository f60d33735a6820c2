"""The rules of WordPiece as objects of the `tokenizers` library, which only this file imports.

Source: google-research/bert, tokenization.py (`BasicTokenizer`, `WordpieceTokenizer`).
"""

import collections
import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from absl import logging
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from bert import surrogates
from bert.errors import InputError, short_repr
from bert.tokenizer.added_words import AddedWord, protected_word, special_word
from bert.tokenizer.vocab_file import SPECIAL_TOKENS

MAX_WORD_CHARS = 100  # where nothing is said; tokenizers' default, Google's is 200
PREFIX = "##"  # of entries that continue a word
_LATER = ("added", "pieces", "clean_text", "prefix", "components")  # settings that the first fingerprints did not have
ALPHABET_SHARE = 0.75  # of a learnt vocabulary at most are characters, for pieces must have room, too
COVERED = 0.9995  # share of the text that its characters cover where not all have room (as SentencePiece does)


@dataclasses.dataclass(frozen=True)
class TokenizerSettings:
    """All that decides the ids of a text, beside the vocabulary."""

    lower_case: bool
    strip_accents: bool
    split_chinese: bool = True
    max_word_chars: int = MAX_WORD_CHARS  # characters after lower-casing
    special_tokens: tuple[tuple[str, str], ...] = tuple(SPECIAL_TOKENS.items())
    protected: tuple[str, ...] = ()  # words that are never split
    added: tuple[AddedWord, ...] = ()  # the same with rules of their own; a special token only if its rules are unusual
    pieces: int | None = None  # entries that words are cut into, the first ones; the rest are only added words
    clean_text: bool = True  # control characters are removed, white space becomes blanks
    prefix: str = PREFIX
    # (field of tokenizer.json, its JSON) for a normalizer, pre_tokenizer or decoder that is not BERT's. Beside such a
    # normalizer the switches above only tell what it does.
    components: tuple[tuple[str, str], ...] = ()

    def added_words(self) -> dict[str, AddedWord]:
        """All that is looked for before words are cut, by its text; special tokens are among them."""
        words = {token: special_word(token) for _, token in self.special_tokens}
        words |= {word: protected_word(word) for word in self.protected}
        return words | {word.content: word for word in self.added}


def build(vocab: Sequence[str], settings: TokenizerSettings, *, split_special: bool = False) -> Backend:
    """The `tokenizers` object of a vocabulary; [CLS] and [SEP] are for others that read the saved file.

    Args:
      split_special: the five special tokens are split like any other text; other added words are kept whole.
    """
    ids = {entry: index for index, entry in enumerate(vocab)}
    special = dict(settings.special_tokens)
    backend = _bare({entry: ids[entry] for entry in vocab[: settings.pieces]}, settings)
    cls_token, sep_token = special["cls"], special["sep"]
    backend.post_processor = processors.TemplateProcessing(
        single=[cls_token, "$A", sep_token],
        pair=[cls_token, "$A", sep_token, "$B:1", f"{sep_token}:1"],
        special_tokens=[(cls_token, ids[cls_token]), (sep_token, ids[sep_token])],
    )
    # In the order of their ids, for the library numbers those that are no entries in the order in which they come.
    words = sorted(settings.added_words().values(), key=lambda word: ids[word.content])
    if split_special:
        words = [dataclasses.replace(word, special=word.content in special.values()) for word in words]
    # At once, for the library prepares its search anew after each call.
    backend.add_tokens([AddedToken(**dataclasses.asdict(word)) for word in words])
    backend.encode_special_tokens = split_special
    return backend


def check_added_words(settings: TokenizerSettings, source: str) -> None:
    """Raises InputError for added words, of ``source``, that are one word after normalization.

    The library would give it one of their ids by chance.
    """
    normalized = [word.content for word in settings.added_words().values() if word.normalized]
    if len(normalized) < 2:
        return
    normalizer = _bare({}, settings).normalizer
    before: dict[str, str] = {}
    for content in normalized:
        with library_errors(f"{source}: an added token cannot be normalized ({{}}); remove it"):
            form = content if normalizer is None else normalizer.normalize_str(content)
        if form in before:
            raise InputError(
                f"{source}: the added tokens {short_repr(before[form])} and {short_repr(content)} are one word when "
                "normalized (lower-cased, say), which gets an id by chance; set normalized to false, or leave one out"
            )
        before[form] = content


def _bare(ids: dict[str, int], settings: TokenizerSettings) -> Backend:
    """Normalization, words and pieces alone; special tokens mean nothing yet."""
    model = models.WordPiece(
        ids,
        unk_token=dict(settings.special_tokens)["unk"],
        max_input_chars_per_word=settings.max_word_chars,
        continuing_subword_prefix=settings.prefix,
    )
    backend = Backend(model)
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=settings.clean_text,
        handle_chinese_chars=settings.split_chinese,
        strip_accents=settings.strip_accents,
        lowercase=settings.lower_case,
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix=settings.prefix, cleanup=True)
    for field, text in settings.components:
        setattr(backend, field, getattr(_of_field(field, json.loads(text)), field))
    return backend


def read_field(field: str, value: Any) -> Any:
    """A field of a tokenizer.json, with what the file leaves out; InputError with the library's message alone."""
    with library_errors("{}"):
        return json.loads(_of_field(field, value).to_str())[field]


def letter_rules(normalizer: Any) -> tuple[bool, bool]:
    """(whether it lower-cases, whether it removes accents) of the "normalizer" of a tokenizer.json."""
    with library_errors("{}"):
        rules = _of_field("normalizer", normalizer).normalizer
        small, plain = (text if rules is None else rules.normalize_str(text) for text in ("A", "\u00e9"))
    return small == "a", plain == "e"


@contextlib.contextmanager
def library_errors(message: str) -> Iterator[None]:
    """Raises InputError with the message, {} being the library's own, where the library fails.

    Rust's panics (a pattern that takes too many steps) derive from BaseException, so that no `except Exception` sees
    them.
    """
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        lines = str(error).splitlines() or [type(error).__name__]
        shown = repr(lines[0][:200])[1:-1]  # it may quote the file
        raise InputError(message.replace("{}", shown)) from None


def _of_field(field: str, value: Any) -> Backend:
    """A tokenizer without entries that has this field of a tokenizer.json."""
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": PREFIX,
             "max_input_chars_per_word": MAX_WORD_CHARS, "vocab": {}}  # fmt: skip
    return Backend.from_str(json.dumps({"version": "1.0", "model": model, field: value}))


def fingerprint(vocab: Sequence[str], settings: TokenizerSettings) -> str:
    """SHA-256 over all that decides ids."""
    fields = dataclasses.asdict(settings)
    for field in dataclasses.fields(settings):
        # Text prepared before there were such settings keeps its fingerprint.
        if field.name in _LATER and fields[field.name] == field.default:
            del fields[field.name]
    parts = json.dumps([vocab, fields], ensure_ascii=False)
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()


def learn(texts: Iterable[str], settings: TokenizerSettings, vocab_size: int, source: str) -> list[str]:
    """Entries of a vocabulary for these texts, special tokens first. The texts are read twice.

    Raises InputError where there is no room beside the special tokens, or no word in the texts (of ``source``).
    """
    if vocab_size <= len(SPECIAL_TOKENS):
        raise InputError(f"vocab_size {vocab_size} must be above {len(SPECIAL_TOKENS)}, the special tokens")
    special = [token for _, token in settings.special_tokens]
    # Without added tokens: a literal [CLS] in the text must be lower-cased and split as any other word.
    backend = _bare({token: index for index, token in enumerate(special)}, settings)
    texts = list(texts) if isinstance(texts, Iterator) else texts
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=2,  # what stands once in a text is spelling, not a word
        special_tokens=special,
        limit_alphabet=_alphabet_size(_count_characters(texts, backend), backend, vocab_size, source),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    ids = backend.get_vocab(with_added_tokens=True)
    if len(ids) == len(special):
        raise InputError(f"{source}: the texts hold no word, so no vocabulary can be learnt from them")
    return sorted(ids, key=ids.__getitem__)


def _count_characters(texts: Iterable[str], backend: Backend) -> collections.Counter[str]:
    """How often each character stands in the texts, after normalization and without white space."""
    counts = np.zeros(0x110000, np.int64)
    held: list[str] = []
    size = 0

    def add() -> None:
        nonlocal counts
        points = np.frombuffer("".join(held).encode("utf-32-le", "surrogatepass"), "<u4")
        counts += np.bincount(points, minlength=len(counts))

    for text in texts:
        held.append(text)
        size += len(text)
        if size >= 1 << 20:  # one count over all code points takes as long as half a million characters
            add()
            held, size = [], 0
    add()
    normalized: collections.Counter[str] = collections.Counter()
    for point in np.flatnonzero(counts).tolist():
        for character in backend.normalizer.normalize_str(surrogates.replace(chr(point))):
            if not character.isspace():
                normalized[character] += int(counts[point])
    return normalized


def _alphabet_size(counts: collections.Counter[str], backend: Backend, vocab_size: int, source: str) -> int:
    """Characters that a learnt vocabulary may hold; the rarest are left to [UNK].

    All, if they take at most three quarters of the entries: one each for ideographs and punctuation marks, which are
    words, two for all others (x and ##x). Else as many as cover 99.95 % of the text and have room there, but no fewer
    than an eighth of the entries, or in small vocabularies the 256 most frequent ones, or half of what they hold.
    """
    least = max(vocab_size // 8, min(256, (vocab_size - len(SPECIAL_TOKENS)) // 2), 1)
    if len(counts) <= least:
        return least
    ordered = counts.most_common()
    entries = np.cumsum([1 if _is_word(character, backend) else 2 for character, _ in ordered])
    have_room = int(np.searchsorted(entries, ALPHABET_SHARE * (vocab_size - len(SPECIAL_TOKENS)), side="right"))
    if have_room == len(ordered):
        return have_room
    covered = np.cumsum([count for _, count in ordered])
    size = max(least, min(int(np.searchsorted(covered, COVERED * covered[-1])) + 1, have_room))
    lost = 1 - covered[size - 1] / covered[-1]
    if lost > 1 - COVERED:
        enough = int(np.ceil(entries[-1] / ALPHABET_SHARE)) + len(SPECIAL_TOKENS)
        logging.warning(
            "%s: vocab_size %d has room for the %d most frequent of %d characters, and %.2f %% of the text becomes "
            "[UNK]; vocab_size %d has room for all",
            *(source, vocab_size, size, len(ordered), 100 * lost, enough),
        )
    return size


def _is_word(character: str, backend: Backend) -> bool:
    """Whether a character is a word of its own wherever it stands: an ideograph or a punctuation mark."""
    return len(backend.pre_tokenizer.pre_tokenize_str(backend.normalizer.normalize_str(f"a{character}a"))) > 1
