"""Environments of the peers: created once, again after a change of their list, and complete or not used."""

import pathlib
import subprocess

import pytest

from bench import environments
from bert.errors import RunError


class Commands:
    """Replaces `subprocess.run`: creates what venv creates; a command with a word of ``broken`` fails."""

    def __init__(self):
        self.calls: list[list[str]] = []
        self.broken: tuple[str, ...] = ()

    def __call__(self, command, **settings):
        words = [str(word) for word in command]
        self.calls.append(words)
        if "venv" in words:
            pathlib.Path(words[-1]).mkdir(parents=True)
            (pathlib.Path(words[-1]) / "pyvenv.cfg").touch()
        failed = any(word in self.broken for word in words)
        return subprocess.CompletedProcess(words, int(failed), "", "warning: slow\nerror: no network\n")


@pytest.fixture
def commands(monkeypatch):
    fake = Commands()
    monkeypatch.setattr(subprocess, "run", fake)
    return fake


def test_an_environment_is_created_once(tmp_path, commands):
    """From its complete list and nothing else, and again after the list has changed."""
    python = environments.python_of("torch", tmp_path)
    first = commands.calls.copy()
    assert python == str(tmp_path / "torch" / "bin" / "python")
    assert first[0][-2:] == ["venv", str(tmp_path / "torch")]
    assert {"--no-deps", "--requirement", str(pathlib.Path(environments.__file__).with_name("torch.txt"))} <= set(
        first[1]
    )
    environments.python_of("torch", tmp_path)
    assert commands.calls == first
    (tmp_path / "torch" / "ready").write_text("older==1.0\n")
    environments.python_of("torch", tmp_path)
    assert commands.calls == first * 2


def test_pip_installs_where_uv_cannot(tmp_path, commands):
    commands.broken = ("--torch-backend=cpu",)
    environments.python_of("torch", tmp_path)
    assert commands.calls[-1][1:4] == ["-m", "pip", "install"]
    assert (tmp_path / "torch" / "ready").exists()


def test_a_list_that_cannot_be_installed(tmp_path, commands):
    """The error has the last line of the installer; the next call tries again."""
    commands.broken = ("install",)
    with pytest.raises(RunError, match=r"flax\.txt .*no network"):
        environments.python_of("flax", tmp_path)
    commands.broken = ()
    before = len(commands.calls)
    environments.python_of("flax", tmp_path)
    assert len(commands.calls) > before


def test_a_folder_that_is_no_environment_is_kept(tmp_path, commands):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "notes.txt").touch()
    with pytest.raises(RunError, match=r"torch: .*environment"):
        environments.python_of("torch", tmp_path)
    assert (tmp_path / "torch" / "notes.txt").exists()


@pytest.mark.parametrize("name", ["torch", "flax", "keras", "trackers", "clusters"])
def test_the_lists_are_pinned(name):
    """One version per package, and no addresses."""
    lines = pathlib.Path(environments.__file__).with_name(f"{name}.txt").read_text().splitlines()
    packages = [line for line in lines if not line.startswith("#")]
    assert all("==" in line and "/" not in line and "@" not in line for line in packages)
    assert len(set(packages)) == len(packages)
