import pathlib
import shutil
import subprocess

import pytest

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent


def test_clean_takes_what_was_built_and_nothing_else(tmp_path):
    """Folders that a checkout does not have are no error; sources, prepared text and runs stay."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    shutil.copy(CHECKOUT / "Makefile", tmp_path)
    for name in ("bert/__pycache__/a.pyc", "bert/a.py", "prepared/a/manifest.json", "runs/a/config.json", "build/a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    done = subprocess.run(["make", "clean"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    left = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["Makefile", "bert/a.py", "prepared/a/manifest.json", "runs/a/config.json"]
