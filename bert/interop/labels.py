"""Names of a classifier's classes in config.json: id2label, label2id and num_labels, complete, partial or absent.

Source: transformers ``configuration_utils.py`` (id2label decides how many classes there are; LABEL_0, LABEL_1, ...
stand for classes without a name, and its older versions left two of them in files of any number of classes).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from bert import surrogates
from bert.errors import InputError

KEYS = ("id2label", "label2id", "num_labels")


def stand_in(i: int) -> str:
    """What a class without a name is called. The stand-in of another class is a name like any other."""
    return f"LABEL_{i}"


def read(values: Mapping[str, Any], classes: int | None, source: str) -> tuple[str, ...]:
    """The name of each class, in order; where some or all have none, LABEL_0, LABEL_1, ... stand for them.

    Args:
      values: the parsed config.json.
      classes: rows of the classifier in the weights; None where there is none. Nothing uses the names then, and those
        that would be refused are left out.
      source: the config file's name, for messages.

    Raises InputError where the keys are no names and numbers, contradict each other, or are not the weights'.
    """
    try:
        return _read(values, classes, source)
    except InputError as error:
        if classes is not None:
            raise
        logging.info("%s (left out: the model has no classifier)", error)
        return ()


def _read(values: Mapping[str, Any], classes: int | None, source: str) -> tuple[str, ...]:
    names, told = _names(values, source), _told_number(values, source)
    real = {i: name for i, name in names.items() if name != stand_in(i)}
    if told is not None and classes not in (None, told):
        raise InputError(f"{source}: num_labels is {told}, but the weights have {classes} classes; set it to {classes}")
    count = told if told is not None else classes
    if count is None:
        count = max(names, default=-1) + 1
    # Names without a num_labels are the whole list: two names for three classes belong to another model.
    wrong = real and (max(real) >= count or (told is None and len(names) != count))
    if wrong:
        holders = " and ".join(key for key in ("id2label", "label2id") if values.get(key))
        name = "name" if " and " in holders else "names"
        raise InputError(
            f"{source}: {holders} {name} {len(names)} classes (0 to {max(names)}), "
            f"{'num_labels says' if told is not None else 'the weights have'} {count}; name each once, from 0"
        )
    return tuple(real.get(i, stand_in(i)) for i in range(count))


def _name(given: Any, said: str) -> str:
    """The name as text; ``said`` begins the message where it is none."""
    if isinstance(given, list | dict) or given is None:
        raise InputError(f"{said} {given!r}; a name is a text or a number")
    name = str(given)
    if surrogates.contains(name):  # no file in UTF-8 can hold it
        raise InputError(f"{said} {name!r}, which has an unpaired surrogate; write the whole character")
    return name


def write(labels: Sequence[str], source: str) -> dict[str, Any]:
    """What config.json says of these names; nothing where there are none. ``source``: the directory, for messages.

    Raises InputError where two classes have one name, of which label2id would keep one, or where a name is no text.
    """
    for i, name in enumerate(labels):
        _name(name, f"{source}: class {i} is called")
        if name in labels[:i]:
            raise InputError(
                f"{source}: classes {list(labels).index(name)} and {i} are both called {name!r}; give each its own name"
            )
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
    holders: dict[int, str] = {}  # number -> the mapping that its name is from
    for key in ("label2id", "id2label"):
        given = values.get(key) or {}
        if not isinstance(given, Mapping):
            raise InputError(f"{source}: {key} is a {type(given).__name__}, not an object with names and numbers")
        for left, right in given.items():
            number, name = (right, left) if key == "label2id" else (left, right)
            if not re.fullmatch(r"\d{1,6}", str(number)):
                raise InputError(f"{source}: {key} holds {number!r} where a class's number belongs; write 0, 1, ...")
            i, name = int(number), _name(name, f"{source}: {key} calls class {int(number)}")
            known = names.get(i)
            if known is None or known == stand_in(i):
                names[i], holders[i] = name, key
            elif name not in (known, stand_in(i)):
                other = f"and {name!r}" if holders[i] == key else f"in {holders[i]} and {name!r}"
                raise InputError(f"{source}: class {i} is {known!r} {other} in {key}; name each class once")
    return names
