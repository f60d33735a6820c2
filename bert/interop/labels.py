"""Names of a classifier's classes in config.json: id2label, label2id and num_labels, complete, partial or absent.

id2label decides the number of classes. LABEL_0, LABEL_1, ... are classes without a name; older versions of transformers
wrote two of them whatever the number of classes. Source: transformers ``configuration_utils.py``.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from bert import surrogates
from bert.errors import InputError, check_range

KEYS = ("id2label", "label2id", "num_labels")


def stand_in(i: int) -> str:
    """The name of a class without a name. The stand-in of another class is a name like any other."""
    return f"LABEL_{i}"


def read(values: Mapping[str, Any], classes: int | None, source: str) -> tuple[str, ...]:
    """The name of each class, in order; LABEL_0, LABEL_1, ... where there is none.

    ``values``: the parsed config.json. ``classes``: rows of the classifier in the weights; None where there is none:
    names that would be refused are then left out, because nothing uses them.

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
    names, number = _names(values, source), values.get("num_labels")
    if number is not None:
        check_range(f"{source}: num_labels", number, at_least=1, at_most=999_999, whole=True)
        if classes not in (None, number):
            both = f"num_labels is {number}, but the weights have {classes} classes"
            raise InputError(f"{source}: {both}; set it to {classes}")
    count = number or classes or max(names, default=-1) + 1
    real = {i: name for i, name in names.items() if name != stand_in(i)}
    # Names without a num_labels are the whole list: two names for three classes belong to another model.
    if real and (max(real) >= count or (number is None and len(names) != count)):
        holders = " and ".join(key for key in ("id2label", "label2id") if values.get(key))
        rule = f"{'the weights have' if number is None else 'num_labels says'} {count}"
        held = f"{holders} {'name' if ' ' in holders else 'names'} {len(names)} classes (0 to {max(names)})"
        raise InputError(f"{source}: {held}, {rule}; name each once, from 0")
    return tuple(real.get(i, stand_in(i)) for i in range(count))


def _names(values: Mapping[str, Any], source: str) -> dict[int, str]:
    """Number -> name from both mappings; a stand-in gives way to a name."""
    names: dict[int, tuple[str, str]] = {}  # number -> its name, and the mapping that has it
    for key in ("label2id", "id2label"):
        mapping = values.get(key) or {}
        if not isinstance(mapping, Mapping):
            raise InputError(
                f"{source}: {key} is a {type(mapping).__name__}, not an object with names and numbers; correct it"
            )
        for left, right in mapping.items():
            number, name = (right, left) if key == "label2id" else (left, right)
            if not re.fullmatch(r"\d{1,6}", str(number)):
                raise InputError(f"{source}: {key} holds {number!r} where a class's number belongs; write 0, 1, ...")
            i = int(number)
            text, (known, holder) = _text(name, f"{source}: {key} calls class {i}"), names.get(i, (stand_in(i), key))
            if known == stand_in(i):
                names[i] = text, key
            elif text not in (known, stand_in(i)):
                where = "" if holder == key else f" in {holder}"
                raise InputError(f"{source}: class {i} is {known!r}{where} and {text!r} in {key}; name each class once")
    return {i: name for i, (name, _) in names.items()}


def _text(name: Any, place: str) -> str:
    """The name as text; ``place`` begins the message where it is none."""
    if isinstance(name, list | dict) or name is None:
        raise InputError(f"{place} {name!r}; a name is a text or a number")
    text = str(name)
    if surrogates.contains(text):  # no file in UTF-8 can hold it
        raise InputError(f"{place} {text!r}, which has an unpaired surrogate; write the whole character")
    return text


def write(names: Sequence[str], source: str) -> dict[str, Any]:
    """The keys of config.json for these names; empty without any. InputError for a name of two classes, or no text."""
    for i, name in enumerate(names):
        _text(name, f"{source}: class {i} is called")
        if (first := list(names).index(name)) < i:
            raise InputError(f"{source}: classes {first} and {i} are both called {name!r}; give each its own name")
    numbers = {name: i for i, name in enumerate(names)}
    return {"id2label": {str(i): name for name, i in numbers.items()}, "label2id": numbers} if names else {}
