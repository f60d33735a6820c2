"""Tokenizers' folders: ids and offsets are those of transformers, from another's folder and from what we save."""

import json
import random

import pytest

from bert.tokenizer.added_words import AddedWord, protected_word, words_of
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.builders import SPECIAL

PIECES = "a ##a s ##s x y new ##word foo bar naive cov ##id e ##1 1 < > [ ] -"
ENTRIES = [*SPECIAL, *PIECES.split()]
TEXTS = [
    *("a [E1] x [/E1] b [e1]", "<E1>x", "x<e1>y", "a <sep2> b x<sep2>y", "x  <sep2>  y", "newword newwords anewword"),
    *("NewWord newwords [MASK]newword", "foo bar Foo Bar foo  bar FOO BAR", "COVID-19 covid-19 xCOVID-19y"),
    *("na\u00efve naive NAI\u0308VE", "[mask] [MASK][SEP]", "a [MASK]  b", "<mask> <pad>", "##s as", "   ", ""),
]


def added(content, **rules):
    return {"content": content, "special": False, "normalized": True, **rules}


# What is added, and roles (mask_token, ...) if not the usual ones.
SOURCES = {
    "special in upper case": ([added("[E1]", special=True, normalized=False)], {}),
    "special in lower case": ([added("<e1>", special=True, normalized=False)], {}),
    "special and normalized": ([added("[E1]", special=True)], {}),
    "single word": ([added("<sep2>", normalized=False, single_word=True)], {}),
    "blanks along": ([added("<sep2>", lstrip=True, rstrip=True)], {}),
    "one side": ([added("<sep2>", lstrip=True), added("[e1]", rstrip=True, normalized=False)], {}),
    "words": ([added("newword"), added("Foo Bar"), added("COVID-19"), added("na\u00efve")], {}),
    "a single word": ([added("newword", single_word=True)], {}),
    "as they are written": ([added("newword", normalized=False), added("Foo Bar", normalized=False)], {}),
    "an entry": ([added("naive", single_word=True), added("##s", normalized=False)], {}),
    "roles": ([], {"mask_token": "<mask>", "pad_token": "<pad>"}),
    "blanks before the mask": ([added("[MASK]", special=True, normalized=False, lstrip=True)], {}),
}


@pytest.fixture
def source(tmp_path):
    """source(name, lower_case) -> a folder with these added words, saved by transformers."""
    transformers = pytest.importorskip("transformers")

    def make(name, lower_case=True):
        tokens, roles = SOURCES[name]
        WordPiece.from_vocab(ENTRIES, lower_case=lower_case).save(tmp_path / "plain")
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "plain", **roles)
        if tokens and tokens[0]["content"] == "[MASK]":
            theirs.add_special_tokens({"mask_token": transformers.AddedToken(**tokens[0])})
        special = [transformers.AddedToken(**token) for token in tokens if token["special"]]
        theirs.add_special_tokens({"extra_special_tokens": special})
        theirs.add_tokens([transformers.AddedToken(**token) for token in tokens if not token["special"]])
        theirs.save_pretrained(tmp_path / "source")
        return tmp_path / "source"

    return make


def texts_of(name):
    """The texts above, and random ones of the same pieces in any order."""
    rng = random.Random(0)
    pieces = [" ", "  ", "_", "9", ".", "x", "S", "[MASK]", "\u00e9", "\u4e2d", "\u200b", "\n", "foo", "<mask>"]
    pieces += [form for token in SOURCES[name][0] for form in (token["content"], token["content"].swapcase())] * 3
    return TEXTS + ["".join(rng.choices(pieces, k=rng.randrange(1, 12))) for _ in range(300)]


def assert_same_as_in_transformers(folder, texts, tmp_path):
    """Ids and offsets of transformers on the folder, of ours, and of both on what we save."""
    transformers = pytest.importorskip("transformers")
    ours = load_tokenizer(folder)
    ours.save(tmp_path / "saved")
    again = load_tokenizer(tmp_path / "saved")
    theirs, saved = (transformers.AutoTokenizer.from_pretrained(path) for path in (folder, tmp_path / "saved"))
    assert again.fingerprint == ours.fingerprint
    assert theirs.get_vocab() == saved.get_vocab() == {entry: i for i, entry in enumerate(ours.vocab)}
    assert set(theirs.all_special_ids) <= set(ours.special_ids) == set(saved.all_special_ids)
    for text in texts:
        expected = theirs(text, return_offsets_mapping=True, add_special_tokens=False)
        found = saved(text, return_offsets_mapping=True, add_special_tokens=False)
        assert (found["input_ids"], found["offset_mapping"]) == (expected["input_ids"], expected["offset_mapping"]), (
            text
        )
        for one in (ours, again):
            encoded = one.encode(text, special_in_text=True)
            assert (encoded.ids, encoded.offsets) == (expected["input_ids"], expected["offset_mapping"]), text
    return ours


@pytest.mark.parametrize("lower_case", [True, False])
@pytest.mark.parametrize("name", SOURCES)
def test_added_words_are_found_as_in_transformers(source, tmp_path, name, lower_case):
    """Letter case, blanks, neighbours: each rule by which a word is found, from the source and when saved again."""
    assert_same_as_in_transformers(source(name, lower_case), texts_of(name), tmp_path)


def test_words_of_files_with_a_decoder(tmp_path):
    """transformers 4.34 and later wrote the words into tokenizer_config.json; they count before tokenizer.json."""
    WordPiece.from_vocab(ENTRIES, lower_case=True, added=[AddedWord("[E1]"), AddedWord("newword")]).save(tmp_path / "a")
    path = tmp_path / "a" / "tokenizer_config.json"
    decoder = {
        len(ENTRIES): added("[E1]", special=True, normalized=False),
        len(ENTRIES) + 1: added("newword", single_word=True),
    }
    decoder = {**{i: added(token, special=True, normalized=False) for i, token in enumerate(SPECIAL)}, **decoder}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"added_tokens_decoder": decoder}))
    ours = assert_same_as_in_transformers(tmp_path / "a", TEXTS, tmp_path)
    assert ours.settings.added == (AddedWord("[E1]", special=True, normalized=False),)
    assert ours.settings.protected == ("newword",)


def test_words_of_the_oldest_files(tmp_path):
    """vocab.txt, added_tokens.json and special_tokens_map.json, as transformers 4 wrote them beside one another."""
    (tmp_path / "vocab.txt").write_text("\n".join([*ENTRIES, ""]))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"[E1]": len(ENTRIES), "newword": len(ENTRIES) + 1}))
    mask = {"content": "[MASK]", "single_word": False, "lstrip": True, "rstrip": False, "normalized": False}
    names = {"mask_token": mask, "cls_token": "[CLS]", "additional_special_tokens": ["[E1]"]}
    (tmp_path / "special_tokens_map.json").write_text(json.dumps(names))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    ours = load_tokenizer(tmp_path)
    assert ours.vocab == (*ENTRIES, "[E1]", "newword")
    assert set(ours.settings.added) == {
        AddedWord("[MASK]", special=True, normalized=False, lstrip=True),
        AddedWord("[E1]", special=True, normalized=False),
        AddedWord("newword"),
    }
    ours.save(tmp_path / "saved")
    assert_same_as_in_transformers(tmp_path / "saved", TEXTS, tmp_path)


def test_added_words_are_no_reason_to_warn(source, caplog):
    """Words in upper case that are found all the same: nothing is said of entries that can never be met."""
    load_tokenizer(source("words"))
    assert not caplog.records


def test_special_tokens_in_the_text_are_split_and_other_added_words_are_not(source, tmp_path):
    """What the corpus setting means: [MASK] is text like any other, while a marker of somebody's own is kept."""
    ours = load_tokenizer(source("special in upper case"))
    mark = len(ENTRIES)
    split = ours.encode("[MASK] [E1]").ids
    assert split[-1] == mark
    assert ours.mask_id not in split
    assert ours.encode("[MASK] [E1]", special_in_text=True).ids == [ours.mask_id, mark]
    assert mark in ours.special_ids
    assert mark not in ours.replacement_ids
    assert ours.decode([mark, 5], skip_special=True) == "a"


def test_the_fingerprint_covers_every_rule(tmp_path):
    """Two tokenizers that differ in one rule of one word are not the same, nor is one that knows it as an entry."""
    rules = ({}, {"special": True}, {"normalized": False}, {"single_word": True}, {"lstrip": True}, {"rstrip": True})
    made = [WordPiece.from_vocab(ENTRIES, lower_case=True, added=[AddedWord("<e1>", **rule)]) for rule in rules]
    made.append(WordPiece.from_vocab([*ENTRIES, "<e1>"], lower_case=True, added=[AddedWord("<e1>")]))
    assert len({one.fingerprint for one in made}) == len(made)


@pytest.mark.parametrize("lower_case", [True, False])
def test_tokens_are_added_as_by_transformers(tmp_path, lower_case):
    """`add_tokens` with plain texts: the same ids, in other letter case and inside of other words; saved, too."""
    transformers = pytest.importorskip("transformers")
    tokens = ["[E1]", "<URL>", "graft", "new york"]
    ours = WordPiece.from_vocab(ENTRIES, lower_case=lower_case)
    ours.save(tmp_path / "before")
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path / "before")
    theirs.add_tokens(tokens)
    ours = ours.add_words(words_of(",".join(tokens)))
    ours.save(tmp_path / "after")
    saved = transformers.AutoTokenizer.from_pretrained(tmp_path / "after")
    assert theirs.get_vocab() == saved.get_vocab() == {entry: i for i, entry in enumerate(ours.vocab)}
    again = load_tokenizer(tmp_path / "after")
    for text in (*TEXTS, "a [E1]b [e1]", "<URL><url>grafting Graft", "New York new  york", "[MASK] [E1]"):
        wanted = theirs(text, add_special_tokens=False)["input_ids"]
        assert saved(text, add_special_tokens=False)["input_ids"] == wanted, text
        for one in (ours, again):
            assert one.encode(text, special_in_text=True).ids == wanted, text


def test_protecting_words_beside_added_ones(source, tmp_path):
    """New words get the next ids, stay whole, and are saved; an added word of the same text keeps its rules."""
    ours = load_tokenizer(source("words")).add_words(map(protected_word, ["graft", "newword"]))
    ours.save(tmp_path / "saved")
    for one in (ours, load_tokenizer(tmp_path / "saved")):
        assert [one.vocab[i] for i in one.encode("Graft newword Foo Bar").ids] == ["graft", "newword", "Foo Bar"]
        assert one.vocab[one.encode("newwords").ids[0]] == "newword"  # cut out of it, as before
        assert one.fingerprint == ours.fingerprint


@pytest.mark.parametrize("model_type", ["bert", None])
def test_long_words_are_cut_by_transformers_as_well(tmp_path, model_type):
    """Another limit than 100 reaches AutoTokenizer, which else imposes 100 on BERT, with segments and added words."""
    transformers = pytest.importorskip("transformers")
    marks = [AddedWord("[E1]", special=True, normalized=False), AddedWord("<sep2>", single_word=True, lstrip=True)]
    ours = WordPiece.from_vocab(ENTRIES, lower_case=True, max_word_chars=200, added=marks)
    ours.save(tmp_path)
    if model_type:
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    for text in (*TEXTS, "a" * 101, "A" * 200, "a" * 201):
        assert theirs(text, add_special_tokens=False)["input_ids"] == ours.encode(text, special_in_text=True).ids
    pair = theirs("a", "s")
    assert pair["token_type_ids"] == [0, 0, 0, 1, 1]
    assert pair["input_ids"] == [2, 5, 3, 7, 3]
    assert (theirs.mask_token_id, theirs.model_max_length) == (4, 512)
    assert load_tokenizer(tmp_path).fingerprint == ours.fingerprint
    theirs.save_pretrained(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").fingerprint == ours.fingerprint


CLASSES = [None, "BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "PreTrainedTokenizerFast",
           "TokenizersBackend", "NobodysTokenizer", "RobertaTokenizer"]  # fmt: skip
SWITCHES = {"do_lower_case": [None, True, False], "strip_accents": [None, True, False],
            "tokenize_chinese_chars": [None, True, False]}  # fmt: skip


@pytest.mark.parametrize("count", [40, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("tokenizer_class", CLASSES)
def test_the_file_that_counts_in_transformers_counts_or_a_line_is_logged(tmp_path, caplog, tokenizer_class, count):
    """Random contradictions of tokenizer.json, tokenizer_config.json, special_tokens_map.json and config.json."""
    transformers = pytest.importorskip("transformers")
    rng = random.Random(f"{tokenizer_class} {count}")
    texts = ["Naïve naive 中国 a,x", "S foo Bar", "ma <mask> [MASK] ss sz", "a\x07b", "COVID 1", "y" * 101]
    entries = [*ENTRIES, "Naïve", "naïve", "Naive", "中国", "中", "国", "Bar", "S", "ma", "<mask>", "<unk>", "##y"]
    silent = 0
    for _ in range(count):
        for path in tmp_path.glob("*"):
            path.unlink()
        choices = {"lower_case": rng.random() < 0.5, "split_chinese": rng.random() < 0.7}
        made = WordPiece.from_vocab(entries, strip_accents=rng.choice([None, True, False]), **choices)
        made.save(tmp_path)
        (tmp_path / "vocab.txt").unlink()
        rules = json.loads((tmp_path / "tokenizer.json").read_text())
        if rng.random() < 0.3:
            rules["model"]["unk_token"] = "<unk>"
        if rng.random() < 0.3:
            rules["normalizer"]["clean_text"] = False
        if rng.random() < 0.3:
            rules["model"]["max_input_chars_per_word"] = 200
        if rng.random() < 0.3:
            rules["pre_tokenizer"] = rng.choice([None, {"type": "WhitespaceSplit"}])
        (tmp_path / "tokenizer.json").write_text(json.dumps(rules))
        config = {name: rng.choice(values) for name, values in SWITCHES.items()}
        config = {name: value for name, value in config.items() if value is not None}
        if tokenizer_class:
            config["tokenizer_class"] = tokenizer_class
        others = {"mask_token": "<mask>", "unk_token": "<unk>", "model_max_length": 7}
        config |= {name: value for name, value in others.items() if rng.random() < 0.3}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        if rng.random() < 0.3:
            roles = {"mask_token": rng.choice(["<mask>", "[MASK]"])}
            (tmp_path / "special_tokens_map.json").write_text(json.dumps(roles))
        if rng.random() < 0.5:
            (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
        caplog.clear()
        ours = load_tokenizer(tmp_path)
        lines = [line for line in caplog.messages if "can never be met" not in line]
        if lines:
            assert all(str(tmp_path) in line for line in lines)
            continue
        silent += 1
        theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
        for text in texts:
            ids = theirs(text, add_special_tokens=False)["input_ids"]
            assert ours.encode(text, special_in_text=True).ids == ids, (text, config, theirs.convert_ids_to_tokens(ids))
        assert theirs.mask_token_id in (ours.mask_id, None)
        assert ours.model_max_length == config.get("model_max_length", 512)
    assert silent > 0 or tokenizer_class in CLASSES[-2:]
