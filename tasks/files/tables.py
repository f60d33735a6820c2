"""Opens tables: csv, tsv, txt, jsonl, json (each also .gz), parquet, Arrow, and data sets saved by `datasets`.

A new format is a reader and a line in `READERS`. Readers of questions and of tagged sentences also use `check_path` and
`ending_to_read`, so all of them refuse a path with the same message.
"""

import ast
import difflib
import pathlib
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from bert.corpus.corpus_files import ARCHIVES, endings_of, saved_data_set
from bert.errors import InputError
from bert.extras import check_arrow
from tasks.files import json_tables
from tasks.files.delimited import read_delimited
from tasks.files.records import Table, TableSettings

OTHER_FORMATS = {
    **ARCHIVES,
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save it as csv first"),
    **dict.fromkeys((".xml", ".html", ".pdf", ".pkl", ".npz"), "write it as csv, jsonl or parquet first"),
}
_BYTES_LITERAL = re.compile(r"""b(['"]).*\1""", re.DOTALL)


def _read_parquet(path: str, settings: TableSettings) -> Table:
    check_arrow(path)
    from tasks.files.arrow_tables import read_parquet  # pyarrow is large

    return read_parquet(path)


def _read_arrow(path: str, settings: TableSettings) -> Table:
    check_arrow(path)
    from tasks.files.arrow_tables import read_arrow

    return read_arrow(path)


def _read_saved(path: str) -> Table:
    check_arrow(path, "datasets")
    from tasks.files.arrow_tables import read_saved  # pyarrow and datasets are large

    return read_saved(path)


READERS: dict[str, Callable[[str, TableSettings], Table]] = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), read_delimited),  # and files of all other endings
    **dict.fromkeys((".jsonl", ".ndjson"), json_tables.read_jsonl),
    ".json": json_tables.read_json,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
}


def read_table(path: str, settings: TableSettings | None = None) -> Table:
    """The table in a file, or in a folder saved by `datasets`.

    Columns of which every value is a Python bytes literal (``b"..."``, as careless scripts write them) are unwrapped.

    Raises:
      InputError: nothing there, another format, damage, or no rows; in one line with the place and the way out.
    """
    place = check_path(path)
    try:
        if place.is_dir():
            table = _read_saved(str(_saved_folder(place)))
        else:
            read = READERS.get(ending_to_read(place), read_delimited)
            table = read(str(path), settings or TableSettings())
    except PermissionError:
        raise unreadable(path) from None
    if not table.rows:
        raise InputError(f"{path}: no rows{' below the header' if table.columns else ''}; is it the right file?")
    return _without_bytes(table)


def check_path(path: str) -> pathlib.Path:
    """The path. Raises InputError where nothing is there."""
    place = pathlib.Path(path)
    if not place.exists():
        near = []
        if place.parent.is_dir():
            near = difflib.get_close_matches(place.name, [other.name for other in place.parent.iterdir()], 3, 0.6)
        hint = f"; beside it: {', '.join(near)}" if near else ""
        raise InputError(
            f"{path}: no such file or folder{hint}; name a file, or a folder saved by datasets (nothing is downloaded)"
        )
    return place


def ending_to_read(file: pathlib.Path, purpose: str = "", refused: Mapping[str, str] | None = None) -> str:
    """The ending that tells the format, without .gz. Raises InputError for a format that is not read.

    Args:
      purpose: what for, in the message, such as " as questions".
      refused: ending -> way out, of formats that are not read for this purpose.
    """
    ending, packed = endings_of(file)
    way_out = {**OTHER_FORMATS, **(refused or {})}.get(ending)
    if way_out:
        raise InputError(f"{file}: {ending} files are not read{purpose}; {way_out}")
    if ending in (".parquet", ".arrow") and packed:
        raise InputError(f"{file}: {ending[1:]} is not read from .gz; unpack it first")
    return ending


def unreadable(path: str | None) -> InputError:
    return InputError(f"{path}: may not be read by this user; change its permissions")


def _saved_folder(folder: pathlib.Path) -> pathlib.Path:
    saved = saved_data_set(folder)
    if saved:
        return saved
    tables = sorted(file.name for file in folder.iterdir() if file.name.lower().endswith((*READERS, ".gz")))
    if tables:
        raise InputError(f"{folder}: a folder with {', '.join(tables[:10])}; name one of the files")
    raise InputError(f"{folder}: a folder without data; name a file, or a folder saved by datasets (with a state.json)")


def _without_bytes(table: Table) -> Table:
    notes = list(table.notes)
    for column in table.columns:
        values = [row[column] for row in table.rows]
        texts = _unwrapped(values)
        if texts is None:
            continue
        for row, text in zip(table.rows, texts, strict=True):
            row[column] = text
        what = "Python bytes literals" if isinstance(values[0], str) else "bytes"
        notes.append(f"{column}: {len(values):,} values were {what} and were unwrapped as UTF-8")
    return table._replace(notes=tuple(notes))


def _unwrapped(values: list[Any]) -> list[str] | None:
    """The texts in a column of bytes or of bytes literals; None where a value is neither, or no UTF-8."""
    literals = all(isinstance(value, str) and _BYTES_LITERAL.fullmatch(value) for value in values)
    if not literals and not all(isinstance(value, bytes) for value in values):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes that Python does not know
            return [(ast.literal_eval(value) if literals else value).decode("utf-8") for value in values]
    except (ValueError, SyntaxError, MemoryError, AttributeError):  # a UnicodeDecodeError is a ValueError
        return None
