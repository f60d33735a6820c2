"""Reads tables in JSON: one object per line (.jsonl), a list of objects, or objects by id (.json)."""

import json
from collections.abc import Mapping
from typing import Any

from bert.errors import InputError, listed
from bert.json_files import object_once
from tasks.files.cells import short
from tasks.files.records import Table, TableSettings, row_places, skipped
from tasks.files.text_lines import read_lines

MOST_EMPTY, MOST_TIMES = 1_000_000, 20  # cells that rows leave out: as many at most, or times those that they have
FILE_LIMIT = 1 << 29  # characters of a .json file, which is parsed as a whole; .jsonl has no limit
_NAMES = {list: "list", str: "text", int: "number", float: "number", bool: "true or false", type(None): "null"}


def read_jsonl(path: str, settings: TableSettings) -> Table:
    """An object a line."""
    lines = read_objects(path, settings)
    return _table(path, lines.rows, lines.places, lines.notes)


def read_objects(path: str, settings: TableSettings) -> Table:
    """An object a line, each with its own names alone; the table has no columns."""
    rows, places, blank = [], [], 0
    for number, line in enumerate(read_lines(path, settings.encoding), 1):
        if not line.strip():
            blank += 1
            continue
        place = f"{path}:{number}"
        try:
            row = json.loads(line, object_pairs_hook=object_once)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{place}: not JSON ({error}); each line must hold one object") from None
        rows.append(_object(row, place))
        places.append(place)
    return Table((), rows, places, skipped(path, blank), path)


def read_json(path: str, settings: TableSettings) -> Table:
    """A list of objects, or an object of objects whose keys become the column "id" (unless they have one)."""
    value = read_value(path, settings)
    if isinstance(value, Table):
        notes = (*value.notes, f"{path}: read as jsonl, an object a line")
        return _table(path, value.rows, value.places, notes)
    rows, notes = _rows(path, value)
    return _table(path, rows, row_places(path, len(rows)), notes)


def read_value(path: str, settings: TableSettings) -> Any:
    """The value that a .json file holds, [] of an empty file; or, of an object a line, the table of `read_objects`."""
    lines, length = [], 0
    for line in read_lines(path, settings.encoding):
        lines.append(line)
        length += len(line) + 1
        if length > FILE_LIMIT:
            raise InputError(f"{path}: longer than {FILE_LIMIT:,} characters; write it as .jsonl, an object a line")
    text = "\n".join(lines)
    del lines
    if not text.strip():
        return []
    way_out = "write a list of objects, or an object a line"
    try:
        return json.loads(text, object_pairs_hook=object_once)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data" and text.lstrip().startswith("{"):  # many files of lines are called .json
            return read_objects(path, settings)
        fault = f"{error.msg}, column {error.colno}"
        raise InputError(f"{path}:{error.lineno}: not JSON ({fault}); {way_out}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({error}); {way_out}") from None


def _table(path: str, rows: list[dict[str, Any]], places: list[str], notes: tuple[str, ...]) -> Table:
    """The table of rows that may leave out columns; what is left out is None."""
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    filled = sum(map(len, rows))
    if len(columns) * len(rows) - filled > max(MOST_EMPTY, MOST_TIMES * filled):
        raise InputError(
            f"{path}: {len(rows):,} rows have {len(columns):,} different names, nearly each of its own "
            f"({listed(map(short, columns), 3)}); names are columns, so write an id as a value"
        )
    for row in rows:
        if len(row) < len(columns):
            for name in columns:
                row.setdefault(name, None)
    return Table(columns, rows, places, notes, path)


def _rows(path: str, value: Any) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The rows of a JSON value, and notes."""
    if isinstance(value, list):
        return [_object(row, f"{path}: row {i}") for i, row in enumerate(value, 1)], ()
    if not isinstance(value, dict):
        raise InputError(f"{path}: a {_name(value)}; write a list of objects, or objects by id")
    lists = [name for name, inner in value.items() if isinstance(inner, list)]
    if len(lists) == 1 and all(isinstance(row, dict) for row in value[lists[0]]):
        return list(value[lists[0]]), (f"{path}: the rows are those of {lists[0]!r}",)
    if lists or (value and all(isinstance(row, dict) and _is_numbered(row) for row in value.values())):
        raise InputError(f"{path}: holds columns, not rows; write rows (pandas: orient='records', lines=True)")
    return [{"id": name} | _object(row, f"{path}: {short(name)}") for name, row in value.items()], ()


def _object(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{place}: a {_name(value)}, not an object; each row must be like {{'text': ..., ...}}")
    return value


def _is_numbered(row: Mapping[str, Any]) -> bool:
    return bool(row) and all(name.isdecimal() for name in row)


def _name(value: Any) -> str:
    return _NAMES.get(type(value), type(value).__name__)
