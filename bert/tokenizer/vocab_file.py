"""Reads and checks vocab.txt: one entry per line; the line number is the id.

Source: google-research/bert, tokenization.py, `load_vocab`.
"""

import pathlib
import re
from collections.abc import Mapping, Sequence

from bert.errors import InputError, short_repr
from bert.json_files import read_text

# The names in the released vocabularies, in the order in which a vocabulary trained here starts.
SPECIAL_TOKENS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def read_vocab_file(path: str | pathlib.Path) -> list[str]:
    """Entries of a vocabulary file in the order of their ids; Windows line ends and a BOM are taken off."""
    lines = read_text(pathlib.Path(path)).split("\n")
    if lines[-1] == "":
        lines.pop()
    entries = [line.removesuffix("\r") for line in lines]
    for number, entry in enumerate(entries, 1):
        if not entry:  # an odd blank is an entry: line 344 of bert-base-chinese is U+200A
            raise InputError(f"{path}, line {number}: empty; each line must hold one entry, remove the line")
    return entries


def check_vocab(entries: Sequence[str], special_tokens: Mapping[str, str], source: str) -> dict[str, int]:
    """Ids by entry. Raises InputError for an entry that stands twice, or a special token that is missing."""
    ids: dict[str, int] = {}
    for index, entry in enumerate(entries):
        place = f"{source}, line {index + 1}"
        if not isinstance(entry, str) or not entry:
            raise InputError(f"{place}: {short_repr(entry)} is no entry; each must be a text that is not empty")
        if entry in ids:
            what = f"{short_repr(entry)} stands in line {ids[entry] + 1} already"
            raise InputError(f"{place}: {what}; each entry must be there once, for its line number is its id")
        ids[entry] = index
    missing = [token for token in special_tokens.values() if token not in ids]
    if missing:
        raise InputError(
            f"{source}: {', '.join(map(short_repr, missing))} missing among {len(ids)} entries; add a line for each, "
            "or name those in use in tokenizer_config.json (pad_token, unk_token, ...) beside it and give the folder"
        )
    return ids


def is_marker(entry: str) -> bool:
    """Whether an entry is a name such as [unused7], [MASK] or <S>, not a piece of text."""
    return re.fullmatch(r"\[[^\[\]\s]+\]|<[^<>\s]+>", entry) is not None


def upper_case_entries(entries: Sequence[str]) -> list[str]:
    """Entries that lower-casing would never let a text reach; bert-base-uncased has none, bert-base-cased 8,366."""
    return [entry for entry in entries if entry.lower() != entry and not is_marker(entry)]
