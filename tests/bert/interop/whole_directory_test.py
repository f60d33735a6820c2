"""Replacing a directory as a whole: killed at any rename, one whole directory is there, or comes back."""

import errno
import pathlib
import subprocess
import sys

import pytest

from bert.errors import InputError
from bert.interop import whole_directory

CHECKOUT = pathlib.Path(__file__).resolve().parents[3]

# Replaces the directory argv[1]; the process ends, as if killed, before the change to disk of the number argv[2].
KILLED = """
import os, pathlib, sys
from bert.interop import whole_directory
target, left = pathlib.Path(sys.argv[1]), int(sys.argv[2])
def watch(event, _):
    global left
    if event in ("os.rename", "shutil.rmtree", "os.mkdir"):
        left -= 1
        if left < 0:
            os._exit(9)
sys.addaudithook(watch)
with whole_directory.replacing(target) as new:
    (new / "a").write_text("new")
    (new / "b").write_text("new")
"""


def made(folder: pathlib.Path, text: str) -> pathlib.Path:
    folder.mkdir()
    for name in "ab":
        (folder / name).write_text(text)
    return folder


def contents(folder: pathlib.Path) -> dict[str, str]:
    return {entry.name: entry.read_text() for entry in folder.iterdir()}


def test_a_kill_at_any_moment_leaves_a_whole_directory(tmp_path):
    """Before each change to disk in turn, until one run is through: the older or the newer, whole, after `restore`."""
    found = []
    for number in range(20):
        parent = tmp_path / str(number)
        parent.mkdir()
        target = made(parent / "out", "old")
        ended = subprocess.run([sys.executable, "-c", KILLED, str(target), str(number)], cwd=CHECKOUT, check=False)
        absent = not target.exists()
        whole_directory.restore(target, "ab")
        assert contents(target) in ({"a": "old", "b": "old"}, {"a": "new", "b": "new"})
        found.append((absent, contents(target)["a"]))
        with whole_directory.replacing(target) as new:
            (new / "a").write_text("newest")
        assert contents(target) == {"a": "newest"}
        assert [entry.name for entry in parent.iterdir()] == ["out"]
        if ended.returncode == 0:
            break
        assert ended.returncode == 9
    assert (True, "old") in found, "no run was killed between the two renames"
    assert found[-1] == (False, "new")


def test_only_what_is_whole_comes_back(tmp_path):
    """A directory that was being deleted is not brought back, and one that is there is not touched."""
    target, older = tmp_path / "out", tmp_path / ".out.replaced"
    whole_directory.restore(target, "ab")
    made(older, "old")
    (older / "b").unlink()
    whole_directory.restore(target, "ab")
    assert not target.exists()
    made(target, "new")
    (older / "b").write_text("old")
    whole_directory.restore(target, "ab")
    assert contents(target) == {"a": "new", "b": "new"}


def test_what_cannot_be_renamed_back_is_named(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    made(tmp_path / ".out.replaced", "old")
    monkeypatch.setattr(pathlib.Path, "rename", refuse)
    with pytest.raises(
        InputError, match=r"out: .* \.out\.replaced beside it cannot be renamed back \(Permission denied"
    ):
        whole_directory.restore(tmp_path / "out", "ab")


@pytest.mark.parametrize("place", ["file/out", "file/deeper/out", "/proc/out"])
def test_where_no_directory_can_be_made(tmp_path, place):
    """Told in one line when it is asked before, and when it is done; nothing is left behind."""
    (tmp_path / "file").write_text("a file")
    target = tmp_path / place  # an absolute place stays what it is
    said = rf"{target}: cannot be made or replaced \((Not a directory|No such file or directory|Permission denied)\)"
    with pytest.raises(InputError, match=said):
        whole_directory.check_replaceable(target, ())
    with pytest.raises(InputError, match=said), whole_directory.replacing(target):
        pytest.fail("there is nothing to write into")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_what_fails_leaves_no_trace(tmp_path):
    """Neither the directory nor those above it that were made for it; the line has the name that was asked for."""
    target = tmp_path / "a" / "b" / "out"
    full = rf"^{target}: cannot be written \(File too large\); make room, or choose"
    with pytest.raises(InputError, match=full), whole_directory.replacing(target):
        raise OSError(errno.EFBIG, "File too large")
    with pytest.raises(InputError, match=rf"^{target}/x: bad$"), whole_directory.replacing(target) as new:
        raise InputError(f"{new / 'x'}: bad")
    with pytest.raises(KeyError), whole_directory.replacing(target):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_asking_leaves_no_trace(tmp_path):
    whole_directory.check_replaceable(tmp_path / "a" / "b" / "out", ())
    assert list(tmp_path.iterdir()) == []
