"""Rules in the tokenizer.json of a WordPiece model: the `tokenizers` library applies them, or they are refused.

tokenizer_files.py reads its vocabulary and added tokens. Source: the format of `tokenizers`, with its defaults.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from bert.errors import InputError, short_repr
from bert.tokenizer.vocab_file import SPECIAL_TOKENS, upper_case_entries
from bert.tokenizer.wordpiece_model import EMPTY_MODEL, MAX_WORD_CHARS, PREFIX, letter_rules, read_field

# Types that only split and change text. Others write marks of other models into it (Metaspace, ByteLevel, Prepend,
# Precompiled), or fail on values that they accept (FixedLength).
_TYPES = {
    "normalizer": ("BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Replace", "Sequence", "Strip",
                   "StripAccents"),
    "pre_tokenizer": ("BertPreTokenizer", "CharDelimiterSplit", "Digits", "Punctuation", "Sequence", "Split",
                      "UnicodeScripts", "Whitespace", "WhitespaceSplit"),
    "post_processor": ("BertProcessing", "TemplateProcessing"),
    "decoder": ("WordPiece",),
    "model": ("WordPiece",),
}  # fmt: skip
# Fields that files may leave out or set to null, more than the library allows.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "BertNormalizer": {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
    "WordPiece": {key: value for key, value in EMPTY_MODEL.items() if key not in ("type", "vocab")},
}

# Classes of transformers 5 that have BERT's own rules and their switches, and those that take all from tokenizer.json
# ("": no file names one).
BERT_CLASSES = tuple(
    f"{model}Tokenizer{fast}"
    for model in ("Bert", "DistilBert", "Electra", "ConvBert", "MobileBert", "SqueezeBert", "LayoutLM", "Lxmert")
    for fast in ("", "Fast")
)
GENERAL_CLASSES = ("", "PreTrainedTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend")
# Names in the files, by ours.
_NAMES = {"lower_case": "lowercase", "strip_accents": "strip_accents", "split_chinese": "handle_chinese_chars",
          "clean_text": "clean_text", "max_word_chars": "max_input_chars_per_word",
          "prefix": "continuing_subword_prefix"}  # fmt: skip

_BERT_NORMALIZER = ("lower_case", "strip_accents", "split_chinese", "clean_text")
_SORTS = {bool: "true or false", type(None): "true, false or null", str: "a text", int: "a whole number"}


class Rules(NamedTuple):
    """The rules of a tokenizer.json."""

    arguments: dict[str, Any]  # of `WordPiece.from_vocab`
    unknown: str  # the token of unknown words
    post_processor: Any  # its JSON
    unused: tuple[str, ...]  # fields about the lengths of batches


def read_rules(content: Mapping[str, Any], source: str) -> Rules:
    """The rules of a tokenizer.json. Raises InputError where the library, or a BERT of ours, cannot follow them."""
    model = {**_filled(content.get("model"), "model", source), "vocab": {}}
    names = ("normalizer", "pre_tokenizer", "post_processor", "decoder", "truncation", "padding")
    fields = {name: _read(name, content.get(name), source) for name in names}
    model = _read("model", model, source)
    _read("version", content.get("version", "1.0"), source)
    prefix, longest = model["continuing_subword_prefix"], model["max_input_chars_per_word"]
    if not prefix or any(character.isalnum() for character in prefix):
        raise InputError(
            f"{source}: continuing_subword_prefix is {short_repr(prefix)}; it must be a mark without letters and "
            "digits, for it tells which entries continue a word: rename the entries, or train the vocabulary with ##"
        )
    if longest < 1:
        raise InputError(f"{source}: max_input_chars_per_word is {longest}; it must be at least 1, such as 100")
    arguments: dict[str, Any] = {"max_word_chars": longest, "prefix": prefix}
    others: dict[str, Any] = {"pre_tokenizer": {"type": "BertPreTokenizer"}}
    if fields["decoder"]:  # without one, decoding joins pieces all the same
        others["decoder"] = {"type": "WordPiece", "prefix": prefix, "cleanup": True}
    normalizer = fields["normalizer"]
    if normalizer and normalizer["type"] == "BertNormalizer":
        arguments |= {name: normalizer[_NAMES[name]] for name in _BERT_NORMALIZER}
    else:
        arguments["lower_case"], arguments["strip_accents"] = letter_rules(normalizer)
        others["normalizer"] = {}
    arguments["components"] = tuple(
        (name, json.dumps(fields[name], ensure_ascii=False)) for name, usual in others.items() if fields[name] != usual
    )
    unused = tuple(name for name in ("truncation", "padding") if fields[name] is not None)
    return Rules(arguments, model["unk_token"], fields["post_processor"], unused)


def decide(
    rules: Rules, special: dict[str, str], switches: Mapping[str, bool], kind: str, source: str
) -> dict[str, Any]:
    """Arguments of `WordPiece.from_vocab`, decided between tokenizer.json and tokenizer_config.json.

    Args:
      special: special tokens by role that files name; the token of unknown words is added.
      switches: values in tokenizer_config.json, by our names.
      kind: the class of the tokenizer.
    """
    arguments = dict(rules.arguments)
    if rules.unused:
        logging.info(
            "%s: %s not applied, as in transformers; the settings and the model's positions decide where texts are cut",
            *(source, " and ".join(rules.unused)),
        )
    if kind in BERT_CLASSES:
        if "normalizer" not in dict(arguments["components"]):
            arguments |= switches
        usual: dict[str, Any] = {"lower_case": True, "strip_accents": None, "split_chinese": True, **switches}
        usual |= {"clean_text": True, "max_word_chars": MAX_WORD_CHARS, "prefix": PREFIX}
        differ = [_NAMES[name] for name in usual if name in arguments and not _agree(arguments, usual, name)]
        differ += [name for name, _ in arguments["components"]]
        if "unk" not in special and rules.unknown != SPECIAL_TOKENS["unk"]:
            differ.append("unk_token")
        special.setdefault("unk", rules.unknown)
        if differ:
            logging.warning(
                "%s: its %s counts here, while transformers' %s has BERT's own rules; for equal ids there, name "
                "PreTrainedTokenizerFast as tokenizer_class in tokenizer_config.json",
                *(source, ", ".join(differ), kind),
            )
        return arguments
    unused = [_NAMES[name] for name in switches if not _agree(arguments, switches, name)]
    unused += ["unk_token"] * (special.get("unk", rules.unknown) != rules.unknown)
    special["unk"] = rules.unknown
    if unused:
        logging.warning(
            "%s counts: what tokenizer_config.json says otherwise of %s is not used, as in transformers with "
            "tokenizer_class %s; name BertTokenizer there if it is to count",
            *(source, ", ".join(unused), short_repr(kind)),
        )
    if kind not in GENERAL_CLASSES:
        message = "%s counts: tokenizer_class is %s, and what else that class does is not known here"
        logging.warning(message, source, short_repr(kind))
    return arguments


def decide_case(entries: Sequence[str], source: str) -> bool:
    """Whether to lower-case for a vocab.txt of a class of BERT's, where tokenizer_config.json has no do_lower_case."""
    cased = upper_case_entries(entries)
    if cased:
        logging.warning(
            "%s has entries in upper case (such as %s), so texts keep their letter case; transformers lower-cases them "
            "unless tokenizer_config.json has a do_lower_case: write one there",
            *(source, short_repr(cased[0])),
        )
    return not cased


def check_frame(rules: Rules, special: Mapping[str, str], entries: Sequence[str], source: str) -> None:
    """Raises InputError for a post_processor that makes other texts than [CLS] A [SEP] B [SEP]; warns where none is.

    special: special tokens by role, where they are not the usual ones.
    """
    cls, sep = (special.get(name, SPECIAL_TOKENS[name]) for name in ("cls", "sep"))
    if rules.post_processor is None:
        logging.warning("%s: no post_processor; texts become %r A %r B %r all the same", source, cls, sep, sep)
        return
    ids = [(token, entries.index(token)) for token in (cls, sep) if token in entries]
    if len(ids) == 2 and not _frames_as_bert(rules.post_processor, *ids):
        raise InputError(
            f"{source}: post_processor is {short_repr(rules.post_processor)}; BERT's is {cls!r} A {sep!r} B {sep!r} "
            "with the ids of the vocabulary, B and what follows being segment 1: write it so, or null"
        )


def _agree(arguments: Mapping[str, Any], others: Mapping[str, Any], name: str) -> bool:
    """Whether both have the same value of an argument. Accents follow the letter case where they are not set."""
    value, other = (
        each["lower_case"] if name == "strip_accents" and each.get(name) is None else each.get(name)
        for each in (arguments, others)
    )
    return value == other


def _frames_as_bert(post_processor: Any, cls: tuple[str, int], sep: tuple[str, int]) -> bool:
    """Whether it makes [CLS] A [SEP] and [CLS] A [SEP] B [SEP], B and what follows being segment 1."""
    if post_processor["type"] == "BertProcessing":
        return bool(post_processor["cls"] == [*cls] and post_processor["sep"] == [*sep])
    ids = {name: token["ids"] for name, token in post_processor["special_tokens"].items()}

    def read(template: list[dict[str, Any]]) -> list[tuple[Any, int]]:
        parts = [item for part in template for item in part.items()]
        return [(ids.get(p["id"]) if kind == "SpecialToken" else p["id"], p["type_id"]) for kind, p in parts]

    single = [([cls[1]], 0), ("A", 0), ([sep[1]], 0)]
    pair = [*single, ("B", 1), ([sep[1]], 1)]
    return read(post_processor["single"]) == single and read(post_processor["pair"]) == pair


def _read(name: str, value: Any, source: str) -> Any:
    """A field as the library understands it."""
    if name in _TYPES and value is not None:
        value = _filled(value, name, source)
    try:
        return read_field(name, value)
    except InputError as error:
        raise InputError(
            f"{source}: {name} is {short_repr(value)}, which `tokenizers` refuses ({error}); correct it, or remove "
            "the file and give the vocabulary as vocab.txt"
        ) from None


def _filled(value: Any, name: str, source: str) -> dict[str, Any]:
    """The value with what it may leave out; its type and the types of its parts are checked."""
    if not isinstance(value, dict):
        raise InputError(f"{source}: {name} is {short_repr(value)}; it must be an object")
    kind = value.get("type", "WordPiece" if name == "model" else None)
    if kind not in _TYPES[name]:
        raise InputError(
            f"{source}: not a BERT tokenizer ({name} {short_repr(kind)}); the type must be "
            f"{' or '.join(_TYPES[name])}: train one so, or give the vocabulary as vocab.txt without this file"
        )
    parts = value.get({"normalizer": "normalizers", "pre_tokenizer": "pretokenizers"}.get(name, ""))
    if kind == "Sequence" and isinstance(parts, list):
        for part in parts:
            _filled(part, name, source)
    usual = _DEFAULTS.get(kind, {}) if name in ("normalizer", "model") else {}
    filled = {"type": kind, **usual, **{key: item for key, item in value.items() if item is not None}}
    for key, default in usual.items():
        item = filled[key]
        if item is not default and not isinstance(item, bool if default is None else type(default)):
            raise InputError(f"{source}: {key} is {short_repr(item)}; it must be {_SORTS[type(default)]}")
    return filled
