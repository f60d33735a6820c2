"""Differences between two tokenizers, for messages about a model and a text that do not match."""

import dataclasses
from typing import Any

from bert.errors import short_text
from bert.tokenizer.added_words import AddedWord
from bert.tokenizer.tokenizer import Tokenizer


def differences(one: Tokenizer, other: Tokenizer) -> list[str]:
    """For each difference that decides ids one phrase, with the value of ``one`` first; none if all ids are equal."""
    differing = []
    if one.vocab != other.vocab:
        pairs = zip(one.vocab, other.vocab, strict=False)
        first = next((i for i, (a, b) in enumerate(pairs) if a != b), min(one.vocab_size, other.vocab_size))
        differing.append(f"vocabulary ({one.vocab_size} entries, not {other.vocab_size}; different from id {first} on)")
    for field in dataclasses.fields(one.settings):
        a, b = getattr(one.settings, field.name), getattr(other.settings, field.name)
        if a != b:
            differing.append(f"{field.name} ({_shown(a)}, not {_shown(b)})")
    return differing


def _shown(value: Any) -> str:
    """A setting in a few words: of tables and lists the contents that people write."""
    if isinstance(value, tuple):
        return " ".join(map(_item, value)) or "none"
    return short_text(value) if isinstance(value, str) else str(value)


def _item(item: Any) -> str:
    if isinstance(item, AddedWord):
        rules = [name for name, value in vars(item).items() if value is True]
        return " ".join([short_text(item.content), *rules])
    return short_text(item[1] if isinstance(item, tuple) else item)
