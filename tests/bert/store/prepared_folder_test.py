"""When a prepared folder is finished, what it takes the place of, and what a run that stops leaves behind."""

import dataclasses
import errno
import os
import pathlib
import shutil

import pytest

from bert.errors import InputError, RunError
from bert.store import kept_sections
from bert.store import prepare as prepare_module
from bert.store.prepare import PrepareSettings, prepare
from bert.store.reader import Store
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.builders import SPECIAL, WORDS, bytes_of, stories


def beside(folder):
    """Names of the prepared folder and of all that runs put beside it."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(("out", ".out")))


def test_a_finished_folder_is_found_and_left_alone(write, vocab, tmp_path):
    """The same call again does nothing; other settings, texts or vocabularies are told and refused."""
    corpus = write("text/a.txt", stories(3))
    settings = PrepareSettings(str(corpus), vocab)
    first = prepare(tmp_path / "out", settings)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()}
    again = prepare(tmp_path / "out", settings)
    assert (first.was_finished, again.was_finished) == (False, True)
    assert again.report == first.report
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").iterdir()} == before
    with pytest.raises(InputError, match=r"seed was 0, now 3;.* overwrite"):
        prepare(tmp_path / "out", PrepareSettings(str(corpus), vocab, seed=3))
    write("vocab/vocab.txt", "\n".join([*SPECIAL, *WORDS, ".", "!"]))
    with pytest.raises(InputError, match="the vocabulary has changed"):
        prepare(tmp_path / "out", settings)
    write("text/b.txt", stories(1))
    with pytest.raises(InputError, match="the texts have changed"):
        prepare(tmp_path / "out", PrepareSettings(str(corpus.parent), vocab))
    replaced = prepare(tmp_path / "out", PrepareSettings(str(corpus.parent), vocab), overwrite=True)
    assert not replaced.was_finished
    assert Store.open(tmp_path / "out", verify=True).manifest["settings"]["corpus"] == str(corpus.parent)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["train-00000.tokens", "train-00000.documents", "vocab.txt", "manifest.json"])
def test_a_damaged_folder_is_noticed_and_written_again(write, vocab, tmp_path, caplog, name, overwrite):
    """A flipped bit, which leaves the size as it was; of the manifest, which says what was asked for, a cut."""
    settings = PrepareSettings(str(write("text/a.txt", stories(3))), vocab)
    prepare(tmp_path / "out", settings)
    before = bytes_of(tmp_path / "out")
    damaged = bytearray(before[name])
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "out" / name).write_bytes(damaged if name != "manifest.json" else damaged[:-20])
    if name == "manifest.json" and not overwrite:  # it cannot be known what the folder was
        with pytest.raises(InputError, match=r"json:\d+: not JSON .*overwrite"):
            prepare(tmp_path / "out", settings)
        return
    assert not prepare(tmp_path / "out", settings, overwrite=overwrite).was_finished
    assert name in caplog.text
    assert bytes_of(tmp_path / "out") == before
    assert prepare(tmp_path / "out", settings).was_finished


@pytest.mark.parametrize("name", ["train-00000.tokens", "vocab.txt"])
def test_a_folder_whose_manifest_has_a_wrong_name_is_written_again(write, vocab, tmp_path, name):
    """The file under its right name is no stranger's."""
    settings = PrepareSettings(str(write("text/a.txt", stories(3))), vocab)
    prepare(tmp_path / "out", settings)
    manifest = tmp_path / "out" / "manifest.json"
    before = manifest.read_text()
    manifest.write_text(before.replace(f'"{name}"', f'"x{name}"'))
    prepare(tmp_path / "out", settings, overwrite=True)
    assert manifest.read_text() == before


def test_a_folder_without_its_manifest_is_written_again(write, vocab, tmp_path, caplog):
    """Unless it has a file that prepare does not write, or no tokens: then it may be somebody's vocabulary."""
    settings = PrepareSettings(str(write("text/a.txt", stories(3))), vocab)
    out = tmp_path / "out"
    prepare(out, settings)
    before = bytes_of(out)
    (out / "manifest.json").unlink()
    assert not prepare(out, settings).was_finished
    assert "manifest.json: is missing" in caplog.text
    assert bytes_of(out) == before
    (out / "manifest.json").unlink()
    for change in (lambda: (out / "notes").write_text("mine"), lambda: [path.unlink() for path in out.glob("*-*")]):
        change()
        there = bytes_of(out)
        with pytest.raises(InputError, match="not a prepared folder"):
            prepare(out, settings, overwrite=True)
        assert bytes_of(out) == there
        (out / "notes").unlink(missing_ok=True)


def test_a_learnt_vocabulary_outlives_damage_elsewhere(write, tmp_path, monkeypatch):
    """An earlier version may have learnt other pieces, and a run that was begun with them could not go on."""
    settings = PrepareSettings(str(write("text/a.txt", stories(9))), vocab_size=60)
    before = prepare(tmp_path / "out", settings).tokenizer
    monkeypatch.setattr(WordPiece, "train", lambda *_, **__: 1 / 0)
    path = tmp_path / "out" / "train-00000.tokens"
    path.write_bytes(b"\x07" * path.stat().st_size)
    assert prepare(tmp_path / "out", settings).tokenizer.fingerprint == before.fingerprint


def test_other_files_are_never_overwritten(write, vocab, tmp_path):
    """A folder with somebody's files is not prepared text, and stays, whatever is asked."""
    corpus = write("text/a.txt", stories(3))
    for overwrite in (False, True):
        with pytest.raises(InputError, match="not a prepared folder"):
            prepare(tmp_path / "text", PrepareSettings(str(corpus), vocab), overwrite=overwrite)
    assert corpus.read_text() == stories(3)


def test_a_run_that_dies_leaves_nothing_that_looks_finished(write, vocab, tmp_path, monkeypatch, killed_writer):
    """After an error in the middle, or a killed run's remains, the folder is not there and the next run is complete."""
    corpus = write("text/a.txt", stories(3))
    settings = PrepareSettings(str(corpus), vocab)
    prepare(tmp_path / "good", settings)

    def dies(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kept_sections, "finish", dies)
        with pytest.raises(KeyboardInterrupt):
            prepare(tmp_path / "out", settings)
    assert not (tmp_path / "out").exists()
    half = shutil.copytree(tmp_path / "good", tmp_path / "half")
    (half / "manifest.json").unlink()
    (half / "train-00007.tokens").write_bytes(b"xx")
    killed_writer(tmp_path / "out", new=half)
    prepare(tmp_path / "out", settings)
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "good")
    assert beside(tmp_path) == ["out"]


@pytest.mark.parametrize("killed", ["before the first rename", "between the renames", "while the old one is deleted"])
def test_a_kill_while_an_old_folder_is_replaced_loses_nothing(
    write, vocab, tmp_path, monkeypatch, killed_writer, killed
):
    """The same command ends the work without doing any of it twice."""
    corpus, out = str(write("text/a.txt", stories(3))), tmp_path / "out"
    old, new = PrepareSettings(corpus, vocab), PrepareSettings(corpus, vocab, seed=1)
    prepare(out, old)
    prepare(tmp_path / "wanted", new)
    copy = shutil.copytree(tmp_path / "wanted", tmp_path / "copy")
    if killed == "before the first rename":
        killed_writer(out, new=copy)
    elif killed == "between the renames":
        killed_writer(out, new=copy, old=out)
    else:
        (out / "train-00000.tokens").unlink()
        killed_writer(out, old=out)
        copy.rename(out)
    monkeypatch.setattr(prepare_module, "_write", lambda *_: 1 / 0)
    prepare(out, new, overwrite=True)
    assert bytes_of(out) == bytes_of(tmp_path / "wanted")
    assert beside(tmp_path) == ["out"]


def test_a_folder_that_was_moved_aside_comes_back(write, vocab, tmp_path, killed_writer):
    """Killed after the old folder was moved, and asked for the old settings again: the old folder is found finished."""
    settings = PrepareSettings(str(write("text/a.txt", stories(3))), vocab)
    killed_writer(tmp_path / "out", old=prepare(tmp_path / "old", settings).directory)
    assert prepare(tmp_path / "out", settings).was_finished
    assert beside(tmp_path) == ["out"]


def test_finished_work_is_kept_where_the_file_system_refuses(write, vocab, tmp_path, monkeypatch):
    """An error in the last rename is told with both names; old and new folder stay, and nothing is done twice."""
    corpus = str(write("text/a.txt", stories(3)))
    old, new = PrepareSettings(corpus, vocab), PrepareSettings(corpus, vocab, seed=1)
    prepare(tmp_path / "out", old)
    before, rename = bytes_of(tmp_path / "out"), pathlib.Path.rename

    def refused(path, target):
        if path.name == "new":
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "rename", refused)
        with pytest.raises(RunError, match=r"/new: finished.*out .*cross-device"):
            prepare(tmp_path / "out", new, overwrite=True)
    assert bytes_of(tmp_path / "out") == before
    monkeypatch.setattr(prepare_module, "_write", lambda *_: 1 / 0)
    prepare(tmp_path / "out", new, overwrite=True)
    assert Store.open(tmp_path / "out", verify=True).manifest["settings"]["seed"] == 1
    assert beside(tmp_path) == ["out"]


def test_finished_work_with_other_settings_is_not_taken_for_this(write, vocab, tmp_path, killed_writer):
    corpus = str(write("text/a.txt", stories(3)))
    killed_writer(tmp_path / "out", new=prepare(tmp_path / "old", PrepareSettings(corpus, vocab, seed=1)).directory)
    assert not prepare(tmp_path / "out", PrepareSettings(corpus, vocab)).was_finished
    assert Store.open(tmp_path / "out").manifest["settings"]["seed"] == 0
    assert beside(tmp_path) == ["out"]


def test_files_of_others_stay(write, vocab, tmp_path):
    """Beside the folder, whatever their names are; and in it, where `overwrite` would delete them with it."""
    settings = PrepareSettings(str(write("text/a.txt", stories(3))), vocab)
    theirs = [write(f"{name}/notes.txt", "mine") for name in ("out.partial", "out.replaced", ".out.unfinished")]
    theirs.append(write("out.partial.lock", "mine"))
    prepare(tmp_path / "out", settings)
    theirs.append(write("out/notes.txt", "mine"))
    with pytest.raises(InputError, match=r"out: .*other files.*notes.txt"):
        prepare(tmp_path / "out", dataclasses.replace(settings, seed=1), overwrite=True)
    assert [path.read_text() for path in theirs] == ["mine"] * 5


def test_a_link_to_a_folder_stays_a_link(write, vocab, tmp_path):
    """Where the link leads is prepared, and replaced; the link is left alone, also one that leads nowhere yet."""
    corpus = str(write("text/a.txt", stories(3)))
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk" / "out")
    for seed in (0, 1):
        prepared = prepare(tmp_path / "link", PrepareSettings(corpus, vocab, seed=seed), overwrite=True)
        assert prepared.directory == tmp_path / "link"
        assert (tmp_path / "link").is_symlink()
        assert Store.open(tmp_path / "disk" / "out", verify=True).manifest["settings"]["seed"] == seed
        assert [path.name for path in (tmp_path / "disk").iterdir()] == ["out"]


def test_places_that_cannot_be_replaced_are_refused_before_the_work(write, vocab, tmp_path, monkeypatch):
    """A mount point, and a folder in one that cannot be written: told in one line, and nothing is tokenized."""
    settings = PrepareSettings(str(write("text/a.txt", stories(3))), vocab)
    monkeypatch.setattr(prepare_module, "_write", lambda *_: 1 / 0)
    (tmp_path / "out").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os.path, "ismount", lambda path: path == tmp_path / "out")
        with pytest.raises(InputError, match="out: is a mount point"):
            prepare(tmp_path / "out", settings)
    write("file", "")
    with pytest.raises(InputError, match=r"file/out: .*Not a directory"):
        prepare(tmp_path / "file" / "out", settings)


def test_two_runs_into_one_folder_do_not_mix(write, vocab, tmp_path):
    """While one run writes, a second one is told so."""
    corpus = write("text/a.txt", stories(3))
    settings = PrepareSettings(str(corpus), vocab)
    seen = []

    def second_run(step, done, total):
        with pytest.raises(InputError, match="another prepare"):
            prepare(tmp_path / "out", settings)
        seen.append(step)

    prepare(tmp_path / "out", settings, progress=second_run)
    assert set(seen) == {"tokens"}
    assert Store.open(tmp_path / "out", verify=True).num_documents == 3
