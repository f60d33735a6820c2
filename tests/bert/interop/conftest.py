"""The tiny reference model, and ways of writing it differently."""

import json
import pathlib
import shutil
from collections.abc import Callable

import numpy as np
import pytest
import safetensors.numpy

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"


@pytest.fixture(scope="session")
def tiny_directory() -> pathlib.Path:
    """The model directory of the tiny reference BERT; not to be written to."""
    return GOLDEN / "tiny_bert"


@pytest.fixture(scope="session")
def tiny_tensors(tiny_directory) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(tiny_directory / "model.safetensors")


@pytest.fixture
def write(tiny_directory, tmp_path) -> Callable[..., pathlib.Path]:
    """write(tensors, name="copy", metadata=..., **config changes): the tiny model's directory with other weights."""

    def write_one(tensors, name="copy", metadata=None, **changes):
        folder = tmp_path / name
        shutil.copytree(tiny_directory, folder)
        safetensors.numpy.save_file(dict(tensors), folder / "model.safetensors", metadata=metadata)
        values = json.loads((folder / "config.json").read_text()) | changes
        (folder / "config.json").write_text(json.dumps(values))
        return folder

    return write_one
