"""Settings of WordPiece, and the objects of the `tokenizers` library that implement them.

Source: google-research/bert, tokenization.py (`BasicTokenizer`, `WordpieceTokenizer`).
"""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as LibraryTokenizer

from bert.errors import InputError, short_repr
from bert.tokenizer.added_words import AddedWord, protected_word, special_word
from bert.tokenizer.tokenizer import library_errors
from bert.tokenizer.vocab_file import SPECIAL_TOKENS

MAX_WORD_CHARS = 100  # the default, as in `tokenizers`; Google's is 200
PREFIX = "##"  # of entries that continue a word
EMPTY_MODEL = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": PREFIX,
               "max_input_chars_per_word": MAX_WORD_CHARS, "vocab": {}}  # fmt: skip
_LATER = ("added", "pieces", "clean_text", "prefix", "components")  # settings that first fingerprints do not have


@dataclasses.dataclass(frozen=True)
class WordPieceSettings:
    """All that decides the ids of a text, except the vocabulary."""

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
    # (field of tokenizer.json, its JSON) for a normalizer, pre_tokenizer or decoder that is not BERT's. With such a
    # normalizer the switches above only describe it.
    components: tuple[tuple[str, str], ...] = ()

    def added_words(self) -> dict[str, AddedWord]:
        """All words that are searched for before others are cut, by their text; special tokens are among them."""
        words = {token: special_word(token) for _, token in self.special_tokens}
        words |= {word: protected_word(word) for word in self.protected}
        return words | {word.content: word for word in self.added}


def build(vocab: Sequence[str], settings: WordPieceSettings, *, split_special: bool = False) -> LibraryTokenizer:
    """The `tokenizers` object of a vocabulary; [CLS] and [SEP] are for others that read the saved file.

    split_special: the five special tokens are split like any other text; other added words are kept whole.
    """
    ids = {entry: index for index, entry in enumerate(vocab)}
    special = dict(settings.special_tokens)
    backend = bare({entry: ids[entry] for entry in vocab[: settings.pieces]}, settings)
    cls, sep = special["cls"], special["sep"]
    backend.post_processor = processors.TemplateProcessing(
        single=[cls, "$A", sep],
        pair=[cls, "$A", sep, "$B:1", f"{sep}:1"],
        special_tokens=[(cls, ids[cls]), (sep, ids[sep])],
    )
    # In the order of their ids, for the library numbers those that are no entries in the order in which they come.
    words = sorted(settings.added_words().values(), key=lambda word: ids[word.content])
    if split_special:
        words = [dataclasses.replace(word, special=word.content in special.values()) for word in words]
    # At once, for the library prepares its search anew after each call.
    backend.add_tokens([AddedToken(**dataclasses.asdict(word)) for word in words])
    backend.encode_special_tokens = split_special
    return backend


def check_added_words(settings: WordPieceSettings, source: str) -> None:
    """Raises InputError for added words that are one after normalization: the library would choose an id by chance."""
    normalized = [word.content for word in settings.added_words().values() if word.normalized]
    if len(normalized) < 2:
        return
    normalizer = bare({}, settings).normalizer
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


def bare(ids: dict[str, int], settings: WordPieceSettings) -> LibraryTokenizer:
    """Normalization, words and pieces alone; special tokens mean nothing yet."""
    model = models.WordPiece(
        ids,
        unk_token=dict(settings.special_tokens)["unk"],
        max_input_chars_per_word=settings.max_word_chars,
        continuing_subword_prefix=settings.prefix,
    )
    backend = LibraryTokenizer(model)
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


def _of_field(field: str, value: Any) -> LibraryTokenizer:
    """A tokenizer without entries that has this field of a tokenizer.json."""
    return LibraryTokenizer.from_str(json.dumps({"version": "1.0", "model": EMPTY_MODEL, field: value}))


def fingerprint(vocab: Sequence[str], settings: WordPieceSettings) -> str:
    """SHA-256 over all that decides ids."""
    fields = dataclasses.asdict(settings)
    for field in dataclasses.fields(settings):
        # Text prepared before there were such settings keeps its fingerprint.
        if field.name in _LATER and fields[field.name] == field.default:
            del fields[field.name]
    parts = json.dumps([vocab, fields], ensure_ascii=False)
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()
