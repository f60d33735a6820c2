"""Rows of exports in JSON: a list of objects, one object, or an object a line; also as .gz."""

import json
import pathlib
from itertools import islice
from typing import Any

from bert.corpus.corpus_files import endings_of
from bert.errors import InputError
from tasks.files.cells import TableCell
from tasks.files.json_tables import read_objects, read_value
from tasks.files.records import Table, TableSettings, row_places
from tasks.files.text_lines import read_lines

LINES, VALUE = (".jsonl", ".ndjson"), ".json"
PEEKED = 100  # rows by which a tool is recognised


def is_json(path: pathlib.Path) -> bool:
    """Whether a name is that of a file of rows."""
    return endings_of(path)[0] in (*LINES, VALUE)


def read_rows(path: str, encoding: str) -> Table:
    """All rows of a file."""
    settings = TableSettings(encoding=encoding)
    value = read_objects(path, settings) if endings_of(pathlib.Path(path))[0] in LINES else read_value(path, settings)
    if isinstance(value, Table):
        return value
    rows = [value] if isinstance(value, dict) else value
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path}: is no list of objects; write one, or an object a line")
    return Table((), rows, row_places(path, len(rows)), (), path)


def text_of(cell: TableCell) -> str:
    """The text of a row."""
    if not isinstance(cell.value, str):
        raise cell.error("is no text; write one, or set text to the field that has it")
    return cell.value


def first_rows(path: str, encoding: str) -> list[dict[str, Any]]:
    """Some rows from the beginning; none of a file that is no JSON, which its reader will tell."""
    try:
        if endings_of(pathlib.Path(path))[0] not in LINES:
            return read_rows(path, encoding).rows[:PEEKED]
        lines = islice((line for line in read_lines(path, encoding) if line.strip()), PEEKED)
        return [row for row in map(json.loads, lines) if isinstance(row, dict)]
    except (InputError, ValueError, RecursionError):
        return []
