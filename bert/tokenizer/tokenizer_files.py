"""Reads the files of a tokenizer's folder, and writes tokenizer_config.json.

vocab_file.py reads vocab.txt; the `tokenizers` library writes tokenizer.json. If files disagree, the same file takes
precedence as in transformers. Source: the formats of `tokenizers` and transformers.
"""

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from bert.errors import InputError, short_repr
from bert.json_files import read_object
from bert.tokenizer.added_words import AddedWord, read_added_word, special_word
from bert.tokenizer.vocab_file import SPECIAL_TOKENS, read_vocab_file
from bert.tokenizer.wordpiece_model import MAX_WORD_CHARS, PREFIX, WordPieceSettings
from bert.tokenizer.wordpiece_rules import BERT_CLASSES, GENERAL_CLASSES, check_frame, decide, decide_case, read_rules

GOOGLE_MAX_WORD_CHARS = 200  # google-research/bert, tokenization.py, WordpieceTokenizer
CONFIG = "tokenizer_config.json"
WRITTEN = ("tokenizer.json", "vocab.txt", CONFIG)  # by `Tokenizer.save`
_SWITCHES = {"lower_case": "do_lower_case", "strip_accents": "strip_accents", "split_chinese": "tokenize_chinese_chars"}
_LISTS = ("additional_special_tokens", "extra_special_tokens")  # names in transformers 4 and 5


class _Added:
    """Added words by their text, and the ids that the files give them."""

    def __init__(self) -> None:
        self.words: dict[str, AddedWord] = {}
        self.ids: dict[str, int] = {}

    def add(self, word: AddedWord, index: Any, source: str) -> None:
        if isinstance(index, str) and index.isascii() and index.isdigit() and len(index) < 20:
            index = int(index)  # the names of a JSON object are texts
        if type(index) is not int:
            what = f"the added token {short_repr(word.content)} has the id {short_repr(index)}"
            raise InputError(f"{source}: {what}; it must be a number")
        self.ids[word.content], self.words[word.content] = index, word


def read_tokenizer_folder(folder: pathlib.Path, content: dict[str, Any] | None) -> dict[str, Any]:
    """Arguments of `WordPiece.from_vocab` that a folder holds.

    tokenizer.json counts before vocab.txt. The switches of tokenizer_config.json (do_lower_case, ...) count before a
    BertNormalizer in tokenizer.json where the class of the tokenizer is one of BERT's, and not at all where it is
    another, as in transformers; what else transformers does otherwise is logged. In a folder of Google's
    (bert_config.json and vocab.txt), words are split up to Google's 200 characters.
    """
    config, added = object_in(folder / CONFIG) or {}, _Added()
    source = str(folder / "tokenizer.json")
    kind = _tokenizer_class(folder, config)
    switches = {
        ours: _checked(config[theirs], theirs, str(folder / CONFIG), _is(bool), "true or false")
        for ours, theirs in _SWITCHES.items()
        if config.get(theirs) is not None
    }
    vocab: dict[str, int] | list[str]
    if content is not None:
        rules = read_rules(content, source)
        vocab = _read_entries(content, added, source)
        special = _read_special_tokens(folder, config, added, vocab)
        arguments = decide(rules, special, switches, kind, source)
    else:
        source = str(folder / "vocab.txt")
        vocab = _read_vocab_txt(folder, kind)
        special = _read_special_tokens(folder, config, added, vocab)
        arguments = dict(switches)
        if (folder / "bert_config.json").exists() and not (folder / "config.json").exists():
            arguments["max_word_chars"] = GOOGLE_MAX_WORD_CHARS
        elif kind in BERT_CLASSES and "lower_case" not in switches:
            arguments["lower_case"] = decide_case([entry for entry in vocab if entry not in added.words], source)
    entries, words = _with_ids(vocab, added, source)
    if content is not None and kind not in BERT_CLASSES:  # transformers gives BERT's classes BERT's frame
        check_frame(rules, special, entries, source)
    limit = 512 if config.get("model_max_length") is None else config["model_max_length"]
    _checked(limit, "model_max_length", str(folder / CONFIG), _counts, "a number of at least 1")
    arguments |= {"vocab": entries, "added": words, "source": source, "special_tokens": special}
    return arguments | {"model_max_length": int(min(limit, 1 << 30))}  # transformers writes 1e30 for "no limit"


def config_text(settings: WordPieceSettings, model_max_length: int, more_special: list[str]) -> str:
    """The whole of tokenizer_config.json; `more_special` are the special tokens without a role."""
    # transformers' BertTokenizer has BERT's own rules, whatever tokenizer.json holds; its general class takes all from
    # that file, except that BERT reads segment types.
    rules = (settings.max_word_chars, settings.clean_text, settings.prefix, settings.components)
    usual = rules == (MAX_WORD_CHARS, True, PREFIX, ())
    general = {"model_input_names": ["input_ids", "token_type_ids", "attention_mask"]}
    switches = {theirs: getattr(settings, ours) for ours, theirs in _SWITCHES.items()}
    values = {
        "tokenizer_class": "BertTokenizer" if usual else "PreTrainedTokenizerFast",
        **({} if usual else general),
        **({} if "normalizer" in dict(settings.components) else switches),
        "model_max_length": model_max_length,
        **{f"{name}_token": token for name, token in settings.special_tokens},
        **({_LISTS[0]: more_special} if more_special else {}),
    }
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"


def _tokenizer_class(folder: pathlib.Path, config: Mapping[str, Any]) -> str:
    """The class that transformers takes for a folder; "" where no file names one."""
    name, source = config.get("tokenizer_class"), CONFIG
    if name is None:
        model, source = object_in(folder / "config.json", finite=False) or {}, "config.json"
        name = model.get("tokenizer_class") or (BERT_CLASSES[0] if model.get("model_type") else "")
    return str(_checked(name, "tokenizer_class", str(folder / source), _is(str), "a text"))


def _read_vocab_txt(folder: pathlib.Path, kind: str) -> list[str]:
    try:
        vocab = read_vocab_file(folder / "vocab.txt")
    except FileNotFoundError:
        what = "has neither tokenizer.json nor vocab.txt"
        raise InputError(f"{folder}: {what}; name a folder that holds one of them") from None
    if kind not in (*BERT_CLASSES, *GENERAL_CLASSES):
        way_out = f"export it as tokenizer.json, or name BertTokenizer in {CONFIG} if BERT's rules are meant"
        raise InputError(
            f"{folder}: tokenizer_class is {short_repr(kind)}, whose rules are not in vocab.txt; {way_out}"
        )
    return vocab


def _read_entries(content: Mapping[str, Any], added: _Added, source: str) -> dict[str, int]:
    """Vocabulary of a tokenizer.json, without words that are only added; those go into ``added``."""
    vocab: dict[str, int] = _checked(content["model"].get("vocab") or {}, "vocab", source, _is(dict), "an object")
    if not {*map(type, vocab.values())} <= {int} or min(vocab.values(), default=0) < 0:
        wrong = next(entry for entry, index in vocab.items() if type(index) is not int or index < 0)
        what = f"the entry {short_repr(wrong)} has the id {short_repr(vocab[wrong])}"
        raise InputError(f"{source}: {what}; it must be a number")
    for token in _checked(content.get("added_tokens") or [], "added_tokens", source, _is(list), "a list"):
        added.add(read_added_word(token, source), token.get("id") if isinstance(token, dict) else None, source)
    return vocab


def _read_special_tokens(
    folder: pathlib.Path, config: Mapping[str, Any], added: _Added, vocab: Mapping[str, int] | list[str]
) -> dict[str, str]:
    """Special tokens by their role; other added words in the files go into ``added``.

    Three generations of transformers: lists and roles in tokenizer_config.json, with "added_tokens_decoder" beside
    them, or with special_tokens_map.json and added_tokens.json in files of their own.
    """
    source, named = str(folder / CONFIG), dict(config)
    decoder = config.get("added_tokens_decoder")
    if decoder is not None:
        for index, token in _checked(decoder, "added_tokens_decoder", source, _is(dict), "an object").items():
            added.add(read_added_word(token, source), index, source)
    else:
        named |= object_in(folder / "special_tokens_map.json") or {}
    roles = {name: named[f"{name}_token"] for name in (*SPECIAL_TOKENS, "bos", "eos") if named.get(f"{name}_token")}
    words = {name: read_added_word(token, source, special=True) for name, token in roles.items()}
    more = []
    for name in _LISTS:
        tokens = _checked(named.get(name) or [], name, source, _is(list, dict), "a list")
        tokens = tokens.values() if isinstance(tokens, dict) else tokens
        more += [read_added_word(token, source, special=True) for token in tokens]
    if decoder is None:
        special = {word.content for word in (*words.values(), *more)}
        for content, index in (object_in(folder / "added_tokens.json") or {}).items():
            plain = special_word(content) if content in special else AddedWord(content)
            added.add(added.words.get(content, plain), index, source)
    for name, word in words.items():
        # BERT has no use for a beginning and an end of texts: they get no new id.
        if name in SPECIAL_TOKENS or word.content in vocab or word.content in added.words:
            added.words.setdefault(word.content, word)
    for word in more:
        added.words.setdefault(word.content, word)
    return {name: word.content for name, word in words.items() if name in SPECIAL_TOKENS}


def _with_ids(vocab: Mapping[str, int] | list[str], added: _Added, source: str) -> tuple[list[str], list[AddedWord]]:
    """Entries that words are cut into, and added words, both in the order of their ids."""
    if isinstance(vocab, list) and len(set(vocab)) < len(vocab):  # from_vocab says which is there twice
        return vocab, []
    ids = dict(vocab) if isinstance(vocab, Mapping) else {entry: index for index, entry in enumerate(vocab)}
    cut = len(ids)
    ids |= {content: index for content, index in added.ids.items() if content not in ids}
    entries = sorted(ids, key=ids.__getitem__)
    for expected, entry in enumerate(entries):
        if ids[entry] != expected:
            what = f"{short_repr(entry)} has id {short_repr(ids[entry])} where {expected} comes next"
            raise InputError(f"{source}: {what}; ids must have no gap")
    words = sorted(added.words.values(), key=lambda word: ids.get(word.content, len(ids)))
    # Added words between the others count as entries: `tokenizers` numbers new words from the vocabulary's end.
    return entries[:cut] if set(entries[:cut]) <= set(vocab) else entries, words


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _counts(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 1 and value == int(value)


def _checked(value: Any, name: str, source: str, fits: Callable[[Any], bool], rule: str) -> Any:
    if not fits(value):
        raise InputError(f"{source}: {name} is {short_repr(value)}; it must be {rule}")
    return value


def object_in(path: pathlib.Path, *, finite: bool = True) -> dict[str, Any] | None:
    """The object in a file; None where there is no file."""
    try:
        return read_object(path, finite=finite)
    except FileNotFoundError:
        return None
