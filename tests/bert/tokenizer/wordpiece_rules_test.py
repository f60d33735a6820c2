"""The rules of a tokenizer.json: ids and offsets of the `tokenizers` library on the same file, or one line."""

import json
import random

import numpy as np
import pytest
import tokenizers

from bert.corpus.layout import SENTENCES
from bert.errors import InputError
from bert.prediction.fill_mask import FilledMasks
from bert.store.tokenize_sections import WordCache, start_tokenizing, tokenize_sections
from bert.tokenizer.added_words import AddedWord
from bert.tokenizer.backends import load_tokenizer
from tests.bert.builders import SPECIAL

LETTERS = "abcABC012,.-()=#@é\u0301Éß中国アग\u0947कкЖπςⅸﬁ\U0001f600|\u00a0\u200b\t\x07\ufffd"
WORDS = ["ab", "ba", "Ab", "abc", "b.c", "12", "中国", "c1", "new york", "ss", "fi"]
SPLIT = {"type": "Split", "pattern": {"Regex": "[a-z]|\\d+"}, "behavior": "Isolated", "invert": False}
TRUNCATION = {"max_length": 1, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}
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
    *({"type": kind} for kind in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "UnicodeScripts")),
    {"type": "Punctuation"},
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
    sometimes(lambda: file.update(truncation=TRUNCATION), 0.2)
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
    for one in (ours, load_tokenizer(folder)):
        assert one.fingerprint == ours.fingerprint
        for text, found in zip(texts, one.encode_batch(texts, special_in_text=True), strict=True):
            expected = theirs.encode(text, add_special_tokens=False)
            assert (found.ids, found.offsets) == (expected.ids, expected.offsets), (text, expected.tokens)
        lines = [" ".join(text.split()) for text in texts]
        for line, words in zip(lines, WordCache(one, special_in_text=True).parts(lines)[0], strict=True):
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
            ours = load_tokenizer(tmp_path)
        except InputError as error:
            line = str(error)
        else:
            line = ""
            read += 1
            assert_ids_of_the_library(ours, file, rng, tmp_path / "saved")
        assert not line or (line.startswith(f"{tmp_path}/tokenizer.json: ") and "\n" not in line)
    assert count / 5 < read < count


def write(folder, **changes):
    """A tokenizer.json with BERT's rules but for these fields; those of the model as "model.unk_token"."""
    file = plain_file(changes.get("model.continuing_subword_prefix", "##"))
    for name, value in changes.items():
        place, _, field = name.rpartition(".")
        (file[place] if place else file)[field] = value
    (folder / "tokenizer.json").write_text(json.dumps(file))
    return file


@pytest.mark.parametrize(
    ("changes", "text", "pieces"),
    [
        ({"pre_tokenizer": WHITESPACE}, "b.c c1", ["b.c", "c1"]),
        ({}, "b.c c1", ["b", ".", "c", "c1"]),
        ({"pre_tokenizer": {"type": "CharDelimiterSplit", "delimiter": "|"}}, "ab|new york", ["ab", "new york"]),
        ({"pre_tokenizer": {"type": "Digits", "individual_digits": True}}, "12", ["1", "2"]),
        ({"pre_tokenizer": None}, "new york", ["new york"]),
        ({"model.continuing_subword_prefix": "@@"}, "abba", ["ab", "@@ba"]),
        ({"model.unk_token": "<unk>"}, "\u4e8c", ["<unk>"]),
        ({"model.max_input_chars_per_word": 3}, "abba", ["[UNK]"]),
        ({"normalizer.clean_text": False}, "a\x07", ["a", "##\x07"]),
        ({"normalizer": {"type": "NFKC"}}, "\ufb01", ["fi"]),
        ({"truncation": TRUNCATION}, "a b", ["a", "b"]),
    ],
)
def test_each_rule_decides_the_pieces(tmp_path, changes, text, pieces):
    write(tmp_path, **changes)
    ours = load_tokenizer(tmp_path)
    assert [ours.vocab[i] for i in ours.encode(text).ids] == pieces


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model.continuing_subword_prefix": ""}, ["continuing_subword_prefix", "''"]),
        ({"model.continuing_subword_prefix": "a"}, ["continuing_subword_prefix", "'a'"]),
        ({"model.max_input_chars_per_word": 2**70}, ["max_input_chars_per_word", "1180591620717411303424"]),
        ({"model.unk_token": 7}, ["unk_token", "7"]),
        ({"model.type": "Unigram"}, ["model", "'Unigram'"]),
        ({"model": []}, ["model", "[]"]),
        ({"model.vocab": {"a": 1.5}}, ["'a'", "1.5"]),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, ["pre_tokenizer", "'ByteLevel'"]),
        ({"pre_tokenizer": {"type": "CharDelimiterSplit", "delimiter": "||"}}, ["pre_tokenizer", "||"]),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(("}, "behavior": "Removed", "invert": False}},
         ["pre_tokenizer", "parenthesis"]),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, ["normalizer", "'Precompiled'"]),
        ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "x"}]}}, ["'Prepend'"]),
        ({"normalizer.lowercase": "yes"}, ["lowercase", "'yes'"]),
        ({"decoder": {"type": "ByteLevel"}}, ["decoder", "'ByteLevel'"]),
        ({"post_processor": {"type": "RobertaProcessing"}}, ["post_processor", "'RobertaProcessing'"]),
        ({"post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 9], "cls": ["[CLS]", 2]}}, ["post_processor"]),
        ({"post_processor.single": []}, ["post_processor"]),
        ({"truncation": 7}, ["truncation", "7"]),
        ({"padding": {"strategy": "?"}}, ["padding", "?"]),
        ({"version": "2.0"}, ["version", "2.0"]),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_refused_by_field_and_value(tmp_path, changes, words):
    write(tmp_path, **changes)
    with pytest.raises(InputError) as caught:
        load_tokenizer(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'tokenizer.json'}: ")
    assert all(word in str(caught.value) for word in words), caught.value
    assert "\n" not in str(caught.value)


def test_pieces_continue_a_word_by_the_prefix_of_the_file(tmp_path):
    """Whole words are masked, and masks are filled, by the mark of the vocabulary."""
    write(tmp_path, **{"model.continuing_subword_prefix": "@@"})
    ours = load_tokenizer(tmp_path)
    found = ours.encode("abba ab")
    assert ours.continues_word_V[found.ids].tolist() == [False, True, False]
    assert ours.decode(found.ids) == "abba ab"
    logits = np.eye(ours.vocab_size, dtype=np.float32)[[found.ids[1]]]
    assert FilledMasks("ab[MASK]", [(2, 8)], logits, ours).filled() == "abba"


def test_words_of_a_sentence_with_rules_of_its_own(tmp_path):
    """Boundaries of words between blanks are found where a rule looks across blanks."""
    write(tmp_path, pre_tokenizer={"type": "CharDelimiterSplit", "delimiter": "|"})
    start_tokenizing(load_tokenizer(tmp_path), "en", False, True)
    for text, continues in (("ab|ba ab|ba", [False, True, False]), ("ab|ba|new york|ab", [False, True, True, False])):
        assert tokenize_sections([(text, SENTENCES)]).continues.tolist() == continues, text


def test_a_pattern_that_takes_too_long_ends_in_a_line(tmp_path):
    write(tmp_path, pre_tokenizer={**SPLIT, "pattern": {"Regex": "^(a+)+$"}})
    ours = load_tokenizer(tmp_path)
    for encode in (ours.encode_ids, ours.encode_batch):
        assert len(encode(["ab"])) == 1
        with pytest.raises(InputError, match="pattern"):
            encode(["a" * 40 + "!"])


def test_added_words_that_become_one_are_refused(tmp_path):
    """The library would give "ab" one of the two ids, another one in each process."""
    file = write(tmp_path)
    rules = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    words = [{"id": file["model"]["vocab"][word], "content": word, **rules} for word in ("ab", "Ab")]
    write(tmp_path, added_tokens=file["added_tokens"] + words)
    with pytest.raises(InputError, match=r"tokenizer\.json: .*'ab'.*'Ab'"):
        load_tokenizer(tmp_path)
    write(tmp_path, added_tokens=file["added_tokens"] + [words[0], {**words[1], "normalized": False}])
    ours = load_tokenizer(tmp_path)
    assert [ours.vocab[i] for i in ours.encode("ab Ab").ids] == ["ab", "Ab"]
    with pytest.raises(InputError, match=r"'graft'.*'Graft'"):
        ours.add_words([AddedWord("graft"), AddedWord("Graft")])


@pytest.mark.parametrize(
    ("config", "rules", "word"),
    [
        ({"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False}, {}, "lowercase"),
        ({"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}, {}, "unk_token"),
        ({"tokenizer_class": "PreTrainedTokenizerFast"}, {"post_processor": None}, "post_processor"),
        ({"tokenizer_class": "BertTokenizer"}, {"pre_tokenizer": WHITESPACE}, "pre_tokenizer"),
        ({"tokenizer_class": "BertTokenizer"}, {"normalizer.lowercase": False}, "lowercase"),
        ({"tokenizer_class": "BertTokenizer"}, {"model.max_input_chars_per_word": 200}, "max_input_chars_per_word"),
        ({"tokenizer_class": "RobertaTokenizer"}, {}, "RobertaTokenizer"),
        ({"tokenizer_class": "BertTokenizer"}, {}, None),
        ({"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": True}, {}, None),
        ({"tokenizer_class": "BertTokenizer", "do_lower_case": False}, {}, None),
    ],
)
def test_contradictions_that_transformers_decides_otherwise_are_logged(tmp_path, caplog, config, rules, word):
    """One line with the file and what it is about; none where the files agree."""
    write(tmp_path, **rules)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    load_tokenizer(tmp_path)
    lines = [line for line in caplog.messages if "can never be met" not in line]
    assert len(lines) == (word is not None)
    assert not lines or (str(tmp_path) in lines[0] and word in lines[0])


def test_a_vocabulary_without_a_do_lower_case_and_one_of_another_class(tmp_path, caplog):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "a", "Ab"]))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    assert not load_tokenizer(tmp_path).lower_case
    assert "do_lower_case" in caplog.text
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertJapaneseTokenizer"}))
    with pytest.raises(InputError, match="'BertJapaneseTokenizer'"):
        load_tokenizer(tmp_path)
