"""Finds, checks and reads the file of settings that ``--config=FILE`` names."""

import os
import pathlib
import re
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from absl import flags as absl_flags
from ml_collections import ConfigDict, config_flags

from bert import config_fields
from bert.errors import InputError
from launch import value_files
from launch.commands import CHECKOUT

# Python's message on a value of the wrong type -> the rule.
_RULES = {
    r"invalid literal for int\(\) with base 10: .*": "must be a whole number, in digits",
    r"could not convert string to float: .*": "must be a number",
    r"get_config\(\) takes 0 positional arguments but 1 was given": "this file takes no :NAME behind it",
    r"\('Non-boolean argument to boolean flag', .*\)": "must be True or False",
}


def names_file(word: str) -> bool:
    """Whether a word of the command line is ``--config=FILE``."""
    return re.match(r"--?config=", word) is not None


def located(path: str) -> str:
    """A path of a file of settings, with its ``:argument``: of the current folder, else of the checkout, where "table"
    or table.py is configs/table.py. Unchanged where there is no such file."""
    name, colon, argument = _parted(path)
    recipes = CHECKOUT / "configs"
    for place in (pathlib.Path(name), CHECKOUT / name, recipes / name, recipes / f"{name}.py"):
        if name and place.is_file():
            return f"{_from_here(place)}{colon}{argument}"
    return path


def _parted(path: str) -> tuple[str, str, str]:
    """(file, ":", argument) of "FILE:ARGUMENT"; the colon behind the letter of a drive of Windows is the file's."""
    start = 2 if re.match(r"[A-Za-z]:[\\/]", path) else 0
    name, colon, argument = path[start:].partition(":")
    return path[:start] + name, colon, argument


def _from_here(path: pathlib.Path) -> pathlib.Path:
    """A path as it is named from the current folder, where it is inside; on Windows without a drive, for
    ml_collections takes all behind the first colon for an argument."""
    here = pathlib.Path.cwd()
    if path.is_relative_to(here):
        return path.relative_to(here)
    if path.drive and path.drive != here.drive:
        raise InputError(f"--config={path}: is not on the drive of the current folder, {here.drive}; copy it there")
    return pathlib.Path(os.path.relpath(path)) if path.drive else path


def path_of(argv: Sequence[str], default: str | None) -> str | None:
    """FILE of the last ``--config=FILE``, without its ``:argument``; else the default's."""
    path = ([default] + [word.split("=", 1)[1] for word in argv[1:] if names_file(word)])[-1]
    return _parted(path)[0] if path else path


def check(argv: Sequence[str], default: str | None) -> None:
    """Refuses a command line that names no config file, or one that does not exist."""
    path = path_of(argv, default)
    if path is None or any(re.fullmatch(r"--?config(=(:.*)?)?", word) for word in argv[1:]):
        raise InputError("--config=FILE is missing: name a file such as configs/quickstart.py; see --help")
    if path and not pathlib.Path(path).is_file():
        there = [str(other) for other in pathlib.Path(path).parent.glob("*.py") if b"get_config" in other.read_bytes()]
        near = f"there are: {', '.join(sorted(there))}" if there else f"recipes: {', '.join(recipes())}"
        raise InputError(f"--config={path}: no such file; {near}")


def recipes() -> list[str]:
    """The names of the checkout's files of settings, as ``--config=NAME`` takes them."""
    files = (CHECKOUT / "configs").glob("*.py")
    return sorted(file.stem for file in files if "def get_config(" in file.read_text(encoding="utf-8"))


def settings_of(argv: Sequence[str], default: str | None) -> ConfigDict:
    """The settings of the config file, without the changes of the command line."""
    path = path_of(argv, default)
    if path and path.endswith(value_files.ENDINGS):
        base, entries = _base_and_entries(path)
        config = settings_of(["", f"--config={base}"], None)
        value_files.apply(entries, config)
        return config
    config_fields.declared.clear()
    only_files = [argv[0], *filter(names_file, argv[1:])]
    values = cast(Any, absl_flags.FlagValues)()
    try:
        with warnings.catch_warnings():  # newer Pythons warn about how ml_collections loads the file
            warnings.filterwarnings("ignore", "the load_module", DeprecationWarning)
            config_flags.DEFINE_config_file("config", default, flag_values=values, sys_argv=only_files)
            values(only_files)
    except absl_flags.Error as error:
        raise InputError(in_one_line(str(error))) from None
    except Exception as error:  # the file is code and may raise anything
        why = str(error).strip().splitlines()[0] if str(error) else "no message"
        raise InputError(
            f"--config={path_of(argv, default)}: not a Python file with settings ({type(error).__name__}: {why}); "
            "copy one of configs/ and change that, or write a file .yaml with base: and what differs"
        ) from None
    return values["config"].value


def _base_and_entries(path: str) -> tuple[str, list[value_files.Entry]]:
    """Of a file in YAML or JSON: the file that it starts from, as `located` finds it, and what it changes."""
    named, entries = value_files.read(pathlib.Path(path))
    base = located(named.value)
    if not pathlib.Path(base.partition(":")[0]).is_file():
        raise InputError(f"{named.place}: base is {named.value}, no such file; recipes: {', '.join(recipes())}")
    return base, entries


def in_one_line(text: str) -> str:
    """A message of absl on one line, without the traceback of a config file in its middle."""
    for message, rule in _RULES.items():
        text = re.sub(message, rule, text)
    lines = [line.strip() for line in text.removeprefix("flag ").splitlines() if line.strip()]
    if "Traceback" not in text:
        return " ".join(lines)
    return f"{lines[0].split(': Error whilst')[0]}: {lines[-1].split(': ', 1)[-1]}"


class Setting(NamedTuple):
    """A setting as ``--help`` and the reference show it."""

    name: str  # dotted
    value: Any  # None: not set
    comment: str


def described(argv: Sequence[str], default: str | None) -> dict[str, list[Setting]]:
    """Each setting of the config file once, by the place that declares it; empty where no file is named.

    Of several comments the one nearest to the config file counts.
    """
    path = path_of(argv, default)
    if not path or not pathlib.Path(path).is_file():
        return {}
    values = config_fields.flatten(settings_of(argv, default))
    if path.endswith(value_files.ENDINGS):
        path = _base_and_entries(path)[0].partition(":")[0]
    places, by_place = _comments(pathlib.Path(path)) | config_fields.declared, dict[str, list[Setting]]()
    for place, names in places.items():
        for name in filter(values.__contains__, names):
            comment = next((of[name] for of in places.values() if of.get(name)), "")
            by_place.setdefault(place, []).append(Setting(name, values.pop(name), comment))
    return by_place


def _comments(config_file: pathlib.Path) -> dict[str, dict[str, str]]:
    """Config file -> setting -> comment, of a file and of those that it builds on."""
    source = config_file.read_text(encoding="utf-8")
    places = {str(config_file): config_fields.comments(source, r"config\.(\w[\w.]*) = ")}
    for names in re.findall(r"^from configs import (.+)$", source, re.MULTILINE):
        for name in names.split(", "):
            places |= _comments(_from_here(CHECKOUT / "configs" / f"{name}.py"))
    return places
