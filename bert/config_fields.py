"""Settings are dataclass fields, each with a comment; config files take their defaults and comments from there.

@dataclasses.dataclass(frozen=True)
class OptimizerSettings:
    learning_rate: float = 1e-4  # the peak

add(config, OptimizerSettings, section="optimizer")              # config.optimizer.learning_rate == 1e-4
build(OptimizerSettings, config.optimizer, total_steps=1000)     # and back
"""

import dataclasses
import functools
import inspect
import re
import types
import typing
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from ml_collections import ConfigDict, config_dict

Settings = TypeVar("Settings")

# Where settings were declared -> their comments, of the config file that was executed last; for --help.
declared: dict[str, dict[str, str]] = {}


def add(
    config: ConfigDict,
    kind: type,
    *names: str,
    section: str = "",
    without: Collection[str] = (),
    unset: Collection[str] = (),
) -> None:
    """Adds the fields of a settings dataclass with their defaults; those without a default are left to the caller.

    Args:
      names: the fields to add; empty: all but those ``without``.
      section: name of the part of the config to add them to, which is made where it does not exist.
      unset: fields to add without a value, whatever their default. None as a default means the same.
    """
    if section and section not in config:
        config[section] = ConfigDict()
    part, annotations = config[section] if section else config, typing.get_type_hints(kind)
    described = _described(kind)
    for field in dataclasses.fields(kind):
        if (names and field.name not in names) or field.name in without or field.default is dataclasses.MISSING:
            continue
        value, annotation = field.default, annotations[field.name]
        if value is None or field.name in unset:
            if isinstance(annotation, types.UnionType):  # ``bool | None`` -> ``bool``
                annotation = next(option for option in typing.get_args(annotation) if option is not types.NoneType)
            value = config_dict.placeholder(annotation)
        part[field.name] = value
        place, text = described[field.name]
        declared.setdefault(place, {})[f"{section}.{field.name}".lstrip(".")] = text


@functools.cache
def _described(kind: type) -> dict[str, tuple[str, str]]:
    """Field -> (where it is declared, its comment)."""
    described = dict[str, tuple[str, str]]()
    for base in filter(dataclasses.is_dataclass, reversed(kind.__mro__)):
        place = f"{base.__module__.replace('.', '/')}.py, {base.__name__}"
        described |= {name: (place, text) for name, text in comments(inspect.getsource(base), r"(\w+): ").items()}
    return described


def remove(config: ConfigDict, section: str) -> None:
    """Takes a part of the config away, with its comments."""
    del config[section]
    for place, texts in declared.items():
        declared[place] = {name: text for name, text in texts.items() if not name.startswith(f"{section}.")}


def build(kind: type[Settings], config: Mapping[str, Any], **others: Any) -> Settings:
    """The dataclass with the settings of its fields' names, and ``others``, which are no settings or replace them."""
    names = [field.name for field in dataclasses.fields(kind) if field.name in config]  # type: ignore[arg-type]
    return kind(**{name: config[name] for name in names} | others)


def flatten(config: ConfigDict, prefix: str = "") -> dict[str, Any]:
    """Dotted name -> value for every setting of a config, sections opened, in alphabetical order."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        section = isinstance(value, ConfigDict) and len(value)
        flat |= flatten(value, f"{prefix}{name}.") if section else {prefix + name: value}
    return flat


def comments(source: str, assignment: str) -> dict[str, str]:
    """Name -> its comment (lines above the assignment and the end of its line; "" for none), in order of the source.

    Args:
      assignment: regular expression of a line's beginning up to the value; its first group is the name.
    """
    by_name: dict[str, str] = {}
    above: list[str] = []
    for line in source.splitlines():
        if match := re.match(rf" {{4}}{assignment}", line):
            _, _, behind = line.partition("  # ")
            by_name[match[1]] = " ".join([*above, behind]).strip()
        above = [*above, line.strip("# ")] if re.match(r" {4}# ", line) else []
    return by_name
