"""What tests of tasks share: the tiny reference model."""

import pathlib

import pytest


@pytest.fixture(scope="session")
def tiny_directory() -> pathlib.Path:
    """The model directory of the tiny reference BERT; not to be written to."""
    return pathlib.Path(__file__).resolve().parents[1] / "golden" / "tiny_bert"
