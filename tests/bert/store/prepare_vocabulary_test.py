"""The vocabulary of a prepared folder: given or learnt, and what its settings lose of the text."""

import dataclasses
import gzip
import json
import random

import pytest

from bert.errors import InputError
from bert.store.prepare import PrepareSettings, prepare
from bert.store.reader import Store
from tests.bert.builders import stories


def test_added_tokens_come_behind_the_vocabulary_given_or_learnt(write, vocab, tmp_path):
    """Whole in the text; a folder of before there was such a setting is finished, one with other tokens refused."""
    corpus = write("text/a.txt", stories(5).replace("the ", "[E1] "))
    for name in (vocab, ""):
        out = tmp_path / f"out{len(name)}"
        settings = PrepareSettings(str(corpus), name, 60, validation_share=0)
        before = prepare(out, settings).tokenizer
        manifest = json.loads((out / "manifest.json").read_text())
        assert manifest["settings"].pop("add_tokens") == ""
        del manifest["sha256"]
        (out / "manifest.json").write_text(json.dumps(manifest))
        assert prepare(out, settings).was_finished
        more = dataclasses.replace(settings, add_tokens="[E1],<URL>")
        with pytest.raises(InputError, match=r"add_tokens was '', now '\[E1\]\\n<URL>'"):
            prepare(out, more)
        tokenizer = prepare(out, more, overwrite=True).tokenizer
        if name:
            assert tokenizer.vocab == (*before.vocab, "[E1]", "<URL>")
        assert tokenizer.vocab[-2:] == ("[E1]", "<URL>")
        assert (Store.open(out).shards[0].tokens == tokenizer.vocab_size - 2).sum() == corpus.read_text().count("[E1]")
        assert prepare(out, more).was_finished


def test_a_vocabulary_is_learnt_where_none_is_given(write, tmp_path):
    """The learnt vocabulary is that of the corpus, lower-cased unless told otherwise, and stored with the tokens."""
    corpus = str(write("text/a.txt", stories(30)))
    report = prepare(tmp_path / "out", PrepareSettings(corpus, vocab_size=300)).report
    assert report.unknown_share < 0.01
    tokenizer = Store.open(tmp_path / "out").tokenizer
    assert tokenizer.lower_case
    assert "keeper" in tokenizer.vocab
    prepare(tmp_path / "cased", PrepareSettings(corpus, vocab_size=300, lower_case=False, max_word_chars=5))
    cased = Store.open(tmp_path / "cased").tokenizer
    assert any(entry[:1].isupper() for entry in cased.vocab)
    assert cased.encode("keepers").ids == [cased.unk_id]


def test_a_tokenizer_folder_serves_as_vocabulary(write, vocab, tmp_path):
    """A prepared folder's tokenizer prepares other text with the same ids; contradicting it is refused."""
    corpus = str(write("text/a.txt", stories(3)))
    prepare(tmp_path / "first", PrepareSettings(corpus, vocab))
    prepare(tmp_path / "second", PrepareSettings(corpus, str(tmp_path / "first")))
    first, second = (json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("first", "second"))
    assert first["tokenizer"] == second["tokenizer"]
    for name, wanted, has in (("lower_case", False, True), ("strip_accents", False, True), ("max_word_chars", 7, 100)):
        with pytest.raises(InputError, match=f"{name} is {wanted}.* has {has}"):
            prepare(tmp_path / "third", PrepareSettings(corpus, str(tmp_path / "first"), **{name: wanted}))


def test_the_longest_word_follows_the_folder_where_it_is_not_set(write, vocab, tmp_path):
    """200 in a folder of Google's and in what came of it, else 100; what is noted is the number, so no later run of
    the same settings finds a difference."""
    corpus = str(write("text/a.txt", stories(3)))
    write("vocab/bert_config.json", "{}")
    folder = vocab.removesuffix("/vocab.txt")
    for number, (given, longest) in enumerate(((folder, 200), (str(tmp_path / "0"), 200), (vocab, 100))):
        out = tmp_path / str(number)
        assert prepare(out, PrepareSettings(corpus, given)).tokenizer.settings.max_word_chars == longest
        assert json.loads((out / "manifest.json").read_text())["settings"]["max_word_chars"] == longest
        assert prepare(out, PrepareSettings(corpus, given, max_word_chars=longest)).was_finished


def test_lost_characters_are_counted_and_the_named_setting_brings_them_back(write, tmp_path):
    """One long word in ten is two thirds of the text."""
    rng = random.Random(0)
    long = ["".join(rng.choices("abcdefgh", k=rng.randint(110, 130))) for _ in range(20)]
    corpus = write("text/a.txt", "\n".join(f"The keeper found {word} there, and his lamp." for word in long * 2))
    settings = PrepareSettings(str(corpus), vocab_size=2000, validation_share=0)
    report = prepare(tmp_path / "one", settings).report
    words = sum(map(len, long)) * 2
    assert (report.unknown_characters, report.long_word_characters) == (words, words)
    assert report.characters == words + 40 * len("Thekeeperfoundthere,andhislamp.")
    (notice,) = [one for one in report.notices(settings) if "unknown" in one]
    assert f"set max_word_chars to {max(map(len, long))}" in notice
    longer = dataclasses.replace(settings, max_word_chars=max(map(len, long)))
    assert prepare(tmp_path / "two", longer).report.unknown_characters == 0


def test_letter_case_that_tells_words_apart_is_told_unless_it_was_chosen(write, tmp_path):
    """Chains and rings of molecules differ by letter case alone; a folder found finished tells it as well."""
    rng = random.Random(0)
    rows = ["(".join(rng.choices(["CC", "cc", "N", "n", "CO", "co", "F"], k=6)) for _ in range(300)]
    corpus = write("text/a.txt", "\n".join(rows))
    settings = PrepareSettings(str(corpus), vocab_size=100)
    for _ in range(2):
        notices = prepare(tmp_path / "out", settings).report.notices(settings)
        assert any("set lower_case to False" in notice for notice in notices)
    for chosen in (True, False):
        settings = dataclasses.replace(settings, lower_case=chosen)
        notices = prepare(tmp_path / str(chosen), settings).report.notices(settings)
        assert not any("lower_case" in notice for notice in notices)


def test_marks_lost_with_accents_are_told_unless_it_was_chosen(write, tmp_path):
    """Devanagari's vowel signs are such marks; a cased vocabulary keeps them."""
    corpus = write("text/a.txt", "\u0939\u093f\u0902\u0926\u0940 \u0915\u0941\u091b\n" * 99)
    settings = PrepareSettings(str(corpus), vocab_size=100, deduplicate=False)
    for number, chosen in enumerate(({}, {"strip_accents": True}, {"strip_accents": False}, {"lower_case": False})):
        changed = dataclasses.replace(settings, **chosen)
        notices = prepare(tmp_path / str(number), changed).report.notices(changed)
        assert any("set strip_accents to False" in notice for notice in notices) == (not chosen)


def test_a_packed_file_that_holds_far_more_than_its_size_does_not_all_teach_the_vocabulary(write, tmp_path):
    """Learning stops at twice vocab_megabytes, which is told."""
    corpus = write("text/a.txt.gz", gzip.compress(("word one. word two.\n" * 200_000).encode()))
    settings = PrepareSettings(str(corpus), vocab_size=100, vocab_megabytes=1)
    seen = []
    report = prepare(tmp_path / "out", settings, progress=lambda step, done, _: seen.append((step, done))).report
    assert 2_000_000 <= max(done for step, done in seen if step == "vocabulary") < 2_300_000
    assert any("raise vocab_megabytes" in notice for notice in report.notices(settings))
