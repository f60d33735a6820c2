"""The forms of what runs.py reads of files, as records.py describes them; a report leaves out what has another form."""

import math
from collections.abc import Callable, Mapping
from typing import Any

_LAST_STEP = 1 << 53  # beyond, a float does not tell steps apart


def number(value: Any) -> float | None:
    """A finite number as it is; None for anything else, and for whole numbers that no float holds."""
    if type(value) not in (int, float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


def is_step(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LAST_STEP


def start(line: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A line of starts.jsonl, and the keys that are left out."""
    return _chosen(line, _START)


def evaluation(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The object of evaluation.json, and the keys that are left out. Views look at those of their tasks themselves."""
    kept, dropped = _chosen(values, _EVALUATION)
    for name, is_right in (("scores", _is_score), ("baseline", _is_number)):
        if name in kept:
            wrong = [key for key, value in kept[name].items() if not is_right(value)]
            kept[name] = {key: value for key, value in kept[name].items() if key not in wrong}
            dropped += [f"{name}.{key}" for key in wrong]
    return kept, dropped


def is_row(line: Mapping[str, Any]) -> bool:
    """Whether a line of predictions has what each task writes."""
    here = line.keys() >= {"place", "loss", "truth", "predicted"}
    return here and isinstance(line["place"], str) and _is_number_or_null(line["loss"])


def _chosen(values: Mapping[str, Any], forms: Mapping[str, Callable[[Any], bool]]) -> tuple[dict[str, Any], list[str]]:
    wrong = [name for name, value in values.items() if value is not None and name in forms and not forms[name](value)]
    return {name: value for name, value in values.items() if name not in wrong}, wrong


def _is_number(value: Any) -> bool:
    return number(value) is not None


def _is_number_or_null(value: Any) -> bool:
    return value is None or _is_number(value)


def _is_score(value: Any) -> bool:
    if not isinstance(value, dict) or "value" not in value:
        return False
    texts = all(value.get(name) is None or isinstance(value[name], str) for name in ("reason", "label"))
    return texts and all(_is_number_or_null(value.get(name)) for name in ("value", "low", "high"))


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds) and not isinstance(value, bool)


_START = {
    "time": _is(str), "command": _is(list), "changed": _is(dict), "versions": _is(dict), "devices": _is(str),
    "data": _is(str), "loss": _is(str), "metric": _is(str),
}  # fmt: skip
_EVALUATION = {
    "time": _is(str), "step": is_step, "unit": _is(str), "scores": _is(dict), "baseline": _is(dict),
    "baseline_is": _is(str), "rows_scored": is_step, "rows_kept": is_step,
}  # fmt: skip
