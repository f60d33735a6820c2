"""Files of settings: faults in them are one line; the help on them."""

import pathlib
import sys

import pytest

from bert import config_fields
from bert.errors import InputError
from launch import config_files


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("x.yaml", "steps: 3", "has no base"),
        ("x.json", '{"steps": true}', "has no base"),
        ("x.txt", "steps = = 3", "SyntaxError"),
        ("x.py", "def get_config():\n    return 1 / 0", "ZeroDivisionError"),
        ("y.py", "import no_such_module", "ModuleNotFoundError"),
        ("z.py", "steps = 3", "get_config"),
    ],
)
def test_a_file_that_is_no_config(tmp_path, monkeypatch, name, text, what):
    monkeypatch.delitem(sys.modules, "config_config", raising=False)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=rf"{name}.*({what})") as caught:
        config_files.settings_of(["prog", f"--config={tmp_path / name}", "--config.steps=3"], None)
    assert "\n" not in str(caught.value)


def help_on(path: str) -> list[str]:
    return [line.strip() for line in config_files.help_on(["prog", f"--config={path}"], None)]


def test_help_lists_each_setting_once_with_the_place_that_declares_it():
    """Those of the file that was named first, then of what it builds on; with the value of the file that was named."""
    lines = help_on("configs/bio_mrc.py")
    assert [line.split("  #")[0] for line in lines if line.startswith("batch_size = ")] == ["batch_size = 16"]
    headings = [line for line in lines if line.startswith("Settings in ")]
    assert headings[:2] == ["Settings in configs/bio_mrc.py:", "Settings in configs/questions.py:"]
    assert "Settings in bert/training/optim.py, OptimizerSettings:" in headings
    assert any(line.startswith("epochs = 3.0  # passes") for line in lines)


@pytest.mark.parametrize("name", sorted(path.stem for path in pathlib.Path("configs").glob("*.py")))
def test_help_has_a_comment_for_each_setting(name):
    path = pathlib.Path(f"configs/{name}.py")
    if "def get_config" not in path.read_text():
        pytest.skip("a part of other files")
    lines = [line for line in help_on(str(path)) if line and not line.startswith("Settings in ")]
    settings = config_fields.flatten(config_files.settings_of(["", f"--config={path}"], None))
    assert sorted(line.split()[0] for line in lines) == sorted(settings)
    assert [line for line in lines if "  # " not in line] == []
