"""Files of settings in YAML or JSON: the recipe that they start from (``base``), and the settings that differ.

base: configs/table.py    or table, or pretrain:mini: what --config= takes
epochs: 5
optimizer:
    learning_rate: 1e-5   or optimizer.learning_rate: 1e-5

The type of a setting decides how its value is read: YAML's own rules make True of on, and a text of 1e-5. The
config.json of a run is such a file, too.
"""

import pathlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from ml_collections import ConfigDict

from bert import config_fields, json_files
from bert.errors import InputError, short_repr
from launch import foreign_flags
from launch.nearest import nearest

ENDINGS = (".yaml", ".yml", ".json")
BASE = "base"
_NOT_SET = object()  # of a run that left a setting open which its recipe sets
_EXAMPLE = "the file of settings that this one changes, such as configs/table.py"
_YES_NO = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


class Entry(NamedTuple):
    place: str  # the file, of YAML with the line
    name: str  # of a setting, with dots; or base
    value: Any  # a text as it is written, a list of texts, or None; in JSON also numbers, True and False


def read(path: pathlib.Path) -> tuple[Entry, list[Entry]]:
    """(the entry of base, the others) of a file. InputError where it is no such file, or has a name twice."""
    if path.suffix == ".json":
        from bert.training import run_directory  # JAX is slow to import

        values = json_files.read_object(path, finite=False)
        if run_directory.DATA in values and BASE not in values:
            return _of_run(path, {name: values[name] for name in values if name not in run_directory.RECORDED})
        entries = list(_of_json(path, values, ""))
    else:
        try:
            entries = list(_of_yaml(path))
        except RecursionError:  # an alias of what it is in
            raise InputError(f"{path}: nested without end; write each section once") from None
    seen: dict[str, Entry] = {}
    for entry in entries:
        if entry.name in seen:
            raise InputError(f"{entry.place}: {entry.name} is set twice, before in {seen[entry.name].place}")
        seen[entry.name] = entry
    base = seen.pop(BASE, None)
    if base is None:
        raise InputError(f"{path}: has no {BASE}; add {BASE}: and {_EXAMPLE}")
    if not isinstance(base.value, str) or base.value.partition(":")[0].endswith(ENDINGS):
        raise InputError(f"{base.place}: {BASE} is {short_repr(base.value)}; it must be {_EXAMPLE}")
    return base, list(seen.values())


def apply(entries: list[Entry], config: ConfigDict) -> None:
    """Changes the settings. InputError for a name that the config does not have, or a value of another type."""
    known = config_fields.flatten(config)
    for place, name, value in entries:
        if name not in known:
            raise InputError(f"{place}: unknown setting {name}{_advice(name, value, known)}")
        section_name, _, field = name.rpartition(".")
        section = config[section_name] if section_name else config
        if value is _NOT_SET:
            section[field] = None
            continue
        if value is None:
            if known[name] is not None:
                raise InputError(f"{place}: {name} has no value; give one, or remove the line")
            continue
        rule, converted = _converted(value, section.get_type(field))
        if rule:
            raise InputError(f"{place}: {name} is {short_repr(value)}; it must be {rule}")
        section[field] = converted


def _advice(name: str, value: Any, known: dict[str, Any]) -> str:
    """What to write instead of an unknown name, which may be another tool's."""
    if any(other.startswith(f"{name}.") for other in known):
        return "; it is a section: set its fields"
    if name == "workdir":
        return "; it is an option of the command: --workdir=RUN"
    if ours := foreign_flags.ours(name, known, ()):
        setting = f"write {ours.name}: {foreign_flags.converted(ours, str(value), known.get(ours.name))}"
        return "; " + "; ".join(filter(None, (setting if ours.value else "", ours.note)))
    return nearest(name, list(known))


def _converted(value: Any, kind: type) -> tuple[str, Any]:
    """("", the value for a setting of this type), or (the rule, None)."""
    text = value if isinstance(value, str) else None
    if kind is bool:
        answer = value if isinstance(value, bool) else _YES_NO.get((text or "").lower())
        return ("", answer) if answer is not None else ("true or false", None)
    if kind is int:
        is_whole = type(value) is int or re.fullmatch(r"[+-]?(0|[1-9][\d_]*)", text or "")
        return ("", int(value)) if is_whole else ("a whole number, in digits", None)
    if kind is float:
        try:
            return ("a number", None) if isinstance(value, bool) else ("", float(value))
        except (TypeError, ValueError):
            return "a number", None
    if kind is tuple:
        return ("", tuple(value)) if isinstance(value, list) else ("a list", None)
    rule = "one text, with commas between names" if isinstance(value, list) else "a text, in quotes"
    return ("", value) if isinstance(value, kind) else (rule, None)


def _of_json(path: pathlib.Path, values: dict[str, Any], prefix: str) -> Iterator[Entry]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _of_json(path, value, f"{prefix}{name}.")
        else:
            yield Entry(str(path), prefix + name, value)


def _of_run(path: pathlib.Path, values: dict[str, Any]) -> tuple[Entry, list[Entry]]:
    """The recipe and the settings of a run."""
    task = values.get("task")
    others = {None: "pretrain", "classification": "table", "pictures": "digits"}
    base = Entry(str(path), BASE, str(others.get(task, task)))
    return base, [Entry(str(path), name, _NOT_SET if value is None else value) for name, value in values.items()]


def _of_yaml(path: pathlib.Path) -> Iterator[Entry]:
    try:
        root = yaml.compose(json_files.read_text(path), Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        why = getattr(error, "problem", None) or "it holds several documents, or a character that YAML has not"
        raise InputError(f"{path}{line}: not YAML ({why}); mend it") from None
    if not isinstance(root, yaml.MappingNode):
        raise InputError(f"{path}: holds no names and values; write a line for each, such as epochs: 5")
    yield from _of_mapping(path, root, "")


def _of_mapping(path: pathlib.Path, mapping: yaml.MappingNode, prefix: str) -> Iterator[Entry]:
    for key, node in mapping.value:
        place = f"{path}:{key.start_mark.line + 1}"
        if not isinstance(key, yaml.ScalarNode):
            raise InputError(f"{place}: a name is no text; write NAME: VALUE")
        name = prefix + key.value
        if isinstance(node, yaml.MappingNode):
            yield from _of_mapping(path, node, f"{name}.")
        elif isinstance(node, yaml.SequenceNode):
            if not all(isinstance(item, yaml.ScalarNode) for item in node.value):
                raise InputError(f"{place}: {name} holds lists in a list; write a list of texts")
            yield Entry(place, name, [item.value for item in node.value])
        else:
            is_empty = node.style is None and node.value in ("", "~", "null", "Null", "NULL")
            yield Entry(place, name, None if is_empty else node.value)
