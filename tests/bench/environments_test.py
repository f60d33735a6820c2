"""Environments of others: made once, made again when their list changes, and never taken for finished before that."""

import pathlib
import subprocess

import pytest

from bench import environments
from bert.errors import RunError


class Commands:
    """Stands for `subprocess.run`: makes what venv would make; what holds a word of ``broken`` ends with code 1."""

    def __init__(self):
        self.told: list[list[str]] = []
        self.broken: tuple[str, ...] = ()

    def __call__(self, command, **settings):
        words = [str(word) for word in command]
        self.told.append(words)
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


def test_an_environment_is_made_once(tmp_path, commands):
    """From its whole list and nothing else; the second time it is there. A changed list makes it anew."""
    python = environments.python_of("torch", tmp_path)
    made = commands.told.copy()
    assert python == str(tmp_path / "torch" / "bin" / "python")
    assert made[0][-2:] == ["venv", str(tmp_path / "torch")]
    assert {"--no-deps", "--requirement", str(pathlib.Path(environments.__file__).with_name("torch.txt"))} <= set(
        made[1]
    )
    environments.python_of("torch", tmp_path)
    assert commands.told == made
    (tmp_path / "torch" / "ready").write_text("older==1.0\n")
    environments.python_of("torch", tmp_path)
    assert commands.told == made * 2


def test_pip_installs_where_uv_cannot(tmp_path, commands):
    commands.broken = ("--torch-backend=cpu",)
    environments.python_of("torch", tmp_path)
    assert commands.told[-1][1:4] == ["-m", "pip", "install"]
    assert (tmp_path / "torch" / "ready").exists()


def test_a_list_that_cannot_be_installed(tmp_path, commands):
    """One line with the installer's last words; the next try begins again."""
    commands.broken = ("install",)
    with pytest.raises(RunError, match=r"flax\.txt cannot be installed into .*flax: error: no network"):
        environments.python_of("flax", tmp_path)
    commands.broken = ()
    before = len(commands.told)
    environments.python_of("flax", tmp_path)
    assert len(commands.told) > before


def test_a_folder_that_is_no_environment_is_kept(tmp_path, commands):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "notes.txt").touch()
    with pytest.raises(RunError, match="torch: is no environment"):
        environments.python_of("torch", tmp_path)
    assert (tmp_path / "torch" / "notes.txt").exists()


@pytest.mark.parametrize("name", ["torch", "flax", "keras"])
def test_the_lists_are_pinned(name):
    """One version a package and Python, and no address."""
    lines = pathlib.Path(environments.__file__).with_name(f"{name}.txt").read_text().splitlines()
    packages = [line for line in lines if not line.startswith("#")]
    assert all("==" in line and "/" not in line and "@" not in line for line in packages)
    assert len(set(packages)) == len(packages)
