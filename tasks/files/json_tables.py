"""Tables in JSON: an object a line (.jsonl), a list of objects, or objects by id (.json)."""

import json
from collections.abc import Mapping
from typing import Any

from bert.errors import InputError, listed
from bert.json_files import object_once
from tasks.files.records import Table, TableSettings, short
from tasks.files.text_lines import read_lines

MOST_EMPTY, MOST_TIMES = 1_000_000, 20  # cells that rows leave out: as many at most, or times those that they have
FILE_LIMIT = 1 << 29  # characters of a .json file, which is parsed as a whole; .jsonl has no limit


def read_jsonl(path: str, settings: TableSettings) -> Table:
    """An object a line. Raises InputError with FILE:LINE for a line that is none."""
    rows, places, blank = [], [], 0
    for number, line in enumerate(read_lines(path, settings.encoding), 1):
        if not line.strip():
            blank += 1
            continue
        where = f"{path}:{number}"
        try:
            row = json.loads(line, object_pairs_hook=object_once)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not JSON ({error}); each line must hold one object") from None
        if not isinstance(row, dict):
            raise InputError(f"{where}: a {_kind(row)}, not an object; each line must be like {{'text': ..., ...}}")
        rows.append(row)
        places.append(where)
    notes = (f"{path}: {blank:,} blank {'line was' if blank == 1 else 'lines were'} skipped",) if blank else ()
    return table(path, rows, places, notes)


def read_json(path: str, settings: TableSettings) -> Table:
    """A list of objects, or an object of objects whose keys become the column "id" (unless they have one)."""
    lines, length = [], 0
    for line in read_lines(path, settings.encoding):
        lines.append(line)
        length += len(line) + 1
        if length > FILE_LIMIT:
            raise InputError(f"{path}: longer than {FILE_LIMIT:,} characters; write it as .jsonl, an object a line")
    text = "\n".join(lines)
    del lines
    try:
        value = json.loads(text, object_pairs_hook=object_once)
    except (ValueError, RecursionError) as error:
        # Many files of an object a line are called .json.
        if getattr(error, "msg", "") == "Extra data" and text.lstrip().startswith("{"):
            lined = read_jsonl(path, settings)
            return lined._replace(notes=(*lined.notes, f"{path}: read as jsonl, an object a line"))
        raise InputError(f"{path}: not JSON ({error}); write a list of objects, or use .jsonl") from None
    notes: list[str] = []
    rows = _rows(path, value, notes)
    return table(path, rows, [f"{path}: row {i}" for i in range(1, len(rows) + 1)], tuple(notes))


def table(path: str, rows: list[dict[str, Any]], places: list[str], notes: tuple[str, ...]) -> Table:
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


def _rows(path: str, value: Any, notes: list[str]) -> list[dict[str, Any]]:
    if isinstance(value, Mapping):
        lists = [name for name, inner in value.items() if isinstance(inner, list)]
        if len(lists) == 1 and all(isinstance(row, dict) for row in value[lists[0]]):
            notes.append(f"{path}: the rows are those of {lists[0]!r}")
            return value[lists[0]]
        if lists or (value and all(isinstance(row, dict) and _numbered(row) for row in value.values())):
            raise InputError(f"{path}: holds columns, not rows; write rows (pandas: orient='records', lines=True)")
        for name, row in value.items():
            if not isinstance(row, dict):
                raise InputError(
                    f"{path}: {short(name)} is a {_kind(row)}, not an object; write objects by id, or a list"
                )
        return [{"id": name} | row for name, row in value.items()]
    if not isinstance(value, list):
        raise InputError(f"{path}: a {_kind(value)}; write a list of objects, or objects by id")
    for i, row in enumerate(value, 1):
        if not isinstance(row, dict):
            raise InputError(
                f"{path}: row {i}: a {_kind(row)}, not an object; each row must be like {{'text': ..., ...}}"
            )
    return value


def _numbered(row: Mapping[str, Any]) -> bool:
    return bool(row) and all(name.isdecimal() for name in row)


def _kind(value: Any) -> str:
    names = {list: "list", str: "text", int: "number", float: "number", bool: "true or false", type(None): "null"}
    return names.get(type(value), type(value).__name__)
