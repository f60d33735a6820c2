"""Optional packages, each for one feature (`[project.optional-dependencies]`)."""

import importlib.util

from bert.errors import InputError


def check_installed(module: str, package: str, extra: str, what: str) -> None:
    """Raises InputError where ``module``, of ``package`` in ``extra``, is not installed, which ``what`` needs."""
    if importlib.util.find_spec(module) is None:
        raise InputError(f"{what} needs the package {package}: pip install {package} (it is in the extra {extra!r})")


def check_arrow(path: object, package: str = "pyarrow") -> None:
    """Raises InputError where a file needs ``package`` of the extra for tables of Arrow, which is not installed."""
    check_installed(package, package, "arrow", f"{path}: this kind of file")
