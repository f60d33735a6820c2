"""Reads and checks vocabularies: vocab.txt (one entry a line, the line number is the id) and tokenizer.json.

vocab.txt is Google's format (google-research/bert, tokenization.py, `load_vocab`), tokenizer.json and
tokenizer_config.json are those of `tokenizers` and transformers.
"""

import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bert.errors import InputError

# The names in the released vocabularies, in the order in which a vocabulary trained here starts.
SPECIAL_TOKENS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def read_vocab_file(path: str | pathlib.Path) -> list[str]:
    """Entries of a vocabulary file in the order of their ids; Windows line ends and a BOM are taken off.

    Raises:
      InputError: no such file, not UTF-8, or an empty line (it would shift nothing but be an entry that no text has).
    """
    try:
        raw = pathlib.Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read as a vocabulary: {error.strerror}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; save the vocabulary as UTF-8") from None
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    entries = [line.removesuffix("\r") for line in lines]
    for number, entry in enumerate(entries, 1):
        if not entry:  # an odd blank is an entry: line 344 of bert-base-chinese is U+200A
            raise InputError(f"{path}, line {number}: empty; each line must hold one entry, remove the line")
    return entries


def check_vocab(entries: Sequence[str], special_tokens: Mapping[str, str], source: str) -> dict[str, int]:
    """Ids by entry.

    Raises:
      InputError: an entry that stands twice, or a special token that is missing.
    """
    ids: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if not isinstance(entry, str) or not entry:
            raise InputError(
                f"{source}, line {index + 1}: {entry!r} is no entry; each must be a text that is not empty"
            )
        if entry in ids:
            raise InputError(
                f"{source}, line {index + 1}: {entry!r} stands in line {ids[entry] + 1} already; "
                "each entry must be there once, for its line number is its id"
            )
        ids[entry] = index
    missing = [token for token in special_tokens.values() if token not in ids]
    if missing:
        raise InputError(
            f"{source}: {', '.join(missing)} missing among {len(ids)} entries; add a line for each, "
            "or name those in use in tokenizer_config.json (pad_token, unk_token, ...) beside it and give the folder"
        )
    return ids


def is_marker(entry: str) -> bool:
    """Whether an entry is a name such as [unused7], [MASK] or <S>, not a piece of text."""
    return re.fullmatch(r"\[[^\[\]\s]+\]|<[^<>\s]+>", entry) is not None


def upper_case_entries(entries: Sequence[str]) -> list[str]:
    """Entries that lower-casing would never let a text reach; bert-base-uncased has none, bert-base-cased 8,366."""
    return [entry for entry in entries if entry.lower() != entry and not is_marker(entry)]


def read_tokenizer_folder(folder: pathlib.Path) -> dict[str, Any]:
    """Arguments of `Tokenizer.from_vocab` that a folder holds, and "protected": words that are never split.

    Where tokenizer.json and tokenizer_config.json disagree on lower-casing, the latter counts, as in transformers.
    """
    config = _read_json(folder / "tokenizer_config.json") if (folder / "tokenizer_config.json").exists() else {}
    if (folder / "tokenizer.json").exists():
        found = _read_tokenizer_json(folder / "tokenizer.json")
    elif (folder / "vocab.txt").exists():
        path = folder / "vocab.txt"
        found = {"vocab": read_vocab_file(path), "protected": [], "source": str(path)}
    else:
        raise InputError(f"{folder}: has neither tokenizer.json nor vocab.txt; name a folder that holds one of them")
    names = {"lower_case": "do_lower_case", "strip_accents": "strip_accents", "split_chinese": "tokenize_chinese_chars"}
    found |= {ours: config[theirs] for ours, theirs in names.items() if config.get(theirs) is not None}
    tokens = {name: config.get(f"{name}_token") for name in SPECIAL_TOKENS}
    # Older files write {"content": "[MASK]", ...} instead of the plain name.
    plain = {name: token.get("content") if isinstance(token, dict) else token for name, token in tokens.items()}
    limit = min(config.get("model_max_length") or 512, 1 << 30)  # transformers writes 1e30 for "no limit"
    return {
        **found,
        "special_tokens": {n: token for n, token in plain.items() if token},
        "model_max_length": int(limit),
    }


def _read_tokenizer_json(path: pathlib.Path) -> dict[str, Any]:
    content = _read_json(path)
    model, normalizer = content.get("model") or {}, content.get("normalizer") or {}
    if model.get("type", "WordPiece") != "WordPiece" or normalizer.get("type") != "BertNormalizer":
        raise InputError(
            f"{path}: not a BERT tokenizer (model {model.get('type')}, normalizer {normalizer.get('type')}); "
            "WordPiece with BertNormalizer is needed"
        )
    ids = dict(model.get("vocab") or {})
    added = {token["content"]: token["id"] for token in content.get("added_tokens") or []}
    ids |= added
    vocab = sorted(ids, key=ids.__getitem__)
    for expected, entry in enumerate(vocab):
        if ids[entry] != expected:
            raise InputError(f"{path}: {entry!r} has id {ids[entry]} where {expected} comes next; ids must have no gap")
    return {
        "vocab": vocab,
        "lower_case": bool(normalizer.get("lowercase", True)),
        "strip_accents": normalizer.get("strip_accents"),
        "split_chinese": bool(normalizer.get("handle_chinese_chars", True)),
        "max_word_chars": int(model.get("max_input_chars_per_word", 100)),
        "protected": list(added),
        "source": str(path),
    }


def _read_json(path: pathlib.Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no JSON object but {type(content).__name__}")
    return content
