"""The tiny reference model, and ways of writing it differently."""

import functools
import json
import pathlib
import shutil
from collections.abc import Callable

import numpy as np
import pytest
import safetensors.numpy

from bert.interop.hugging_face import load_model_directory
from bert.interop.model_directory import ModelDirectory
from tests.bert.interop import every_head
from tests.bert.interop.formats import torch_writer

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"


@pytest.fixture(scope="session")
def tiny_directory() -> pathlib.Path:
    """The model directory of the tiny reference BERT; not to be written to."""
    return GOLDEN / "tiny_bert"


@pytest.fixture(scope="session")
def tiny_tensors(tiny_directory) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(tiny_directory / "model.safetensors")


@pytest.fixture(scope="session")
def golden() -> pathlib.Path:
    """Folder of reference values; tests/golden/README.md describes them."""
    return GOLDEN


@pytest.fixture
def tiny(tiny_directory) -> ModelDirectory:
    """The tiny reference BERT, read anew for each test: its arrays may be changed."""
    return load_model_directory(tiny_directory)


@pytest.fixture(scope="session")
def config():
    """That of `every_head`."""
    return every_head.config()


@pytest.fixture(scope="session")
def params(config):
    """Parameters of a model with every head; not to be written to."""
    return every_head.params(config)


@pytest.fixture
def write_torch(tmp_path):
    """write_torch(container, object, storages=key -> (count, bytes), ...): the path of a file with it."""
    return functools.partial(torch_writer.write_file, tmp_path)


@pytest.fixture
def write(tmp_path) -> Callable[..., pathlib.Path]:
    """write(tensors, name="copy", base="tiny_bert", metadata=..., **config changes): a directory with other weights.

    A change to None takes the key out of config.json.
    """

    def write_one(tensors, name="copy", base="tiny_bert", metadata=None, **changes):
        folder = tmp_path / name
        shutil.copytree(GOLDEN / base, folder)
        safetensors.numpy.save_file(dict(tensors), folder / "model.safetensors", metadata=metadata)
        values = json.loads((folder / "config.json").read_text()) | changes
        values = {key: value for key, value in values.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(values))
        return folder

    return write_one
