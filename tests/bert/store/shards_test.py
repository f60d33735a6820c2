"""Shards: joined, they are the folder of one process, whatever the files are; what is wrong with one is told."""

import dataclasses
import gzip
import json
import random

import pytest

from bert.corpus import layout, text_files
from bert.errors import InputError
from bert.store import shard_files
from bert.store.prepare import prepare
from bert.store.prepare_settings import PrepareSettings
from bert.store.shards import JobShard, make_shard, make_vocabulary, merge_shards
from tests.bert.builders import WORDS, bytes_of, stories, story


@pytest.fixture
def small_pieces(monkeypatch):
    """Blocks, sections and reads so small that short texts have many."""
    monkeypatch.setattr(text_files, "BLOCK", 1 << 10)
    monkeypatch.setattr(text_files, "LONG_LINE", 300)
    monkeypatch.setattr(layout, "SECTION_CHARS", 500)
    monkeypatch.setattr(shard_files, "_RECORDS", 5)


def write_corpus(write):
    """Files of every kind, cut and not, with equal documents and parts in several of them; the folder."""
    rng = random.Random(0)
    rows = [{"text": story(seed, rng.randint(1, 9))} for seed in range(90)]
    write("text/a.txt", stories(60).replace("\n", "\r\n"))
    write("text/b.txt", stories(9, 40) + "\n" + " ".join(rng.choices(WORDS, k=900)) + ".\n\nunspelt \u00e9\u4e2d.\n")
    write("text/c.jsonl", "".join(json.dumps(row) + "\n" for row in [*rows, {"text": [story(7, 2)]}, {"text": None}]))
    write("text/d.txt.gz", gzip.compress(stories(20, 5).encode()))
    write("text/sub/e.txt", "\n".join(" ".join(rng.choices(WORDS, k=10)) + ", and" for _ in range(150)))  # a document
    write("text/sub/f.txt", "")
    return str(write("text/g.txt", stories(80)).parent)


def make_all(out, settings, count, **how):
    if not settings.vocab:
        make_vocabulary(out, settings)
    for number in range(count, 0, -1):
        make_shard(out, settings, JobShard(number, count), **how)
    return merge_shards(out, settings)


@pytest.mark.parametrize(
    ("count", "settings"),
    [
        (7, {"validation_share": 0.3, "shard_tokens": 700}),
        (2, {"validation_share": 0.3, "word_boundaries": "whitespace", "deduplicate": False}),
        (3, {"vocab": "", "vocab_size": 90, "documents": "file", "lower_case": False}),
    ],
)
def test_shards_joined_are_the_folder_of_one_process(write, vocab, tmp_path, small_pieces, count, settings):
    """Byte for byte, the report included, for given and learnt vocabularies; a shard made twice is left alone."""
    given = PrepareSettings(**({"corpus": write_corpus(write), "vocab": vocab} | settings))
    wanted = prepare(tmp_path / "one", given)
    merged = make_all(tmp_path / "out", given, count)
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "one")
    assert merged.report == wanted.report
    assert merged.report.cuts or given.validation_share == 0.01
    again = make_shard(tmp_path / "out", given, JobShard(1, count))
    assert again.was_finished
    shares = [len((JobShard(n, count).folder(tmp_path / "out") / "tokens").read_bytes()) for n in range(1, count + 1)]
    assert min(shares) > 0
    assert merge_shards(tmp_path / "out", given).was_finished


def test_tables_are_cut_by_their_rows(write, vocab, tmp_path):
    """Row groups of a parquet file, rows of a saved data set."""
    datasets, parquet = pytest.importorskip("datasets"), pytest.importorskip("pyarrow.parquet")
    data = datasets.Dataset.from_dict({"text": [story(seed, 4) for seed in range(40)]})
    data.save_to_disk(str(tmp_path / "saved"))
    parquet.write_table(data.data.table, tmp_path / "a.parquet", row_group_size=9)
    for corpus in ("saved", "a.parquet"):
        settings = PrepareSettings(str(tmp_path / corpus), vocab)
        prepare(tmp_path / f"{corpus}-one", settings)
        make_all(tmp_path / f"{corpus}-out", settings, 3)
        assert bytes_of(tmp_path / f"{corpus}-out") == bytes_of(tmp_path / f"{corpus}-one")
        assert (JobShard(2, 3).folder(tmp_path / f"{corpus}-out") / "tokens").stat().st_size > 0


@pytest.fixture
def job(write, vocab, tmp_path):
    """(folder to write, settings) of three finished shards."""
    write("text/b.txt", stories(20, 4))
    settings = PrepareSettings(str(write("text/a.txt", stories(20)).parent), vocab)
    for number in (1, 2, 3):
        make_shard(tmp_path / "out", settings, JobShard(number, 3))
    return tmp_path / "out", settings


def test_shards_that_do_not_fit_are_refused_by_name(job, write, tmp_path):
    """Other settings, texts and vocabularies, a shard in another's place, and shards of another number."""
    out, settings = job
    with pytest.raises(InputError, match=r"1-of-3: .*0, now 3.*overwrite"):
        merge_shards(out, dataclasses.replace(settings, seed=3))
    with pytest.raises(InputError, match=r"2-of-3: .*0, now 3.*overwrite"):
        make_shard(out, dataclasses.replace(settings, seed=3), JobShard(2, 3))
    shard = JobShard(3, 3).folder(out)
    kept = JobShard(1, 3).folder(out).rename(tmp_path / "kept")
    with pytest.raises(InputError, match=r"out.shards: 1/3 .*--shard=1/3"):
        merge_shards(out, settings)
    shard.rename(JobShard(1, 3).folder(out))
    with pytest.raises(InputError, match=r"out.shards: 3/3 is missing"):
        merge_shards(out, settings)
    shard.with_name("1-of-3").rename(shard)
    kept.rename(JobShard(1, 3).folder(out))
    make_shard(out, settings, JobShard(1, 2))
    with pytest.raises(InputError, match=r"shards of 2 and of 3"):
        merge_shards(out, settings)
    JobShard(1, 2).folder(out).rename(tmp_path / "other")
    corpus = write("text/b.txt", stories(21, 4))
    with pytest.raises(InputError, match=rf"-of-3: .*{corpus} .*shard ./3"):
        merge_shards(out, settings)
    with pytest.raises(InputError, match=r"-of-3: .*vocabulary"):
        merge_shards(out, dataclasses.replace(settings, add_tokens="[E1]"))
    assert not out.exists()


def test_a_shard_without_its_vocabulary_is_told_how_to_get_it(write, tmp_path):
    settings = PrepareSettings(str(write("text/a.txt", stories(9))), vocab_size=90)
    with pytest.raises(InputError, match=r"shards/vocabulary: .*--vocab"):
        make_shard(tmp_path / "out", settings, JobShard(1, 2))


@pytest.mark.parametrize("name", ["tokens", "sections", "notes.json", "shard.json"])
def test_a_flipped_bit_is_found_and_the_shard_made_again(job, caplog, name):
    """By the merge, which names the file, and by the shard's own command, which replaces it."""
    out, settings = job
    path = JobShard(2, 3).folder(out) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"2-of-3(.{name}|:).*"):
        merge_shards(out, settings)
    assert not out.exists()
    assert not make_shard(out, settings, JobShard(2, 3), overwrite=name == "shard.json").was_finished
    merge_shards(out, settings)
    prepare(out.with_name("one"), settings)
    assert bytes_of(out) == bytes_of(out.with_name("one"))


@pytest.mark.parametrize("content", [None, '{"format": 1,'])
def test_a_shard_that_lost_its_manifest_is_named_with_the_way_out(job, content):
    """Its own command makes it again."""
    out, settings = job
    manifest = JobShard(2, 3).folder(out) / "shard.json"
    manifest.unlink()
    if content:
        manifest.write_text(content)
    with pytest.raises(InputError, match=r"2-of-3/shard.json.*make shard 2/3"):
        merge_shards(out, settings)
    assert not make_shard(out, settings, JobShard(2, 3)).was_finished
    assert merge_shards(out, settings).report.kept == 40


def test_a_killed_shard_leaves_nothing_that_a_merge_takes(job, killed_writer):
    """Its unfinished files lie aside, and go when it is made again."""
    out, settings = job
    folder = JobShard(2, 3).folder(out)
    (folder / "shard.json").unlink()
    left = killed_writer(folder, new=folder)
    with pytest.raises(InputError, match="2/3 is missing"):
        merge_shards(out, settings)
    make_shard(out, settings, JobShard(2, 3))
    assert not left.exists()
    assert merge_shards(out, settings).report.kept == 40
