"""People's tables, of any kind that is read: csv, tsv, txt, jsonl, json (each also .gz), parquet, saved data sets.

Not here: what the columns mean (examples.py). The settings and the result are explained in records.py; the rules for
delimiters and quotes are in delimited.py.
"""

import ast
import pathlib
import re
import warnings
from typing import Any

from bert.errors import InputError
from tasks.files import delimited, json_tables
from tasks.files.records import Table, TableSettings, check_path, ending_of

TEXTS = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".json")
OTHER_FORMATS = {
    **dict.fromkeys((".zip", ".tar", ".tgz", ".bz2", ".xz", ".zst", ".7z"), "unpack it first"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "save it as csv first"),
    **dict.fromkeys((".xml", ".html", ".pdf", ".pkl", ".npz"), "write it as csv, jsonl or parquet first"),
    ".arrow": "name the folder of the saved data set",
}
_BYTES_LITERAL = re.compile(r"""b(['"]).*\1""", re.DOTALL)


def read_table(path: str, settings: TableSettings | None = None) -> Table:
    """The table in a file, or in a folder saved by `datasets`.

    Columns of which every value is a Python bytes literal (``b"..."``, as careless scripts write them) are unwrapped.

    Raises:
      InputError: nothing there, another format, damage, or no rows; in one line with the place and the way out.
    """
    settings = settings or TableSettings()
    path = str(path)
    place = check_path(path)
    try:
        table = _read_folder(path, place) if place.is_dir() else _read_file(path, place, settings)
    except PermissionError:
        raise InputError(f"{path}: may not be read by this user; change its permissions") from None
    if not table.rows:
        raise InputError(f"{path}: no rows{' below the header' if table.columns else ''}; is it the right file?")
    return _without_bytes(table)


def _read_file(path: str, file: pathlib.Path, settings: TableSettings) -> Table:
    ending = ending_of(file)
    if ending in OTHER_FORMATS:
        raise InputError(f"{path}: {ending} files are not read; {OTHER_FORMATS[ending]}")
    if ending == ".parquet":
        if file.suffix.lower() == ".gz":
            raise InputError(f"{path}: parquet packs its own columns; unpack the .gz first")
        from tasks.files import arrow_tables  # pyarrow, only where a table needs it

        return arrow_tables.read_parquet(path)
    if ending in (".jsonl", ".ndjson"):
        return json_tables.read_jsonl(path, settings)
    if ending == ".json":
        return json_tables.read_json(path, settings)
    return delimited.read(path, ending, settings)


def _read_folder(path: str, folder: pathlib.Path) -> Table:
    if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
        from tasks.files import arrow_tables

        return arrow_tables.read_saved(path)
    tables = sorted(file.name for file in folder.iterdir() if file.name.lower().endswith((*TEXTS, ".gz", ".parquet")))
    if tables:
        raise InputError(f"{path}: a folder with {', '.join(tables[:10])}; name one of the files")
    raise InputError(f"{path}: a folder without data; name a file, or a folder saved by datasets (it has a state.json)")


def _without_bytes(table: Table) -> Table:
    notes = list(table.notes)
    for column in table.columns:
        values = [row[column] for row in table.rows]
        plain = _unwrapped(values)
        if plain is None:
            continue
        for row, value in zip(table.rows, plain, strict=True):
            row[column] = value
        what = "Python bytes literals" if isinstance(values[0], str) else "bytes"
        notes.append(f"{column}: {len(values):,} values were {what} and were unwrapped as UTF-8")
    return table._replace(notes=tuple(notes))


def _unwrapped(values: list[Any]) -> list[str] | None:
    """The texts in a column of bytes or of bytes literals; None where a value is neither, or no UTF-8."""
    if all(isinstance(value, bytes) for value in values):
        literals = values
    elif all(isinstance(value, str) and _BYTES_LITERAL.fullmatch(value) for value in values):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of escapes that Python does not know
                literals = [ast.literal_eval(value) for value in values]
        except (ValueError, SyntaxError, MemoryError):
            return None
    else:
        return None
    try:
        return [value.decode("utf-8") for value in literals]
    except (UnicodeDecodeError, AttributeError):
        return None
