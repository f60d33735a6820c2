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


def described(path: str) -> dict[str, dict[str, config_files.Setting]]:
    """Place -> name -> setting."""
    by_place = config_files.described(["prog", f"--config={path}"], None)
    return {place: {setting.name: setting for setting in settings} for place, settings in by_place.items()}


def test_each_setting_is_described_once_by_the_place_that_declares_it():
    """Those of the file that was named first, then of what it builds on; with the value of the file that was named."""
    places = described("configs/bio_mrc.py")
    assert list(places)[:2] == ["configs/bio_mrc.py", "configs/questions.py"]
    assert "bert/training/optim.py, OptimizerSettings" in places
    assert [settings["batch_size"].value for settings in places.values() if "batch_size" in settings] == [16]
    (epochs,) = [settings["epochs"] for settings in places.values() if "epochs" in settings]
    assert epochs.value == 3.0
    assert epochs.comment.startswith("passes")


@pytest.mark.parametrize("name", sorted(path.stem for path in pathlib.Path("configs").glob("*.py")))
def test_help_has_a_comment_for_each_setting(name):
    path = pathlib.Path(f"configs/{name}.py")
    if "def get_config" not in path.read_text():
        pytest.skip("a part of other files")
    names = [setting for settings in described(str(path)).values() for setting in settings.values()]
    settings = config_fields.flatten(config_files.settings_of(["", f"--config={path}"], None))
    assert sorted(setting.name for setting in names) == sorted(settings)
    assert [setting.name for setting in names if not setting.comment] == []
