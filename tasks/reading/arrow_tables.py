"""Tables in parquet files and in folders saved by `datasets`; imported only where one is read, for both are large."""

import json
import os
import pathlib
from typing import Any

import pyarrow
import pyarrow.parquet

from bert.errors import InputError
from tasks.reading.records import Table, short


def read_parquet(path: str) -> Table:
    """The rows of a parquet file; labels that `datasets` wrote as numbers get their names back."""
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            data = file.read(use_threads=False)
    except (pyarrow.ArrowException, OSError) as error:
        raise _damaged(path, error) from None
    return _table(path, data)


def read_saved(path: str) -> Table:
    """The rows of a folder that `datasets` saved; of several splits one must be named.

    Raises:
      InputError: a folder that is none, or a damaged one.
    """
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
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from None
    return _table(path, data)


def _table(path: str, data: pyarrow.Table) -> Table:
    columns = data.column_names
    for name in columns:
        if columns.count(name) > 1:
            raise InputError(f"{path}: the column {short(name)} stands twice; name each column once")
    try:
        rows = data.to_pylist()
    except (pyarrow.ArrowException, ValueError) as error:
        raise _damaged(path, error) from None
    names = {name: labels for name, labels in _label_names(data.schema).items() if name in columns}
    for name, labels in names.items():
        for i, row in enumerate(rows, 1):
            row[name] = _named(row[name], labels, f"{path}: row {i}: {name}")
    return Table(tuple(columns), rows, [f"{path}: row {i}" for i in range(1, len(rows) + 1)], (), path, names)


def _label_names(schema: pyarrow.Schema) -> dict[str, tuple[str, ...]]:
    """Column -> names of its classes, as `datasets` writes them into the schema of its files."""
    try:
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return {
        name: tuple(map(str, feature["names"]))
        for name, feature in features.items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and feature.get("names")
    }


def _named(value: Any, labels: tuple[str, ...], where: str) -> str | None:
    if value is None or value == -1:  # -1: no label, as in the tests of GLUE
        return None
    if not 0 <= value < len(labels):
        raise InputError(
            f"{where} is {value}, but it has {len(labels)} names ({', '.join(labels[:20])}); write it again"
        )
    return labels[value]


def _damaged(path: str, error: Exception) -> InputError:
    said = (str(error).splitlines() or [type(error).__name__])[0]
    return InputError(f"{path}: cannot be read ({said}); write the file again")
