"""Fills the template of a page: its style, its scripts and its data, all in one HTML file."""

import base64
import importlib.resources
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert import files
from bert.training.run_directory import CHECKPOINTS, MODEL

LIMIT = 5_000_000  # bytes of a page; a class opens it on old laptops and sends it by mail


def filled(package: str, template: str, parts: Mapping[str, str]) -> str:
    """A template of a package with ``parts`` in the places ``/*NAME*/`` of their names."""
    return re.sub(r"/\*([A-Z]+)\*/", lambda match: parts[match[1]], read(package, template))


def read(package: str, *names: str) -> str:
    """The files, one behind the other, that lie beside the modules of a package."""
    return "\n".join((importlib.resources.files(package) / name).read_text(encoding="utf-8") for name in names)


def island(data: Any) -> str:
    """Data as JSON for a script element; no "<" in it can end that element."""
    return files.json_text(data).replace("<", "\\u003c")


def encoded(array: np.ndarray, dtype: str = "<f4") -> str:
    """Base64 of the numbers, little-endian."""
    return base64.b64encode(np.ascontiguousarray(array, dtype).tobytes()).decode()


def name_of(source: str) -> str:
    """What a page calls the model of a folder; one of a run has the run's name."""
    folder = pathlib.Path(source).resolve()
    return folder.parent.name if folder.name in (MODEL, CHECKPOINTS) else folder.name
