"""Files of settings: faults in them are one line; the help on them."""

import pathlib
import sys

import pytest

from bert.errors import InputError
from launch import config_files


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("x.yaml", "steps: 3", "SyntaxError|AttributeError|NameError"),
        ("x.json", '{"steps": true}', "NameError"),
        ("x.txt", "steps = = 3", "SyntaxError"),
        ("x.py", "def get_config():\n    return 1 / 0", "ZeroDivisionError"),
        ("y.py", "import no_such_module", "ModuleNotFoundError"),
        ("z.py", "steps = 3", "get_config"),
    ],
)
def test_a_file_that_is_no_config(tmp_path, monkeypatch, name, text, what):
    monkeypatch.delitem(sys.modules, "config_config", raising=False)
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=f"{name}.*({what})") as caught:
        config_files.settings_of(["prog", f"--config={tmp_path / name}", "--config.steps=3"], None)
    assert "\n" not in str(caught.value)


def test_help_lists_each_setting_once():
    """Those of the file that was named first, then of the files that it builds on what it does not change."""
    lines = [line.strip() for line in config_files.help_on(pathlib.Path("configs/bio_mrc.py"))]
    assert [line.split("  #")[0] for line in lines if line.startswith("batch_size = ")] == ["batch_size = 16"]
    assert "Settings in configs/recipe.py:" in lines
    assert any(line.startswith("epochs = 3.0  # passes") for line in lines)
