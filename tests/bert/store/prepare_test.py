import dataclasses
import itertools
import json
import os
import pathlib
import re
import tracemalloc

import numpy as np
import pytest

from bert.corpus import layout, text_files
from bert.errors import InputError
from bert.store import prepare as prepare_module
from bert.store import writer
from bert.store.prepare import PrepareSettings, prepare
from bert.store.reader import Store
from tests.bert.builders import SPECIAL, WORDS, bytes_of, stories, story


def documents_of(folder, split):
    """Every document of a split as the tuple of its token ids."""
    found = []
    for shard in Store.open(folder, split, verify=True).shards:
        starts = [0, *shard.document_ends[:-1]]
        found += [tuple(shard.tokens[s:e].tolist()) for s, e in zip(starts, shard.document_ends, strict=True)]
    return found


def test_tokens_are_those_of_the_sentences(write, vocab, tmp_path):
    """What is stored is each sentence's ids, in order, without [CLS] and [SEP]; counts add up."""
    corpus = write("text/a.txt", stories(5))
    report = prepare(tmp_path / "out", PrepareSettings(str(corpus), vocab, validation_share=0)).report
    store = Store.open(tmp_path / "out")
    texts = [line for line in corpus.read_text().split("\n") if line]
    ids = [one.ids for one in store.tokenizer.encode_batch(texts)]
    assert store.read([0], [store.num_tokens]).tolist() == [token for sentence in ids for token in sentence]
    assert store.shards[0].sentence_ends.tolist() == np.cumsum([len(sentence) for sentence in ids]).tolist()
    assert (report.read, report.kept, report.sentences, report.tokens) == (5, 5, 30, store.num_tokens)
    assert report.unknown_tokens == 0


def test_the_number_of_workers_and_a_second_run_change_no_byte(write, vocab, tmp_path, monkeypatch):
    """One worker and four give the same files, manifest included; so does the same run again."""
    monkeypatch.setattr(prepare_module, "TASK_CHARS", 2000)
    corpus = write("text/a.txt", stories(60))
    settings = PrepareSettings(str(corpus), vocab, validation_share=0.2, shard_tokens=700)
    for name, workers in (("one", 1), ("four", 4), ("again", 1)):
        prepare(tmp_path / name, settings, workers=workers)
    first = bytes_of(tmp_path / "one")
    assert len([name for name in first if name.endswith(".tokens")]) > 3
    assert bytes_of(tmp_path / "four") == first
    assert bytes_of(tmp_path / "again") == first


def test_held_out_documents_are_chosen_by_their_text(write, vocab, tmp_path):
    """Every document is in one split; equal documents are never in both; another seed holds out others."""
    text = "\n".join([stories(200, 3), stories(200, 3)])
    corpus = write("text/a.txt", text)
    held = []
    for seed in (0, 1):
        settings = PrepareSettings(str(corpus), vocab, validation_share=0.25, deduplicate=False, seed=seed)
        report = prepare(tmp_path / f"out{seed}", settings).report
        train, validation = (documents_of(tmp_path / f"out{seed}", split) for split in ("train", "validation"))
        assert len(train) + len(validation) == report.kept == 400
        assert not set(train) & set(validation)
        assert 0.15 < report.validation_documents / 400 < 0.35
        held.append(set(validation))
    assert held[0] != held[1]


def test_duplicates_are_dropped_and_counted(write, vocab, tmp_path):
    """The first of several equal documents stays; kept, dropped and empty ones add up to those read."""
    text = "\n".join([stories(4), story(1, 6), story(1, 6), "\u200b\n\u200b\n", story(9, 2)])
    corpus = write("text/a.txt", text)
    report = prepare(tmp_path / "out", PrepareSettings(str(corpus), vocab)).report
    assert (report.read, report.duplicates, report.empty, report.kept) == (8, 2, 1, 5)
    kept = prepare(tmp_path / "all", PrepareSettings(str(corpus), vocab, deduplicate=False)).report
    assert (kept.read, kept.duplicates, kept.empty, kept.kept) == (8, 0, 1, 7)


def test_repeated_parts_of_a_long_document_are_dropped_and_counted(write, vocab, tmp_path, monkeypatch):
    """Ten times the same fifty lines: the first time stays."""
    monkeypatch.setattr(layout, "SECTION_CHARS", 400)
    line = story(0, 1).strip()
    lines = 400 // (len(line) + 1) + 1  # of a part
    corpus = write("text/a.txt", f"{line}\n" * lines * 10)
    report = prepare(tmp_path / "out", PrepareSettings(str(corpus), vocab, sentences="lines", documents="file")).report
    assert (report.read, report.duplicates, report.duplicate_parts, report.sentences) == (1, 0, 9, lines)
    assert re.search(r"parts dropped +9\b", report.table())
    # A folder that was prepared before these were counted is still finished.
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    for name in ("duplicate_parts", "characters", "unknown_characters", "next_held_out", "remarks"):
        del manifest["report"][name]
    del manifest["report"]["sources"][0]["half characters"], manifest["sha256"]
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    again = prepare(tmp_path / "out", PrepareSettings(str(corpus), vocab, sentences="lines", documents="file")).report
    assert again.sentences == lines
    assert "characters" not in again.table().replace("100,000 characters", "")


def test_a_long_document_is_cut_where_a_part_is_held_out(write, vocab, tmp_path, monkeypatch):
    """Parts of one long text that were not adjacent are different documents, so none seems to continue another."""
    monkeypatch.setattr(layout, "SECTION_CHARS", 400)
    lines = story(0, 400).splitlines(keepends=True)
    corpus = write("text/a.txt", "".join(lines))
    settings = PrepareSettings(str(corpus), vocab, sentences="lines", validation_share=0.3)
    report = prepare(tmp_path / "out", settings).report
    assert report.read == 1
    assert report.cuts > 5
    assert report.read + report.cuts == report.kept + report.duplicates + report.empty
    tokenizer = Store.open(tmp_path / "out").tokenizer
    whole = [token for one in tokenizer.encode_batch(lines) for token in one.ids]
    text = " ".join(map(str, whole)) + " "
    found = [documents_of(tmp_path / "out", split) for split in ("train", "validation")]
    assert sorted(token for split in found for document in split for token in document) == sorted(whole)
    places = []
    for number, split in enumerate(found):
        for document in split:
            at = text.find(" ".join(map(str, document)) + " ")
            assert at >= 0
            places.append((at, number))
    splits = [number for _, number in sorted(places)]
    assert all(one != other for one, other in itertools.pairwise(splits))


def test_a_single_document_is_never_held_out(write, vocab, tmp_path):
    """A one-sentence file, or row after empty rows, gives something to train on, whatever the share and the seed."""
    text = write("text/a.txt", "The keeper climbed stairs.\n")
    rows = write("text/a.jsonl", '{"text": ""}\n{"text": null}\n{"text": "The keeper climbed stairs."}\n')
    for corpus, empty in ((text, 0), (rows, 2)):
        for seed in range(5):
            out = tmp_path / f"{corpus.suffix}{seed}"
            report = prepare(out, PrepareSettings(str(corpus), vocab, validation_share=0.99, seed=seed)).report
            assert (report.kept, report.validation_documents, report.empty) == (1, 0, empty)
            assert Store.open(out).num_tokens == 5


def test_one_sentence_documents_are_counted(write, vocab, tmp_path):
    """Six lines with blank lines between are six documents that give no true pair; two long ones beside them do."""
    lines = "\n".join(f"{word}.\n" for word in WORDS[:6])
    corpus = write("text/a.txt", lines)
    settings = PrepareSettings(str(corpus), vocab, validation_share=0)
    report = prepare(tmp_path / "six", settings).report
    assert report.notices(settings)[0].startswith("6 of 6 documents have one sentence")
    write("text/a.txt", lines + "\n" + stories(2, 10))
    report = prepare(tmp_path / "eight", settings).report
    assert report.notices(settings)[0].startswith("6 of 8 documents have one sentence")
    assert report.sentences == 26


def test_no_text_is_an_error_that_leaves_nothing_behind(write, vocab, tmp_path):
    corpus = write("text/a.txt", " \n\u200b\n\n")
    with pytest.raises(InputError, match="no text in 1 documents"):
        prepare(tmp_path / "out", PrepareSettings(str(corpus), vocab))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text", "vocab"]


def test_special_tokens_in_the_text_are_split_unless_asked_for(write, tmp_path):
    """By default a literal [MASK] in the text is text; with the setting it is the token."""
    vocab = str(write("vocab/vocab.txt", "\n".join([*SPECIAL, "hello", "[", "]", "mask"])))
    corpus = str(write("text/a.txt", "hello [MASK]\n"))
    prepare(tmp_path / "split", PrepareSettings(corpus, vocab, validation_share=0))
    prepare(tmp_path / "kept", PrepareSettings(corpus, vocab, validation_share=0, special_tokens_in_text=True))
    assert documents_of(tmp_path / "split", "train") == [(5, 6, 8, 7)]
    assert documents_of(tmp_path / "kept", "train") == [(5, 4)]


def test_word_boundaries_from_blanks_in_the_text(write, tmp_path):
    """In segmented Chinese text both characters of a word belong together; a first character begins a word."""
    entries = [*SPECIAL, "\u4e2d", "\u56fd", "\u4eba", "un", "##able", ","]
    vocab = str(write("vocab/vocab.txt", "\n".join(entries)))
    corpus = str(write("text/a.txt", "\u4e2d\u56fd \u4eba\u4eba\nunable, \u4eba\n"))
    prepare(tmp_path / "out", PrepareSettings(corpus, vocab, validation_share=0, word_boundaries="whitespace"))
    store = Store.open(tmp_path / "out", verify=True)
    assert store.read([0], [8]).tolist() == [5, 6, 7, 7, 8, 9, 10, 7]
    assert store.read_continues([0], [8]).tolist() == [False, True, False, True, False, True, True, False]


def test_joined_or_unjoined_lines_are_told_and_the_way_out_works(write, tmp_path):
    """Verse is left as it stands, with a notice; set to wrapped, its sentences are put together."""
    corpus = write("text/a.txt", "A keeper climbed,\nA lamp was lit,\nAnd nobody slept.\n\n" * 9)
    settings = PrepareSettings(str(corpus), vocab_size=100, deduplicate=False)
    report = prepare(tmp_path / "one", settings).report
    assert report.sentences == 27
    assert any("set sentences to wrapped" in notice for notice in report.notices(settings))
    settings = dataclasses.replace(settings, sentences="wrapped")
    report = prepare(tmp_path / "two", settings).report
    assert report.sentences == 9
    assert not any("wrapped" in notice for notice in report.notices(settings))


def test_the_advised_share_holds_something_out(write, vocab, tmp_path):
    corpus = write("text/a.txt", stories(4))
    settings = PrepareSettings(str(corpus), vocab, validation_share=1e-6)
    (notice,) = prepare(tmp_path / "one", settings).report.notices(settings)
    share = float(notice.split("validation_share to ")[1].split()[0])
    report = prepare(tmp_path / "two", dataclasses.replace(settings, validation_share=share)).report
    assert report.validation_documents == 1


def test_a_name_that_is_not_utf_8_costs_nothing(write, vocab, tmp_path):
    """The manifest spells it out, in the settings as well, and the folder is found finished again."""
    write("text/a.txt", stories(3))
    path = os.fsdecode(os.fsencode(tmp_path) + b"/text/caf\xe9.txt")
    pathlib.Path(path).write_text(stories(2, 9))
    for corpus in (str(tmp_path / "text"), path):
        out = tmp_path / f"out{len(corpus)}"
        report = prepare(out, PrepareSettings(corpus, vocab)).report
        assert report.sources[0]["names"][-1].endswith("caf\\udce9.txt")
        assert prepare(out, PrepareSettings(corpus, vocab)).was_finished


@pytest.mark.parametrize(
    "setting",
    [("validation_share", 1.0), ("word_boundaries", "spaces"), ("shard_tokens", 0), ("max_word_chars", 0),
     ("sentences", "words")],
    ids=str,
)  # fmt: skip
def test_impossible_settings_are_refused(tmp_path, setting):
    name, value = setting
    with pytest.raises(InputError, match=f"{name}.* {value!r}.* must be"):
        prepare(tmp_path / "out", PrepareSettings("installed-docs", **{name: value}))


def test_memory_does_not_grow_with_the_text(write, vocab, tmp_path, monkeypatch):
    """Twice the text takes no more memory at its peak: with all buffers made small, nothing of the text is kept."""
    monkeypatch.setattr(prepare_module, "TASK_CHARS", 1 << 14)
    monkeypatch.setattr(text_files, "BLOCK", 1 << 14)
    monkeypatch.setattr(writer, "WAITING_TOKENS", 1 << 12)
    peaks = []
    for count in (0, 1500, 3000):  # the first one pays for imports and caches
        corpus = write(f"text/{count}.txt", stories(count + 1))
        tracemalloc.start()
        report = prepare(tmp_path / str(count), PrepareSettings(str(corpus), vocab)).report
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert report.text_bytes > 700_000
    assert peaks[2] < 1.2 * peaks[1]
    store = Store.open(tmp_path / "3000", verify=True)
    assert len(store.shards) == 1
    assert store.num_tokens == report.tokens - report.validation_tokens
