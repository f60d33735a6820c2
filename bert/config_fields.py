"""Settings are dataclass fields, each with a comment; config files take their defaults and comments from there.

@dataclasses.dataclass(frozen=True)
class OptimizerSettings:
    learning_rate: float = 1e-4  # the peak

add(config, OptimizerSettings, section="optimizer")              # config.optimizer.learning_rate == 1e-4
build(OptimizerSettings, config.optimizer, total_steps=1000)     # and back
"""

import dataclasses
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
      names: the fields to add; empty: all.
      section: name of the part of the config to add them to, which is made where it does not exist.
      without: fields to leave out.
      unset: fields to add without a value, whatever their default. None as a default means the same.
    """
    if section and section not in config:
        config[section] = ConfigDict()
    part, annotations = config[section] if section else config, typing.get_type_hints(kind)
    place = f"{kind.__module__.replace('.', '/')}.py, {kind.__name__}"
    of_fields = {name: text for base in kind.__mro__[-2::-1] for name, text in _of_fields(base).items()}
    for field in dataclasses.fields(kind):
        if (names and field.name not in names) or field.name in without or field.default is dataclasses.MISSING:
            continue
        no_value = field.default is None or field.name in unset
        part[field.name] = config_dict.placeholder(_type(annotations[field.name])) if no_value else field.default
        declared.setdefault(place, {})[f"{section}.{field.name}".lstrip(".")] = of_fields[field.name]


def build(kind: type[Settings], config: Mapping[str, Any], **others: Any) -> Settings:
    """The dataclass with the settings of its fields' names, and ``others``, which are no settings or replace them."""
    names = [field.name for field in dataclasses.fields(kind) if field.name in config]  # type: ignore[arg-type]
    return kind(**{name: config[name] for name in names} | others)


def flatten(config: ConfigDict, prefix: str = "") -> dict[str, Any]:
    """Dotted name -> value for every setting of a config, sections opened, in alphabetical order."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, ConfigDict) and len(value):
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
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


def _of_fields(kind: type) -> dict[str, str]:
    return comments(inspect.getsource(kind), r"(\w+): ") if dataclasses.is_dataclass(kind) else {}


def _type(annotation: Any) -> type:
    """``bool`` of ``bool | None``."""
    if isinstance(annotation, types.UnionType):
        annotation = next(kind for kind in typing.get_args(annotation) if kind is not types.NoneType)
    return typing.cast(type, annotation)
