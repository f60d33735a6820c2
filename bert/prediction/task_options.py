"""Settings of a task, as stored in config.json of a model directory."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from bert.errors import InputError

Options = TypeVar("Options")
_PARTS_OF_A_WINDOW = ("window_step", "max_question")


def read(kind: type[Options], extra: Mapping[str, Any], key: str, longest: int) -> Options:
    """The settings under ``key``; those that are not there have the defaults of ``kind``.

    Defaults that are parts of a window are lowered with it: models of few positions could read nothing else.

    Args:
      kind: a dataclass whose fields all have defaults, among them max_length.
      extra: config.json without what describes the encoder.
      longest: the model's positions, which bound max_length.

    Raises InputError for a value of another type than its default, or one that ``kind`` refuses.
    """
    stored = extra.get(key, {})
    fields = {field.name: field.default for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if not isinstance(stored, Mapping):
        raise InputError(f"{key} in config.json is {stored!r}; it must be an object with names and values")
    values = {name: value for name, value in stored.items() if name in fields}
    for name, value in values.items():
        if isinstance(fields[name], float) and type(value) is int:
            values[name] = float(value)
        elif type(value) is not type(fields[name]):
            raise InputError(f"{key} in config.json: {name} is {value!r}; it must be like {fields[name]!r}")
    default = fields["max_length"]
    assert isinstance(default, int)
    values["max_length"] = min(values.get("max_length", default), longest)
    for name in _PARTS_OF_A_WINDOW:
        if name in fields and name not in values and values["max_length"] < default:
            values[name] = max(1, fields[name] * values["max_length"] // default)
    return kind(**values)
