"""What the tests of evaluations share: how the commands launch.evaluate and launch.predict use a task's module."""

import importlib
import json
import pathlib

import pytest


class Commands:
    """A task's module of tasks/evaluation/, as the commands use it; files are in one folder."""

    def __init__(self, task: str, folder: pathlib.Path):
        self.module = importlib.import_module(f"tasks.evaluation.{task}")
        self.folder = folder

    def write(self, name: str, content) -> str:
        """Path of a new file with a text, or with a value as JSON."""
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), newline="")
        return str(path)

    def read(self, model, path: str, labelled: str, **changes):
        """(the settings of reading, the examples)."""
        settings = self.module.settings_of(model, changes)
        return settings, self.module.read_examples(model, settings, path, "test", labelled)

    def evaluate(self, model, path: str, batch_size: int = 32, **changes):
        return self.module.evaluate(model, self.read(model, path, "needed", **changes)[1], batch_size=batch_size)

    def predict(self, model, path: str, output: str, format: str, *, details: bool = False, batch_size: int = 32):
        """name -> text of each file that was written."""
        settings, found = self.read(model, path, "no")
        target = self.folder / "out" / output
        written = self.module.write_predictions(target, model, found, settings, format, batch_size, details)
        assert {file.name for file in (self.folder / "out").iterdir()} == {file.name for file in written}
        return {file.name: file.read_bytes().decode() for file in written}


@pytest.fixture
def commands(tmp_path):
    """commands("squad"): its `Commands`."""
    return lambda task: Commands(task, tmp_path)
