"""Text columns of parquet files and of data sets saved by `datasets`, a batch of rows at a time. Touches no network.

Parquet is read by pyarrow, which `datasets` brings along: its streaming reader took 17 times as long and three times
the memory on the same file. Imported only where such a file is read, for the two packages are large.
"""

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pyarrow
import pyarrow.parquet

from bert.errors import InputError
from bert.text.files import listed

BATCH_ROWS = 1000


def column_values(path: pathlib.Path, kind: str, column: str) -> Iterator[Any]:
    """Values of one column, row by row.

    Args:
      path: a parquet file, or the folder of a saved data set.
      kind: "parquet" or "saved".
      column: its name.

    Raises:
      InputError: a damaged file, or a column that is not there (with those that are).
    """
    batches = _parquet_batches(path, column) if kind == "parquet" else _saved_batches(path, column)
    try:
        for batch in batches:
            yield from batch
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read ({str(error).splitlines()[0]}); write the file again") from None


def _parquet_batches(path: pathlib.Path, column: str) -> Iterator[list[Any]]:
    with pyarrow.parquet.ParquetFile(path) as file:
        _check_column(path, column, file.schema_arrow.names)
        for batch in file.iter_batches(BATCH_ROWS, columns=[column], use_threads=False):
            yield batch.column(0).to_pylist()


def _saved_batches(path: pathlib.Path, column: str) -> Iterator[list[Any]]:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read once at import: a folder on disk needs no hub
    import datasets

    saved = datasets.load_from_disk(str(path))
    _check_column(path, column, saved.column_names)
    for batch in saved.select_columns([column]).with_format("arrow").iter(BATCH_ROWS):
        yield batch.column(0).to_pylist()


def _check_column(path: pathlib.Path, column: str, names: list[str]) -> None:
    if column not in names:
        raise InputError(
            f"{path}: has the columns {listed(names)}; set text_column to the one with the text (now {column!r})"
        )
