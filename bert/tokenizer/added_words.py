"""Added tokens, as in `tokenizers`: words that are matched in a text before it is split into pieces.

Source: the documentation of `tokenizers.AddedToken`.
"""

import dataclasses
import pathlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from bert.errors import InputError, short_repr
from bert.json_files import read_text

_RULES = ("special", "normalized", "single_word", "lstrip", "rstrip")


@dataclasses.dataclass(frozen=True)
class AddedWord:
    """A word with an id of its own."""

    content: str
    special: bool = False  # stands for no text: decoding can leave it out, it is neither masked nor a replacement
    normalized: bool = True  # found in the text after lower-casing, itself lower-cased; else in the text as written
    single_word: bool = False  # not next to a letter, a digit or an underscore
    lstrip: bool = False  # takes the blanks before along
    rstrip: bool = False  # and those after


def special_word(content: str) -> AddedWord:
    """A special token with the usual rules: found as it is written."""
    return AddedWord(content, special=True, normalized=False)


def protected_word(content: str) -> AddedWord:
    """A word that is kept whole; "graft" must not be cut out of "grafting", marks may touch other text."""
    return AddedWord(content, single_word=content.isalnum())


def words_of(setting: str) -> tuple[AddedWord, ...]:
    """The words of a setting: with commas between them, or "@FILE" with one a line; rules as in the library.

    By these defaults of `tokenizers.AddedToken`, a word is also found inside of others ("ab" in "abc"), and after
    lower-casing, itself lower-cased.
    """
    try:
        parts = read_text(pathlib.Path(setting[1:])).split("\n") if setting.startswith("@") else setting.split(",")
    except FileNotFoundError:
        raise InputError(f"add_tokens names {setting[1:]}, which is no file; give one with a token a line") from None
    words = tuple(AddedWord(content) for content in dict.fromkeys(part.strip() for part in parts) if content)
    if setting and not words:
        raise InputError(f"add_tokens is {short_repr(setting)}, which holds no token; name some, or set it to empty")
    return words


def split_protected(
    words: Iterable[AddedWord], special: Collection[str]
) -> tuple[tuple[str, ...], tuple[AddedWord, ...]]:
    """(texts of words with the rules of `protected_word`, other words) but for special tokens with the usual rules."""
    known = [dataclasses.replace(word, special=True) if word.content in special else word for word in words]
    protected = tuple(word.content for word in known if word == protected_word(word.content))
    usual = {*map(special_word, special), *map(protected_word, protected)}
    return protected, tuple(word for word in known if word not in usual)


def read_added_word(value: Any, source: str, *, special: bool = False) -> AddedWord:
    """The word that a value of JSON describes: its plain text, or an object with "content" and rules.

    special: whether a plain text is a special token; an object has a field for it.
    """
    content = value.get("content") if isinstance(value, Mapping) else value
    if not isinstance(content, str) or not content:
        raise InputError(
            f"{source}: {short_repr(value)} is no added token; it must be a text, or an object with content"
        )
    if not isinstance(value, Mapping):
        return special_word(content) if special else AddedWord(content)
    rules = {name: value[name] for name in _RULES if value.get(name) is not None}
    for name, rule in rules.items():
        if not isinstance(rule, bool):
            what = f"{name} of the added token {short_repr(content)}"
            raise InputError(f"{source}: {what} is {short_repr(rule)}; it must be true or false")
    # The library's default: special words are found as they are written.
    rules.setdefault("normalized", not rules.get("special", special))
    return AddedWord(content, **{"special": special, **rules})
