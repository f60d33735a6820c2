"""Locks of files: what may be one, who holds it, and when it ends."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

from bert import files
from bert.errors import InputError

CHECKOUT = pathlib.Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_no_plain_file_is_no_lock(tmp_path, kind):
    (tmp_path / "victim").write_text("theirs")
    path = tmp_path / "lock"
    make = {"link": lambda: path.symlink_to("victim"), "folder": path.mkdir, "pipe": lambda: os.mkfifo(path)}
    make[kind]()
    with pytest.raises(InputError, match="not a plain file"), files.lock(path, "busy"):
        pytest.fail("it is held")
    assert (tmp_path / "victim").read_text() == "theirs"


def test_a_lock_is_held_once_and_keeps_its_text(tmp_path):
    path = tmp_path / "lock"
    path.write_text("theirs")
    with files.lock(path, "busy") as is_new, pytest.raises(InputError, match="busy"), files.lock(path, "busy"):
        pytest.fail("it is held twice")
    assert not is_new
    assert path.read_text() == "theirs"
    with files.lock(tmp_path / "a" / "new", "busy") as is_new:
        assert is_new


def test_a_lock_ends_with_its_holder_however_that_ends(tmp_path):
    """Also while a process that it has started goes on."""
    code = "import os, pathlib, subprocess, sys; from bert import files\n"
    code += "with files.lock(pathlib.Path(sys.argv[1]), 'busy'):\n"
    code += "    print(subprocess.Popen(['sleep', '60'], stdout=2).pid, flush=True)\n    os.read(0, 1)"
    command = [sys.executable, "-c", code, tmp_path / "lock"]
    with subprocess.Popen(command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        started = int(holder.stdout.readline())
        with pytest.raises(InputError, match="busy"), files.lock(tmp_path / "lock", "busy"):
            pytest.fail("it is held twice")
        holder.kill()
        holder.wait()
        with files.lock(tmp_path / "lock", "busy") as is_new:
            assert not is_new
        os.kill(started, signal.SIGKILL)
