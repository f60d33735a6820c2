"""Tables in parquet files and in folders saved by `datasets`; imported only where one is read, for both are large."""

import collections
import json
import os
import pathlib
from typing import Any

import pyarrow

from bert.corpus.arrow_files import FAULTS, check, damaged, open_parquet
from bert.errors import InputError
from tasks.files.records import Table, short


def read_parquet(path: str) -> Table:
    """The rows of a parquet file; labels that `datasets` wrote as numbers get their names back."""
    try:
        with open_parquet(path) as file:
            data = file.read(use_threads=False)
        return _table(path, data)
    except InputError:
        raise
    except FAULTS as error:
        raise damaged(path, error) from None


def read_saved(path: str) -> Table:
    """The rows of a folder that `datasets` saved; of several splits one must be named."""
    folder = pathlib.Path(path)
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(inner.parent.name for inner in folder.glob("*/state.json"))
        if len(splits) != 1:
            example = f"such as {folder / splits[0]}" if splits else "there is none"
            raise InputError(f"{path}: holds the splits {', '.join(splits)}; name one, {example}")
        folder /= splits[0]
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read once at import: a folder on disk needs no hub
    import datasets

    try:
        data = datasets.load_from_disk(str(folder)).with_format("arrow")[:]
        return _table(path, data)
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
        if pyarrow.types.is_integer(data.schema.field(name).type):
            values[name] = [
                _named(value, labels, f"{path}: row {i}: {name}") for i, value in enumerate(values[name], 1)
            ]
            names[name] = labels
        else:
            notes.append(f"{name}: holds {data.schema.field(name).type}, not the numbers of its ClassLabel names")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return Table(tuple(columns), rows, [f"{path}: row {i}" for i in range(1, len(rows) + 1)], tuple(notes), path, names)


def _values(column: pyarrow.ChunkedArray, name: str, notes: list[str]) -> list[Any]:
    """The values of a column; where Python has none for them, the bytes of a text, a date as text, or else None."""
    check(column)
    is_text = pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)
    try:
        return column.to_pylist()
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
        return {
            name: tuple(map(str, feature["names"]))
            for name, feature in features.items()
            if isinstance(feature, dict)
            and feature.get("_type") == "ClassLabel"
            and isinstance(feature.get("names"), list)
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _named(value: Any, labels: tuple[str, ...], where: str) -> str | None:
    if value is None or value == -1:  # -1: no label, as in the tests of GLUE
        return None
    if not 0 <= value < len(labels):
        raise InputError(
            f"{where} is {value}, but it has {len(labels)} names ({', '.join(labels[:20])}); write it again"
        )
    return labels[value]
