"""Reads text columns of parquet files and of folders saved by `datasets`, a batch of rows at a time; no network.

pyarrow, a dependency of `datasets`, reads parquet files: the streaming reader of `datasets` took 17 times as long and
three times the memory. This file is imported on demand, because both packages are large.
"""

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pyarrow
import pyarrow.parquet

from bert.corpus.ranges import Range
from bert.corpus.remote_files import RemotePath
from bert.errors import InputError, listed

BATCH_ROWS = 1000
# A parquet file of more rows than this, and than so many a byte, holds one row over and over.
MOST_ROWS, ROWS_A_BYTE = 10_000_000, 10
# Beside its own errors pyarrow raises these, where the bytes of a file are damaged.
FAULTS = (
    pyarrow.ArrowException, OSError, ValueError, OverflowError, TypeError, KeyError, IndexError, MemoryError,
    NotImplementedError, RecursionError, AttributeError, AssertionError,
)  # fmt: skip


def column_values(path: pathlib.Path, kind: str, column: str, here: Range) -> Iterator[tuple[int, Any]]:
    """(row, counted from 1, value of one column) of a "parquet" file or the folder of a "saved" data set.

    ``here``: of a parquet file its share of the row groups, of a data set that of the rows.

    Raises InputError for a damaged file, or a column that is not there (with those that are).
    """
    try:
        for start, values in (_parquet_columns if kind == "parquet" else _saved_columns)(path, column, here):
            check(values)
            yield from enumerate(values.to_pylist(), start)
    except InputError:
        raise
    except FAULTS as error:
        raise damaged(path, error) from None


def open_parquet(path: pathlib.Path | str) -> pyarrow.parquet.ParquetFile:
    """A parquet file whose pages are compared with their checksums, where it has some.

    Raises InputError for far more rows than bytes, one of `FAULTS` for damage.
    """
    path = pathlib.Path(path) if isinstance(path, str) else path
    source = path.open("rb") if isinstance(path, RemotePath) else path
    file = pyarrow.parquet.ParquetFile(source, page_checksum_verification=True)
    rows, size = file.metadata.num_rows, path.stat().st_size
    if rows < 0 or rows > max(MOST_ROWS, ROWS_A_BYTE * size):
        raise InputError(f"{path}: {rows:,} rows in {size:,} bytes; write the file again, or as several")
    return file


def load_saved(folder: pathlib.Path) -> Any:
    """The data set in a folder of `datasets`. Raises one of `FAULTS` for damage."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read once at import: a folder on disk needs no hub
    import datasets

    return datasets.load_from_disk(str(folder))


def check(column: pyarrow.Array | pyarrow.ChunkedArray) -> None:
    """Raises one of `FAULTS` where damaged bytes point beyond the end of their memory, which would end the process.

    Texts are not checked for UTF-8.
    """
    is_text = pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)
    (column.cast(pyarrow.large_binary()) if is_text else column).validate(full=True)


def damaged(path: pathlib.Path | str, error: Exception) -> InputError:
    """The error of a file that cannot be read, in one line."""
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return InputError(f"{path}: cannot be read ({reason[:300]}); write the file again")


def _parquet_columns(path: pathlib.Path, column: str, here: Range) -> Iterator[tuple[int, pyarrow.Array]]:
    with open_parquet(path) as file:
        _check_column(path, column, file.schema_arrow.names)
        groups = here.of(file.num_row_groups)
        row = 1 + sum(file.metadata.row_group(group).num_rows for group in range(groups.start))
        for batch in file.iter_batches(BATCH_ROWS, row_groups=list(groups), columns=[column], use_threads=False):
            yield row, batch.column(0)
            row += batch.num_rows


def _saved_columns(path: pathlib.Path, column: str, here: Range) -> Iterator[tuple[int, pyarrow.ChunkedArray]]:
    saved = load_saved(path)
    _check_column(path, column, saved.column_names)
    rows = here.of(len(saved))
    row = rows.start + 1
    for values in saved.select(rows).select_columns([column]).with_format("arrow").iter(BATCH_ROWS):
        yield row, values[column]
        row += len(values[column])


def _check_column(path: pathlib.Path, column: str, names: list[str]) -> None:
    if column not in names:
        raise InputError(
            f"{path}: has the columns {listed(names)}; set text_column to the one with the text (now {column!r})"
        )
