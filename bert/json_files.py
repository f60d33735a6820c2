"""Reads small text and JSON files, with limits on size and depth.

This reads the small files next to weights and data: config.json, tokenizer.json, manifests, settings of runs. Damaged
or hostile files end in an error of one line: pipes, files that are too large, and values outside JSON are refused. The
callers check the values.
"""

import itertools
import json
import math
import pathlib
import re
import stat
import sys
from typing import Any

from bert import surrogates
from bert.errors import InputError, short_repr

LIMIT = 1 << 25  # bytes; half a million vocabulary entries at some 25 bytes each take 12 MB
DEPTH = 64  # settings and tokenizers need less than 10


def read_text(path: pathlib.Path, *, limit: int = LIMIT) -> str:
    """The text of a UTF-8 file, without a byte order mark.

    Raises FileNotFoundError where there is none, InputError for what cannot be read, or exceeds ``limit`` bytes.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for a writer
            raise InputError(f"{path}: no regular file but a folder, pipe or device; give a file")
        with open(path, "rb") as handle:
            raw = handle.read(limit + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the path and its permissions") from None
    if len(raw) > limit:
        raise InputError(f"{path}: larger than {limit:,} bytes, the most that is read; it is another file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: not UTF-8 at byte {error.start}; save the file as UTF-8") from None


def read_object(
    path: pathlib.Path, *, limit: int = LIMIT, finite: bool = True, allow_surrogates: bool = False
) -> dict[str, Any]:
    """The JSON object in a file.

    Args:
      finite: refuse NaN, Infinity and numbers too large for a float, which Python's `json` reads and writes.
      allow_surrogates: let unpaired surrogates pass, which no UTF-8 file and no terminal takes.

    Raises as `read_text` does, and InputError for nesting deeper than `DEPTH`, and for a name twice in an object.
    """
    value = _read(path, limit, finite, allow_surrogates)
    if not isinstance(value, dict):
        what = f"holds a {type(value).__name__}, not an object with names and values"
        raise InputError(f"{path}: {what}; correct the file")
    return value


def read_objects(path: pathlib.Path) -> list[dict[str, Any]]:
    """The list of JSON objects in a file. Raises as `read_object` does."""
    value = _read(path, LIMIT, True, False)
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InputError(f"{path}: holds a {type(value).__name__}, not a list of objects; correct the file")
    return value


def _read(path: pathlib.Path, limit: int, finite: bool, allow_surrogates: bool) -> Any:
    text = read_text(path, limit=limit)
    constant, number = (_refused, _finite) if finite else (None, None)
    try:
        value = json.loads(text, object_pairs_hook=object_once, parse_constant=constant, parse_float=number)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON ({error.msg}); the file is damaged or was edited") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}; correct the file") from None
    except RecursionError:
        raise InputError(f"{path}: nested deeper than {DEPTH} levels; the file is damaged") from None
    if isinstance(value, dict | list):
        _check_inside(value, path, finite)
    escape = None if allow_surrogates else re.search(r"\\u[dD][89a-fA-F]", text)
    if escape and surrogates.contains(json.dumps(value, ensure_ascii=False)):
        what = f"a text holds an unpaired surrogate ({escape[0]}..)"
        raise InputError(f"{path}: {what}, which is no character; correct it")
    return value


def object_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """For `json`: an object of these pairs. Raises ValueError where a name stands twice, which JSON would let pass."""
    value = dict(pairs)
    if len(value) < len(pairs):
        names: set[str] = set()
        twice = next(name for name, _ in pairs if name in names or names.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"the name {short_repr(twice)} stands twice in one object")
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refused(digits)


def _refused(number: str) -> float:
    raise ValueError(f"{number[:80]} is no finite number")


def _check_inside(value: Any, path: pathlib.Path, finite: bool) -> None:
    """Refuses deep nesting and integers beyond any float; by levels, for recursion has the limit that it looks for."""
    level: list[Any] = [value]
    for _ in range(DEPTH):
        boxes = (outer.values() if isinstance(outer, dict) else outer for outer in level)
        inner = list(itertools.chain.from_iterable(boxes))
        integers = [item for item in inner if type(item) is int] if finite else []
        if integers and max(max(integers), -min(integers)).bit_length() >= sys.float_info.max_exp:
            raise InputError(f"{path}: holds an integer larger than any float; correct the file")
        if not {dict, list} & set(map(type, inner)):
            return
        level = [item for item in inner if isinstance(item, dict | list)]
    raise InputError(f"{path}: nested deeper than {DEPTH} levels; the file is damaged")
