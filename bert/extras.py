"""Packages that only one feature needs, and that are therefore optional (`[project.optional-dependencies]`)."""

import importlib.util

from bert.errors import InputError


def check_installed(module: str, package: str, extra: str, what: str) -> None:
    """Checks that an optional package is there, without importing it.

    Args:
      module: name by which it is imported.
      package: name by which it is installed.
      extra: the extra of this project that holds it.
      what: what needs it, for the message.

    Raises:
      InputError: it is not installed.
    """
    if importlib.util.find_spec(module) is None:
        raise InputError(f"{what} needs the package {package}: pip install {package} (it is in the extra {extra!r})")
