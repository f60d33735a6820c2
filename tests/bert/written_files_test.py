"""A single file put in place: links, modes, devices and streams, and files that cannot be replaced."""

import errno
import os
import pathlib
import stat
import subprocess
import sys
import threading

import pytest

from bert import files

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


def test_a_file_keeps_its_links_and_mode(tmp_path):
    """A link stays one, also to nothing; a hard link of the older file keeps the older text."""
    file, link, hard, chain = (tmp_path / name for name in ("file", "link", "hard", "chain"))
    file.write_text("old")
    file.chmod(0o604)
    link.symlink_to("file")
    chain.symlink_to(link)
    hard.hardlink_to(file)
    (tmp_path / "to_nothing").symlink_to(tmp_path / "new" / "folder" / "x")
    for path in (chain, tmp_path / "to_nothing"):
        files.write(path, "new")
        assert path.is_symlink()
        assert path.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o604
    assert (file.read_text(), hard.read_text()) == ("new", "old")
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "loop"):
        with pytest.raises(OSError, match=r"directory|symbolic links"):
            files.write(path, "new")


def test_devices_and_pipes_are_written_into(tmp_path, terminal):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    files.write(pipe, "text")
    assert pipe.is_fifo()
    reader.join()
    assert read == ["text"]
    device, reading = terminal
    files.write(device, "text")
    assert device.is_char_device()
    assert os.read(reading, 9) == b"text"


def test_standard_output_that_is_a_file_keeps_what_was_printed(tmp_path):
    code = (
        "from bert import files; import pathlib\n"
        "print('before'); files.write(pathlib.Path('/dev/stdout'), 'text\\n'); print('after')"
    )
    with open(tmp_path / "log", "w") as log:
        subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, stdout=log, check=True)
    assert (tmp_path / "log").read_text() == "before\ntext\nafter\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize("refused", ["mkdir", "fchown", "replace"])
def test_a_file_that_cannot_be_replaced_is_written_into(tmp_path, monkeypatch, refused):
    """In a folder without write permission, of another owner, in a sticky folder or mounted by itself."""

    def refuse(*_, **__):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    file = tmp_path / "file"
    file.write_text("an older, longer text")
    inode = file.stat().st_ino
    monkeypatch.setattr(pathlib.Path if refused == "mkdir" else os, refused, refuse)
    files.write(file, "new")
    assert (file.read_text(), file.stat().st_ino) == ("new", inode)
    if refused == "mkdir":
        with pytest.raises(PermissionError):
            files.write(tmp_path / "another", "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
