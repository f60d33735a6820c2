"""The Makefile, and the scripts in .ci that call it or are called by it."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent
PASSED, SKIPPED = "3 passed, 2 skipped in 1.25s", "2 skipped in 0.05s"


def make(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess:
    """Runs make with a copy of the Makefile in ``folder``, where .venv counts as ready."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    shutil.copy(CHECKOUT / "Makefile", folder)
    for name in ("requirements.lock", "pyproject.toml", ".venv/ready"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).touch()
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_clean_removes_what_was_built_and_nothing_else(tmp_path):
    """Folders that a checkout does not have are no error; sources, prepared text and runs stay."""
    for name in ("bert/__pycache__/a.pyc", "bert/a.py", "prepared/a/manifest.json", "runs/a/config.json", "build/a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    done = make(tmp_path, "clean")
    assert (done.returncode, done.stderr) == (0, "")
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    stay = ["bert/a.py", "prepared/a/manifest.json", "pyproject.toml", "requirements.lock", "runs/a/config.json"]
    assert left == ["Makefile", *stay]


@pytest.mark.parametrize(("installed", "lock"), [("", "requirements.lock"), ("a.lock", "a.lock")])
def test_the_environment_keeps_to_its_lock(tmp_path, installed, lock):
    """Packages of two locks would be a mixture; a later call needs no name."""
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "ready").write_text(installed)
    (tmp_path / "b.lock").touch()
    (tmp_path / "a.lock").touch()
    assert make(tmp_path, ".venv").returncode == 0
    assert make(tmp_path, ".venv", f"LOCK={lock}").returncode == 0
    done = make(tmp_path, ".venv", "LOCK=b.lock")
    assert done.returncode == 2
    assert re.match(rf"error: \.venv .*{lock}; .*make clean", done.stdout)


def test_help_lists_every_target(tmp_path):
    """In CONTRIBUTING, too, for the targets of tests."""
    targets = re.search(r"^\.PHONY: (.*)$", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)[1].split()
    shown = make(tmp_path, "help").stdout
    assert [name for name in targets if f"make {name} " not in shown] == []
    contributing = (CHECKOUT / "CONTRIBUTING.md").read_text()
    assert [name for name in targets if name.startswith("test") and f"\nmake {name} " not in contributing] == []


@pytest.mark.parametrize("target", ["glue", "glue-table", "glue-scratch"])
def test_glue_needs_the_folder_of_the_data(tmp_path, target):
    """One line; nothing outside the checkout is a default."""
    done = make(tmp_path, target)
    assert done.returncode == 2
    assert re.match(rf"error: GLUE .*make {target} GLUE=FOLDER.*\n", done.stdout)
    assert "../" not in (CHECKOUT / "Makefile").read_text()


def test_the_quick_tests_exist():
    folders = re.search(r"^QUICK := (.*)$", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert folders
    assert [folder for folder in folders if not (CHECKOUT / folder).is_dir()] == []


@pytest.mark.parametrize(
    ("slow", "alone", "code"), [(PASSED, PASSED, 0), (SKIPPED, PASSED, 1), (PASSED, SKIPPED, 1), ("", "", 1)]
)
def test_ci_fails_if_a_run_of_pytest_passes_no_test(tmp_path, slow, alone, code):
    """A run that skips everything succeeds for pytest; the other run of the same target does not make up for it."""
    (tmp_path / "make").write_text(
        f'#!/bin/sh\ncase $1 in test) echo "{PASSED}";; test-slow) echo "{slow}"; echo "{alone}";; esac\n'
    )
    (tmp_path / "make").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run([CHECKOUT / ".ci" / "run"], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == code
    assert ("make test-slow" in done.stderr) == bool(code)
