"""Reads parquet and Arrow files, and folders saved by `datasets`. Imported on demand: both packages are large."""

import collections
import json
import pathlib
from collections.abc import Callable
from typing import Any

import pyarrow
import pyarrow.ipc

from bert.corpus.arrow_files import FAULTS, check, damaged, load_saved, open_parquet
from bert.errors import InputError
from tasks.files.cells import NO_LABEL, TableCell, short
from tasks.files.records import Table, row_places


def read_parquet(path: str) -> Table:
    """The rows of a parquet file; labels that `datasets` wrote as numbers get their names back."""

    def load() -> pyarrow.Table:
        with open_parquet(path) as file:
            return file.read(use_threads=False)

    return _read(path, load)


def read_arrow(path: str) -> Table:
    """The rows of an Arrow file (Feather) or of a stream, as `datasets` has them in its cache."""

    def load() -> pyarrow.Table:
        with pyarrow.OSFile(path) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            with (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(file) as reader:
                return reader.read_all()

    return _read(path, load)


def read_saved(path: str) -> Table:
    """The rows of a folder of one split that `datasets` saved."""
    return _read(path, lambda: load_saved(pathlib.Path(path)).with_format("arrow")[:])


def _read(path: str, load: Callable[[], pyarrow.Table]) -> Table:
    try:
        return _table(path, load())
    except InputError:
        raise
    except FAULTS as error:
        raise damaged(path, error) from None


def _table(path: str, data: pyarrow.Table) -> Table:
    columns = data.column_names
    twice = next((name for name, count in collections.Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{path}: the column {short(twice)} stands twice; name each column once")
    notes: list[str] = []
    values = {name: _values(data[name], name, notes) for name in columns}
    names: dict[str, tuple[str, ...]] = {}
    for name, labels in _label_names(data.schema).items():
        if name not in columns:
            continue
        kind = data.schema.field(name).type
        if pyarrow.types.is_integer(getattr(kind, "value_type", kind)):
            cells = (TableCell(f"{path}: row {i}: {name}", value) for i, value in enumerate(values[name], 1))
            values[name] = [_labels(cell, labels) for cell in cells]
            names[name] = labels
        else:
            notes.append(f"{name}: holds {kind}, not the numbers of its ClassLabel names")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return Table(tuple(columns), rows, row_places(path, len(rows)), tuple(notes), path, names)


def _values(column: pyarrow.ChunkedArray, name: str, notes: list[str]) -> list[Any]:
    """The values of a column; where Python has none for them, the bytes of a text, a date as text, or else None."""
    check(column)
    is_text = pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        what = "texts that are not UTF-8" if is_text else "values that Python lacks, such as dates beyond the year 9999"
    values = [_value(scalar, is_text) for scalar in column]
    notes.append(f"{name}: holds {what}; these are kept as {'bytes' if is_text else 'text'}")
    return values


def _value(scalar: pyarrow.Scalar, is_text: bool) -> Any:
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        try:
            return scalar.cast(pyarrow.large_binary() if is_text else pyarrow.string()).as_py()
        except FAULTS:
            return None


def _label_names(schema: pyarrow.Schema) -> dict[str, tuple[str, ...]]:
    """Column -> names of its classes, as `datasets` writes them into the schema of its files."""
    try:
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
        of_values = {name: _of_values(feature) for name, feature in features.items()}
        return {
            name: tuple(map(str, feature["names"]))
            for name, feature in of_values.items()
            if isinstance(feature, dict)
            and feature.get("_type") == "ClassLabel"
            and isinstance(feature.get("names"), list)
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _of_values(feature: Any) -> Any:
    """The feature of a column's values, or of the values in its lists (of several versions of `datasets`)."""
    if isinstance(feature, list) and len(feature) == 1:
        return feature[0]
    return feature.get("feature", feature) if isinstance(feature, dict) else feature


def _labels(cell: TableCell, labels: tuple[str, ...]) -> str | list[str | None] | None:
    """The name of the number in a cell, or those of a list of numbers."""
    return (
        [_label(cell.part(part), labels) for part in cell.value]
        if isinstance(cell.value, list)
        else _label(cell, labels)
    )


def _label(cell: TableCell, labels: tuple[str, ...]) -> str | None:
    if cell.value in (None, *NO_LABEL):
        return None
    if not 0 <= cell.value < len(labels):
        raise cell.error(f"is no number of its {len(labels)} names ({', '.join(labels[:20])}); write it again")
    return labels[int(cell.value)]
