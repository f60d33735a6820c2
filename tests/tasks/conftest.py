"""What tests of tasks share: the tiny reference model, files, and the commands on a finished model."""

import importlib
import json
import pathlib

import pytest


@pytest.fixture(scope="session")
def tiny_directory() -> pathlib.Path:
    """The model directory of the tiny reference BERT; not to be written to."""
    return pathlib.Path(__file__).resolve().parents[1] / "golden" / "tiny_bert"


@pytest.fixture
def write(tmp_path):
    """write("a.csv", content) -> path of a new file in the test's folder; texts become UTF-8 as they are."""

    def one(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return one


class Commands:
    """A task's evaluate.py, as the commands use it; files are in one folder."""

    def __init__(self, task: str, folder: pathlib.Path):
        self.module = importlib.import_module(f"tasks.{task}.evaluate")
        self.folder = folder

    def write(self, name: str, content) -> str:
        """Path of a new file with a text, or with a value as JSON."""
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), newline="")
        return str(path)

    def evaluator(self, model, batch_size: int = 32, **changes):
        return self.module.EVALUATOR(model, changes, batch_size)

    def read(self, model, path: str, labelled: str, **changes):
        """The examples of a file."""
        return self.evaluator(model, **changes).read(path, split="test", labelled=labelled)

    def evaluate(self, model, path: str, batch_size: int = 32, metrics=(), **changes):
        evaluator = self.evaluator(model, batch_size, **changes)
        return evaluator.evaluate(evaluator.read(path, split="test", labelled="needed"), metrics)

    def check_metrics(self, model, path: str, *names: str) -> None:
        evaluator = self.evaluator(model)
        evaluator.check_metrics(names, evaluator.read(path, split="test", labelled="needed"))

    def predict(self, model, path: str, output: str, format: str, *, batch_size: int = 32, **how):
        """name -> text of each file that was written; ``how``: of `Evaluator.write_predictions`."""
        evaluator = self.evaluator(model, batch_size)
        labelled = "if there" if how.get("rank") == "disagreement" else "no"
        examples = evaluator.read(path, split="test", labelled=labelled)
        target = self.folder / "out" / output
        written = evaluator.write_predictions(target, examples, format, **how)
        assert {file.name for file in (self.folder / "out").iterdir()} == {file.name for file in written}
        return {file.name: file.read_bytes().decode() for file in written}


@pytest.fixture
def commands(tmp_path):
    """commands("squad"): its `Commands`."""
    return lambda task: Commands(task, tmp_path)
