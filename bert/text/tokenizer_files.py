"""What the files of a tokenizer's folder say, and tokenizer_config.json as we write it.

Not here: vocab.txt (vocabulary.py), and tokenizer.json as it is written, which the `tokenizers` library does.

Source: the formats of `tokenizers` and transformers. Where files disagree, the one counts that counts in transformers.
"""

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bert.errors import InputError
from bert.text.added_words import AddedWord, read_added_word, special_word
from bert.text.vocabulary import SPECIAL_TOKENS, read_vocab_file
from bert.text.wordpiece import MAX_WORD_CHARS, TokenizerSettings

GOOGLE_MAX_WORD_CHARS = 200  # google-research/bert, tokenization.py, WordpieceTokenizer
CONFIG = "tokenizer_config.json"
_SWITCHES = {"lower_case": "do_lower_case", "strip_accents": "strip_accents", "split_chinese": "tokenize_chinese_chars"}
_LISTS = ("additional_special_tokens", "extra_special_tokens")  # names in transformers 4 and 5


class _Added(NamedTuple):
    """Added words by their text, and the ids that the files give them."""

    words: dict[str, AddedWord]
    ids: dict[str, int]


def read_tokenizer_folder(folder: pathlib.Path) -> dict[str, Any]:
    """Arguments of `Tokenizer.from_vocab` that a folder holds.

    Where tokenizer.json and tokenizer_config.json disagree on lower-casing, the latter counts, as in transformers. In a
    folder of Google's (bert_config.json and vocab.txt), words are split up to Google's 200 characters.

    Raises:
      InputError: neither tokenizer.json nor vocab.txt is there, or a file holds what it must not.
    """
    config, added = _read_json(folder / CONFIG) if (folder / CONFIG).exists() else {}, _Added({}, {})
    if (folder / "tokenizer.json").exists():
        found = _read_tokenizer_json(folder / "tokenizer.json", added)
    elif (folder / "vocab.txt").exists():
        path = folder / "vocab.txt"
        found = {"vocab": read_vocab_file(path), "source": str(path)}
        if (folder / "bert_config.json").exists() and not (folder / "config.json").exists():
            found["max_word_chars"] = GOOGLE_MAX_WORD_CHARS
    else:
        raise InputError(f"{folder}: has neither tokenizer.json nor vocab.txt; name a folder that holds one of them")
    source = str(folder / CONFIG)
    for ours, theirs in _SWITCHES.items():
        if config.get(theirs) is not None:
            found[ours] = _checked(config[theirs], theirs, source, _is(bool), _SWITCH)
    special = _read_special_tokens(folder, config, added, found["vocab"])
    found["vocab"], found["added"] = _with_ids(found["vocab"], added, found["source"])
    limit = config.get("model_max_length")
    limit = 512 if limit is None else _checked(limit, "model_max_length", source, _counts, _COUNT)
    # transformers writes 1e30 for "no limit"
    return {**found, "special_tokens": special, "model_max_length": int(min(limit, 1 << 30))}


def config_text(settings: TokenizerSettings, model_max_length: int, more_special: list[str]) -> str:
    """The whole of tokenizer_config.json; `more_special` are the special tokens without a role."""
    # transformers' BertTokenizer splits words up to 100 characters whatever tokenizer.json says; its general class
    # takes all from that file, but must be told that BERT reads segment types.
    usual = settings.max_word_chars == MAX_WORD_CHARS
    general = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    values = {
        "tokenizer_class": "BertTokenizer" if usual else "PreTrainedTokenizerFast",
        **({} if usual else general),
        **{theirs: getattr(settings, ours) for ours, theirs in _SWITCHES.items()},
        "model_max_length": model_max_length,
        **{f"{name}_token": token for name, token in settings.special_tokens},
        **({_LISTS[0]: more_special} if more_special else {}),
    }
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def _read_tokenizer_json(path: pathlib.Path, added: _Added) -> dict[str, Any]:
    """Vocabulary (without words that are only added) and rules; added words go into ``added``."""
    content = _read_json(path)
    model, normalizer = (
        _checked(content.get(name) or {}, name, str(path), _is(dict), "an object") for name in ("model", "normalizer")
    )
    if model.get("type", "WordPiece") != "WordPiece" or normalizer.get("type") != "BertNormalizer":
        raise InputError(
            f"{path}: not a BERT tokenizer (model {model.get('type')}, normalizer {normalizer.get('type')}); "
            "WordPiece with BertNormalizer is needed"
        )
    found: dict[str, Any] = {"vocab": dict(model.get("vocab") or {}), "source": str(path)}
    for ours, theirs in (("lower_case", "lowercase"), ("strip_accents", "strip_accents"),
                         ("split_chinese", "handle_chinese_chars")):  # fmt: skip
        if normalizer.get(theirs) is not None:
            found[ours] = _checked(normalizer[theirs], theirs, str(path), _is(bool), _SWITCH)
    found.setdefault("lower_case", True)
    longest = model.get("max_input_chars_per_word", MAX_WORD_CHARS)
    found["max_word_chars"] = int(_checked(longest, "max_input_chars_per_word", str(path), _counts, _COUNT))
    for token in _checked(content.get("added_tokens") or [], "added_tokens", str(path), _is(list), "a list"):
        _add(added, read_added_word(token, str(path)), token.get("id") if isinstance(token, dict) else None, str(path))
    return found


def _read_special_tokens(
    folder: pathlib.Path, config: Mapping[str, Any], added: _Added, vocab: Mapping[str, int] | list[str]
) -> dict[str, str]:
    """Special tokens by their role; what the files say of other added words goes into ``added``.

    Three generations of transformers: lists and roles in tokenizer_config.json, with "added_tokens_decoder" beside
    them, or with special_tokens_map.json and added_tokens.json in files of their own.
    """
    source, named = str(folder / CONFIG), dict(config)
    decoder = config.get("added_tokens_decoder")
    if decoder is not None:
        for index, token in _checked(decoder, "added_tokens_decoder", source, _is(dict), "an object").items():
            _add(added, read_added_word(token, source), index, source)
    elif (folder / "special_tokens_map.json").exists():
        named |= _read_json(folder / "special_tokens_map.json")
    roles = {name: named[f"{name}_token"] for name in (*SPECIAL_TOKENS, "bos", "eos") if named.get(f"{name}_token")}
    words = {name: read_added_word(token, source, special=True) for name, token in roles.items()}
    more = []
    for name in _LISTS:
        tokens = _checked(named.get(name) or [], name, source, _is(list, dict), "a list")
        more += [read_added_word(token, source, special=True) for token in _values(tokens)]
    if decoder is None and (folder / "added_tokens.json").exists():
        special = {word.content for word in (*words.values(), *more)}
        for content, index in _read_json(folder / "added_tokens.json").items():
            plain = special_word(content) if content in special else AddedWord(content)
            _add(added, added.words.get(content, plain), index, source)
    for name, word in words.items():
        # BERT has no use for a beginning and an end of texts: they get no new id.
        if name in SPECIAL_TOKENS or word.content in vocab or word.content in added.words:
            added.words.setdefault(word.content, word)
    for word in more:
        added.words.setdefault(word.content, word)
    return {name: word.content for name, word in words.items() if name in SPECIAL_TOKENS}


def _values(tokens: list[Any] | dict[str, Any]) -> list[Any]:
    return list(tokens.values()) if isinstance(tokens, dict) else tokens


def _add(added: _Added, word: AddedWord, index: Any, source: str) -> None:
    try:
        added.ids[word.content] = int(index)
    except (TypeError, ValueError):
        raise InputError(
            f"{source}: the added token {word.content!r} has the id {index!r}; it must be a number"
        ) from None
    added.words[word.content] = word


def _with_ids(vocab: Mapping[str, int] | list[str], added: _Added, source: str) -> tuple[list[str], list[AddedWord]]:
    """Entries that words are cut into, and added words, both in the order of their ids.

    Raises:
      InputError: an id that no entry has, below one that is taken.
    """
    if isinstance(vocab, list) and len(set(vocab)) < len(vocab):  # from_vocab says which is there twice
        return vocab, []
    ids = dict(vocab) if isinstance(vocab, Mapping) else {entry: index for index, entry in enumerate(vocab)}
    cut = len(ids)
    for content, index in added.ids.items():
        ids.setdefault(content, index)
    entries = sorted(ids, key=ids.__getitem__)
    for expected, entry in enumerate(entries):
        if ids[entry] != expected:
            raise InputError(
                f"{source}: {entry!r} has id {ids[entry]} where {expected} comes next; ids must have no gap"
            )
    words = sorted(added.words.values(), key=lambda word: ids.get(word.content, len(ids)))
    # Added words between the others count as entries: `tokenizers` numbers new words from the vocabulary's end.
    kept = entries[:cut] if all(entry in vocab for entry in entries[:cut]) else entries
    return kept, words


_SWITCH, _COUNT = "true or false", "a number of at least 1"


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _counts(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 1


def _checked(value: Any, name: str, source: str, fits: Callable[[Any], bool], rule: str) -> Any:
    if not fits(value):
        raise InputError(f"{source}: {name} is {value!r}; it must be {rule}")
    return value


def _read_json(path: pathlib.Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no JSON object but {type(content).__name__}")
    return content
