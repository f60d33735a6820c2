"""Names of a classifier's classes in config.json: id2label, label2id and num_labels, in all their states of repair.

Source: transformers ``configuration_utils.py`` (id2label decides how many classes there are; LABEL_0, LABEL_1, ...
stand for classes without a name, and its older versions left two of them in files of any number of classes).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bert.errors import InputError

KEYS = ("id2label", "label2id", "num_labels")
_STAND_IN = re.compile(r"LABEL_\d+")


def read(values: Mapping[str, Any], classes: int | None, source: str) -> tuple[str, ...]:
    """The name of each class, in order; where some or all have none, LABEL_0, LABEL_1, ... stand for them.

    Args:
      values: the parsed config.json.
      classes: rows of the classifier in the weights; None where there is none.
      source: the config file's name, for messages.

    Raises:
      InputError: the keys are no names and numbers, contradict each other, or are not those of the weights.
    """
    names, told = _names(values, source), _told_number(values, source)
    real = {i: name for i, name in names.items() if not _STAND_IN.fullmatch(name)}
    if told is not None and classes not in (None, told):
        raise InputError(f"{source}: num_labels is {told}, but the weights have {classes} classes; set it to {classes}")
    count = told if told is not None else classes
    if count is None:
        count = max(names, default=-1) + 1
    # Names without a num_labels are the whole list: two names for three classes belong to another model.
    wrong = real and (max(real) >= count or (told is None and len(names) != count))
    if wrong:
        raise InputError(
            f"{source}: id2label and label2id name {len(names)} classes (0 to {max(names)}), "
            f"{'num_labels says' if told is not None else 'the weights have'} {count}; name each once, from 0"
        )
    return tuple(real.get(i, f"LABEL_{i}") for i in range(count))


def write(labels: Sequence[str]) -> dict[str, Any]:
    """What config.json says of these names; nothing where there are none."""
    if not labels:
        return {}
    return {
        "id2label": {str(i): name for i, name in enumerate(labels)},
        "label2id": {name: i for i, name in enumerate(labels)},
    }


def _told_number(values: Mapping[str, Any], source: str) -> int | None:
    told = values.get("num_labels")
    if told is not None and (not isinstance(told, int) or isinstance(told, bool) or not 0 < told < 10**6):
        raise InputError(f"{source}: num_labels is {told!r}; it must be a whole number from 1 to 999,999")
    return told


def _names(values: Mapping[str, Any], source: str) -> dict[int, str]:
    """Number -> name from both mappings; a stand-in gives way to a name."""
    names: dict[int, str] = {}
    for key in ("label2id", "id2label"):
        given = values.get(key) or {}
        if not isinstance(given, Mapping):
            raise InputError(f"{source}: {key} is a {type(given).__name__}, not an object with names and numbers")
        for left, right in given.items():
            number, name = (right, left) if key == "label2id" else (left, right)
            if not re.fullmatch(r"\d{1,6}", str(number)):
                raise InputError(f"{source}: {key} holds {number!r} where a class's number belongs; write 0, 1, ...")
            i, name = int(number), str(name)
            known = names.get(i)
            if known is None or _STAND_IN.fullmatch(known):
                names[i] = name
            elif known != name and not _STAND_IN.fullmatch(name):
                raise InputError(
                    f"{source}: class {i} is {known!r} in label2id and {name!r} in id2label; make them the same"
                )
    return names
