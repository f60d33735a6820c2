"""Optional packages, each for one feature (`[project.optional-dependencies]`)."""

import importlib.util

from bert.errors import InputError


def check_installed(module: str, package: str, extra: str, what: str) -> None:
    """Raises InputError where an optional package is not installed; imports nothing.

    Args:
      module, package: the names by which it is imported and installed.
      extra: the extra of this project that holds it.
      what: what needs it, for the message.
    """
    if importlib.util.find_spec(module) is None:
        raise InputError(f"{what} needs the package {package}: pip install {package} (it is in the extra {extra!r})")
