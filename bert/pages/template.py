"""Fills the template of a page: its style, its scripts and its data, all in one HTML file."""

import importlib.resources
import re
from collections.abc import Mapping
from typing import Any

from bert import files


def filled(package: str, template: str, parts: Mapping[str, str]) -> str:
    """A template of a package with ``parts`` in the places ``/*NAME*/`` of their names."""
    return re.sub(r"/\*([A-Z]+)\*/", lambda match: parts[match[1]], read(package, template))


def read(package: str, name: str) -> str:
    """A file that lies beside the modules of a package."""
    return (importlib.resources.files(package) / name).read_text(encoding="utf-8")


def island(data: Any) -> str:
    """Data as JSON for a script element; no "<" in it can end that element."""
    return files.json_text(data).replace("<", "\\u003c")
