"""The rules of a tokenizer.json: ids and offsets of the `tokenizers` library on the same file, or one line."""

import json
import random

import numpy as np
import pytest
import tokenizers

from bert.errors import InputError
from bert.text.tokenize_sections import WordCache
from bert.text.tokenizer import Tokenizer
from tests.bert.text.builders import SPECIAL

LETTERS = "abcABC012,.-()=#@é\u0301Éß中国アग\u0947कкЖπςⅸﬁ\U0001f600|\u00a0\u200b\t\x07\ufffd"
WORDS = ["ab", "ba", "Ab", "abc", "b.c", "12", "中国", "c1", "new york", "ss", "fi"]
SPLIT = {"type": "Split", "pattern": {"Regex": "[a-z]|\\d+"}, "behavior": "Isolated", "invert": False}
WHITESPACE = {"type": "WhitespaceSplit"}
NORMALIZERS = [
    *({"type": kind} for kind in ("Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "StripAccents")),
    {"type": "Strip", "strip_left": True, "strip_right": False},
    {"type": "Replace", "pattern": {"String": "a"}, "content": "bb"},
    {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "},
    {"type": "Prepend", "prepend": "\u2581"},
    {"type": "ByteLevel"},
    {"type": "Lower"},
]
PRE_TOKENIZERS = [
    *(
        {"type": kind}
        for kind in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts", "Punctuation")
    ),
    {"type": "CharDelimiterSplit", "delimiter": "|"},
    *({"type": "Digits", "individual_digits": each} for each in (True, False)),
    {"type": "Punctuation", "behavior": "MergedWithNext"},
    SPLIT,
    {**SPLIT, "behavior": "Removed", "invert": True},
    {"type": "Split", "pattern": {"String": ""}, "behavior": "Isolated", "invert": False},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
    {"type": "FixedLength", "length": 2},
    None,
    7,
    [WHITESPACE],
    {"type": "BertPreTokenizer", "comment": "not a rule"},
]


def plain_file(prefix="##"):
    """A tokenizer.json with BERT's rules."""
    entries = [*SPECIAL, "<unk>", *dict.fromkeys([*LETTERS, *WORDS, *(prefix + word for word in [*LETTERS, *WORDS])])]
    vocab = {entry: index for index, entry in enumerate(dict.fromkeys(entries))}
    frame = [{"SpecialToken": {"id": token, "type_id": 0}} for token in ("[CLS]", "[SEP]")]
    single = [frame[0], {"Sequence": {"id": "A", "type_id": 0}}, frame[1]]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    ids = {token: {"id": token, "ids": [vocab[token]], "tokens": [token]} for token in ("[CLS]", "[SEP]")}
    rules = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": vocab[token], "content": token, **rules} for token in SPECIAL],
        "normalizer": {
            **{"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True},
            **{"strip_accents": None, "lowercase": True},
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": ids},
        "decoder": {"type": "WordPiece", "prefix": prefix, "cleanup": True},
        "model": {
            **{"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix},
            **{"max_input_chars_per_word": 100, "vocab": vocab},
        },
    }


def some_file(rng):
    """A tokenizer.json in which any field may be another."""
    file = plain_file(rng.choice(["##", "##", "##", "@@", "@@", "\u2581", "", "a"]))

    def sometimes(change, chance=0.3):
        if rng.random() < chance:
            change()

    vocab = file["model"]["vocab"]
    for field, values in (
        ("clean_text", [False]),
        ("handle_chinese_chars", [False]),
        ("strip_accents", [True, False]),
        ("lowercase", [False]),
    ):
        sometimes(lambda f=field, v=values: file["normalizer"].update({f: rng.choice(v)}))
    sometimes(lambda: file.update(normalizer=rng.choice([None, *NORMALIZERS])))
    sometimes(lambda: file.update(normalizer={"type": "Sequence", "normalizers": rng.sample(NORMALIZERS[:10], 3)}), 0.2)
    sometimes(lambda: file.update(pre_tokenizer=rng.choice(PRE_TOKENIZERS)), 0.6)
    parts = rng.sample(PRE_TOKENIZERS[:12], 2)
    sometimes(lambda: file.update(pre_tokenizer={"type": "Sequence", "pretokenizers": parts}), 0.2)
    sometimes(lambda: file["model"].update(unk_token=rng.choice(["<unk>", "nowhere"])), 0.2)
    sometimes(lambda: file["model"].update(max_input_chars_per_word=rng.choice([1, 3, 0, 2**70])), 0.2)
    sometimes(lambda: file["model"].update(type=rng.choice(["BPE", "WordLevel"])), 0.05)
    sometimes(lambda: file.update(truncation={"max_length": 3, "strategy": "LongestFirst", "stride": 0,
                                              "direction": "Right"}), 0.2)  # fmt: skip
    sometimes(lambda: file.update(decoder=rng.choice([None, {"type": "ByteLevel"}, {"type": "WordPiece",
              "prefix": "##", "cleanup": False}])), 0.2)  # fmt: skip
    sometimes(lambda: file.update(post_processor=rng.choice([None, {"type": "ByteLevel", "add_prefix_space": True,
              "trim_offsets": True, "use_regex": True}, {"type": "BertProcessing", "sep": ["[SEP]", 3],
              "cls": ["[CLS]", 2]}])), 0.2)  # fmt: skip
    sometimes(lambda: file.update(added_tokens=[]), 0.1)
    for word in rng.sample(["<a>", "New York", "zz", "ab", "Ab"], rng.choice([0, 0, 2, 3])):
        rules = {name: rng.random() < 0.5 for name in ("single_word", "lstrip", "rstrip", "normalized", "special")}
        taken = {token["content"]: token["id"] for token in file["added_tokens"]} | vocab
        new = max(taken.values()) + 1
        file["added_tokens"].append({"id": vocab.get(word, new), "content": word, **rules})
    sometimes(lambda: file["added_tokens"].sort(key=lambda token: token["id"]), 0.9)
    return file


def some_texts(rng, count):
    pieces = [*LETTERS, *WORDS, " ", " ", " ", "  ", "\n", "<a>", "New York", "zz", "[MASK]", "a" * 4, "a" * 101]
    return ["".join(rng.choices(pieces, k=rng.randrange(1, 16))) for _ in range(count)] + ["", " "]


def assert_ids_of_the_library(ours, file, rng, folder):
    """Ids and offsets are the library's: of the tokenizer, saved and read again, and word by word."""
    theirs = tokenizers.Tokenizer.from_str(json.dumps(file))
    theirs.no_truncation()
    texts = some_texts(rng, 30)
    if "[MASK]" not in [token["content"] for token in file["added_tokens"]]:
        texts = [text.replace("[MASK]", "") for text in texts]  # to us the special tokens are always words of their own
    ours.save(folder)
    for one in (ours, Tokenizer.load(folder)):
        assert one.fingerprint == ours.fingerprint
        for text, found in zip(texts, one.encode_batch(texts, special_in_text=True), strict=True):
            expected = theirs.encode(text, add_special_tokens=False)
            assert (found.ids, found.offsets) == (expected.ids, expected.offsets), (text, expected.tokens)
        lines = [" ".join(text.split()) for text in texts]
        for line, words in zip(lines, WordCache(one, special_in_text=True).parts(lines), strict=True):
            assert (
                np.frombuffer(b"".join(words), np.uint16).tolist() == theirs.encode(line, add_special_tokens=False).ids
            )


@pytest.mark.parametrize("count", [100, pytest.param(3000, marks=pytest.mark.slow)])
def test_any_rules_give_the_librarys_ids_or_one_line(tmp_path, count):
    rng, read = random.Random(count), 0
    for _ in range(count):
        file = some_file(rng)
        (tmp_path / "tokenizer.json").write_text(json.dumps(file))
        try:
            ours = Tokenizer.load(tmp_path)
        except InputError as error:
            line = str(error)
        else:
            line = ""
            read += 1
            assert_ids_of_the_library(ours, file, rng, tmp_path / "saved")
        assert not line or (line.startswith(f"{tmp_path}/tokenizer.json: ") and "\n" not in line)
    assert count / 5 < read < count
