"""Outputs put in place: a kill at any moment leaves a whole one, and what is not ours is never touched."""

import errno
import os
import pathlib
import stat
import subprocess
import sys
import threading

import filelock
import pytest

from bert import files
from bert.errors import InputError, RunError
from tests.bert.refusals import refused

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]

# Writes the folder, or the file, argv[2]; the process ends, as if killed, before the change to disk of number argv[3].
KILLED = """
import os, pathlib, sys
from bert import files
target, left = pathlib.Path(sys.argv[2]), int(sys.argv[3])
def watch(event, arguments):
    global left
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_CREAT
    if writes or event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir"):
        left -= 1
        if left < 0:
            os._exit(9)
sys.addaudithook(watch)
if sys.argv[1] == "file":
    files.write(target, "new")
else:
    with files.replacing(target) as new:
        (new / "a").write_text("new")
        (new / "b").write_text("new")
"""
USERS = ("{}.partial", "{}.replaced", ".{}.unfinished", ".{}.replaced", "{}.tmp", "{}.partial.lock", "{}.lock",
         ".{}.unfinished-1")  # fmt: skip


def made(folder: pathlib.Path, text: str) -> pathlib.Path:
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text(text)
    return folder


def contents(folder: pathlib.Path) -> dict[str, str]:
    return {entry.name: entry.read_text() for entry in folder.iterdir()}


def everything(folder: pathlib.Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_kill_at_any_moment_leaves_a_whole_output(tmp_path, kind):
    """Before each change to disk in turn, until one run is through; the next run clears away what had content."""
    found = []
    for number in range(40):
        parent = tmp_path / str(number)
        parent.mkdir()
        target = parent / "out"
        made(target, "old") if kind == "folder" else target.write_text("old")
        command = [sys.executable, "-c", KILLED, kind, str(target), str(number)]
        ended = subprocess.run(command, cwd=CHECKOUT, check=False)
        absent = not target.exists()
        files.recover_interrupted_replace(target, "ab")
        now = contents(target) if kind == "folder" else {"a": target.read_text(), "b": target.read_text()}
        assert now in ({"a": "old", "b": "old"}, {"a": "new", "b": "new"})
        found.append((absent, now["a"]))
        if kind == "folder":
            with files.replacing(target) as new:
                (new / "a").write_text("newest")
        else:
            files.write(target, "newest")
        left = everything(parent)
        assert left.pop("out/a" if kind == "folder" else "out") == "newest"
        assert not any(left.values())
        if ended.returncode == 0:
            break
        assert ended.returncode == 9
    assert kind == "file" or (True, "old") in found, "no run was killed between the two renames"
    assert found[-1] == (False, "new")
    assert list(parent.iterdir()) == [target]


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_no_name_beside_the_target_is_taken_to_be_ours(tmp_path, kind):
    """Folders, files and links of the names that programs use stay, and what the links lead to."""
    (tmp_path / "victim").write_text("theirs")
    for i, name in enumerate(USERS):
        for number, target in enumerate(("one", "two", "three")):
            path = tmp_path / name.format(target)
            if (i + number) % 3 == 0:
                made(path, "theirs")
            elif (i + number) % 3 == 1:
                path.write_text("theirs")
            else:
                path.symlink_to(tmp_path / "victim")
    before = everything(tmp_path)
    for target in ("one", "two", "three"):
        files.recover_interrupted_replace(tmp_path / target, "ab", clear=True)
        for _ in range(2):
            if kind == "file":
                files.write(tmp_path / target, "ours")
            else:
                with files.replacing(tmp_path / target) as new:
                    (new / "a").write_text("ours")
    assert {name: text for name, text in everything(tmp_path).items() if text != "ours"} == before


def test_only_a_mark_that_names_the_target_is_proof(tmp_path, killed_writer):
    """A folder of such a name with another mark, or the workspace of another target, is not cleared away."""
    ours = killed_writer(tmp_path / "out", new=made(tmp_path / "1", "half"))
    other = killed_writer(tmp_path / "outer", new=made(tmp_path / "2", "half"))
    foreign = made(tmp_path / ".out.unfinished-2", "theirs")
    (foreign / "mark").write_text("a mark of mine")
    (tmp_path / ".out.unfinished-3").symlink_to(other)
    files.write(tmp_path / "out", "text")
    assert not ours.exists()
    assert (other / "new" / "a").exists()
    assert contents(foreign) == {"a": "theirs", "b": "theirs", "mark": "a mark of mine"}


def test_only_what_is_whole_comes_back(tmp_path, killed_writer):
    """A folder that was being deleted is not brought back, and one that is there is not touched."""
    target = tmp_path / "out"
    files.recover_interrupted_replace(target, "ab")
    older = killed_writer(target, old=made(tmp_path / "1", "old")) / "old"
    (older / "b").unlink()
    files.recover_interrupted_replace(target, "ab")
    assert not target.exists()
    made(target, "new")
    (older / "b").write_text("old")
    files.recover_interrupted_replace(target, "ab")
    assert contents(target) == {"a": "new", "b": "new"}
    files.recover_interrupted_replace(target, "ab", clear=True)
    assert list(tmp_path.iterdir()) == [target]


def test_the_only_folder_is_never_deleted(tmp_path, killed_writer, monkeypatch):
    """Neither by a writer that comes later and fails, nor where it cannot be renamed back."""
    target, rename = tmp_path / "out", pathlib.Path.rename
    older = killed_writer(target, old=made(tmp_path / "1", "old")) / "old"
    with pytest.raises(KeyError), files.replacing(target):
        raise KeyError
    assert contents(older) == {"a": "old", "b": "old"}
    files.recover_interrupted_replace(target, "ab", clear=True)
    monkeypatch.setattr(pathlib.Path, "rename", lambda path, to: rename(path, to if to.name == "old" else to / "x"))
    with pytest.raises(InputError, match="cannot be written"), files.replacing(target):
        pass
    assert [contents(folder) for folder in tmp_path.glob(".out*/old")] == [{"a": "old", "b": "old"}]


def test_a_writer_at_work_is_left_alone(tmp_path):
    """A second one neither clears its workspace away nor restores what it is just replacing; the last one wins."""
    target = made(tmp_path / "out", "old")
    with files.replacing(target) as first:
        (first / "a").write_text("first")
        with files.replacing(target) as second:
            (second / "a").write_text("second")
        files.recover_interrupted_replace(target, "a", clear=True)
        assert contents(target) == {"a": "second"}
        with pytest.raises(InputError, match="wait"), files.replacing(target, busy="wait"):
            pytest.fail("there are two writers")
    assert contents(target) == {"a": "first"}
    assert list(tmp_path.iterdir()) == [target]


def test_a_reader_waits_for_the_second_rename(tmp_path):
    """It comes in a moment: the older folder must not be put in its way."""
    target = made(tmp_path / "out", "old")
    with files.replacing(target) as new:
        target.rename(new.with_name("old"))
        timer = threading.Timer(0.1, made(tmp_path / "newer", "new").rename, (target,))
        timer.start()
        files.recover_interrupted_replace(target, "ab")
        assert contents(target) == {"a": "new", "b": "new"}
        target.rename(tmp_path / "moved")


def test_what_cannot_be_renamed_back_is_named(tmp_path, monkeypatch, killed_writer):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    place = killed_writer(tmp_path / "out", old=made(tmp_path / "1", "old"))
    monkeypatch.setattr(pathlib.Path, "rename", refuse)
    with pytest.raises(InputError, match=rf"{place.name}/old .*Permission"):
        files.recover_interrupted_replace(tmp_path / "out", "ab")


@pytest.mark.parametrize("place", ["file/out", "file/deeper/out", "/proc/out"])
def test_where_no_directory_can_be_made(tmp_path, place):
    """Told in one line when it is asked before, and when it is done; nothing is left behind."""
    (tmp_path / "file").write_text("a file")
    target = tmp_path / place  # an absolute place stays what it is
    message = rf"{target}: cannot be made or replaced \((Not a directory|No such file or directory|Permission denied)\)"
    with pytest.raises(InputError, match=message):
        files.check_replaceable(target, ())
    with pytest.raises(InputError, match=message), files.replacing(target):
        pytest.fail("there is nothing to write into")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_what_may_not_be_replaced(tmp_path, monkeypatch):
    """A file, a mount point, other names, and a folder of a name that only files of ours have; links may be."""
    folder = made(tmp_path / "out", "ours")
    for target, ours, message in ((folder / "a", "ab", "is a file"), (folder, "a", r"holds other files \(b\)")):
        with pytest.raises(InputError, match=message):
            files.check_replaceable(target, ours)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="link to itself"):
        files.check_replaceable(tmp_path / "loop", "")
    (folder / "c").symlink_to(tmp_path)
    files.check_replaceable(folder, "abc")
    (folder / "d").mkdir()
    with pytest.raises(InputError, match=r"holds other files \(d\)"):
        files.check_replaceable(folder, "abcd")
    monkeypatch.setattr(os.path, "ismount", lambda path: path == folder)
    with pytest.raises(InputError, match="mount point"):
        files.check_replaceable(folder, "abcd")


def test_what_asks_or_fails_leaves_no_trace(tmp_path):
    """Neither the directory nor those above it that were made for it; the line has the name that was asked for."""
    target = tmp_path / "a" / "b" / "out"
    files.check_replaceable(target, ())
    assert list(tmp_path.iterdir()) == []
    full = rf"^{target}: cannot be written \(File too large\); make room"
    with pytest.raises(RunError, match=full), files.replacing(target):
        raise OSError(errno.EFBIG, "File too large")
    with pytest.raises(InputError, match=rf"^{target}/x: bad$"), files.replacing(target) as new:
        raise InputError(f"{new / 'x'}: bad")
    with pytest.raises(KeyError), files.replacing(target):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_finished_work_that_cannot_be_put_in_place_is_gone_on_with(tmp_path, monkeypatch):
    """It stays, is named, and the next writer gets it; half-finished work does not stay."""
    target, rename = made(tmp_path / "out", "old"), pathlib.Path.rename

    def refuse(path, to):
        return rename(path, to) if path.name != "new" else os.rename(path, tmp_path / "absent" / "x")

    finished = lambda folder: (folder / "b").exists()  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "rename", refuse)
        for name, error in (("a", InputError), ("b", RunError)):
            with pytest.raises(error, match="No such file"), files.replacing(target, finished=finished) as new:
                made(new / name, "new")
    assert contents(target) == {"a": "old", "b": "old"}
    with files.replacing(target, finished=finished) as new:
        assert [entry.name for entry in new.iterdir()] == ["b"]
    assert contents(target / "b") == {"a": "new", "b": "new"}
    assert list(tmp_path.iterdir()) == [target]


def test_modes_are_kept_and_links_within_are_not_followed(tmp_path):
    """Of the folder and its files; new ones get what the umask leaves. A link goes, what it leads to stays."""
    target, disk = made(tmp_path / "out", "old"), made(tmp_path / "disk", "theirs")
    (target / "link").symlink_to(disk)
    (target / "a").unlink()
    (target / "a").symlink_to(disk / "a")
    target.chmod(0o750)
    (target / "b").chmod(0o640)
    before = os.umask(0o027)
    try:
        with files.replacing(target) as new:
            for name in "abc":
                (new / name).write_text("new")
        files.write(tmp_path / "file", "text")
    finally:
        os.umask(before)
    modes = {path.name: oct(stat.S_IMODE(path.lstat().st_mode)) for path in (target, *target.iterdir())}
    assert modes == {"out": "0o750", "a": "0o640", "b": "0o640", "c": "0o640"}
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640
    assert contents(disk) == {"a": "theirs", "b": "theirs"}


def test_without_locks_nothing_of_others_is_touched(tmp_path, killed_writer, monkeypatch):
    """It is unknown then whether a writer is gone. On a read-only disk, the user is told what to rename."""
    target, place = tmp_path / "out", killed_writer(tmp_path / "out", old=made(tmp_path / "1", "old"))
    for number in (errno.ENOLCK, errno.EROFS):
        monkeypatch.setattr(filelock.FileLock, "acquire", refusing(number))
        if number == errno.ENOLCK:
            files.recover_interrupted_replace(target, "ab", clear=True)
            with files.replacing(target) as new:
                (new / "a").write_text("new")
            assert (contents(target), contents(place / "old")) == ({"a": "new"}, {"a": "old", "b": "old"})
            with pytest.raises(OSError, match="number"), files.lock(tmp_path / "lock", "busy"):
                pytest.fail("there are no locks")
            (target / "a").unlink()
            target.rmdir()
        else:
            monkeypatch.setattr(pathlib.Path, "rename", refusing(number))
            with refused(str(place / "old"), "by hand"):
                files.recover_interrupted_replace(target, "ab")


def refusing(number):
    def refuse(*_, **__):
        raise OSError(number, f"number {number}")

    return refuse


def test_unpaired_surrogates_are_escaped_in_json():
    assert files.json_text({"a": "ü大"}) == '{"a": "ü大"}\n'
    assert files.json_text({"a": "ü\udcff"}) == '{"a": "\\u00fc\\udcff"}\n'


def test_a_file_that_is_written_bit_by_bit_appears_at_the_end(tmp_path):
    """Until then the older one stays; a failure leaves it, and nothing else."""
    target, link = tmp_path / "a.npy", tmp_path / "link.npy"
    target.write_text("older")
    target.chmod(0o600)
    link.symlink_to(target)

    def write(path, error=None):
        with files.replacing_file(path) as aside:
            aside.write_text("newer")
            assert target.read_text() == "older"
            if error:
                raise error

    with refused("no time", error=KeyError):
        write(link, KeyError("no time"))
    with refused("new.npy", "No space left", error=RunError):
        write(tmp_path / "new.npy", OSError(errno.ENOSPC, "No space left on device"))
    with refused(str(tmp_path), "no plain file"):
        write(tmp_path)
    write(link)
    assert (target.read_text(), link.is_symlink(), target.stat().st_mode & 0o777) == ("newer", True, 0o600)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "link.npy"]
