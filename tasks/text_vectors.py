"""Files of texts -> files of their vectors: a line or a row is a text; vectors are written as they come.

Axes: N text, M text of a block, K width of a vector.
"""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from bert import files, surrogates
from bert.errors import InputError
from bert.extras import check_arrow
from bert.sentences.embedder import Embedder
from tasks.files import examples
from tasks.files.records import TableSettings
from tasks.files.tables import check_path, ending_to_read, read_table
from tasks.files.text_lines import aligned_lines

VECTORS = "embedding"  # the column of a parquet file


@dataclasses.dataclass(frozen=True)
class Texts:
    """Texts of a file.

    Attributes:
      count: how many; as many as ``texts``, which are read when they are asked for, once more each time.
      columns: name -> value for each text: the other columns of a table; "line" (from 1) of a file of lines.
      empty: how many of them are empty; each has the vector of an empty text.
      notes: what the reader did that a person should know.
    """

    source: str
    count: int
    texts: Callable[[], Iterable[str]]
    columns: Mapping[str, list[Any] | range]
    empty: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        empty = f", {self.empty:,} of them empty, with the vector of an empty text" if self.empty else ""
        return "\n".join([*self.notes, f"{self.source}: {self.count:,} texts{empty}"])


def read(path: str, column: str | None = None, settings: TableSettings | None = None) -> Texts:
    """The texts of a .txt file, one a line, or those in a column of a table ("text"); all of them, in their order.

    Raises InputError as the readers of lines and of tables, and for a column that is not there or holds no texts.
    """
    settings, place = settings or TableSettings(), check_path(path)
    if place.is_file() and ending_to_read(place) == ".txt":
        if column is not None:
            raise InputError(f"--text={column}: {path} has no columns, each line is a text; leave it out")
        if settings != TableSettings(encoding=settings.encoding):
            raise InputError(
                f"{path}: is no table, each line is a text; leave out --delimiter, --columns and --quoting"
            )
        lines = lambda: aligned_lines(path, settings.encoding)  # noqa: E731
        count = empty = 0
        for line in lines():
            count, empty = count + 1, empty + (not line.strip())
        if not count:
            raise InputError(f"{path}: holds no line; is it the right file?")
        return Texts(path, count, lines, {"line": range(1, count + 1)}, empty)
    table, column = read_table(path, settings), column or "text"
    rows, notes = examples.read_texts(table, (column,))
    texts = [text for (text,) in rows]
    columns = {name: [row.get(name) for row in table.rows] for name in table.columns if name != column}
    empty = sum(not text.strip() for text in texts)
    return Texts(path, len(texts), lambda: texts, columns, empty, (*table.notes, *notes))


def check_output(path: pathlib.Path) -> None:
    """Raises InputError for a file of another format than `write` knows."""
    if path.suffix not in _WRITERS:
        raise InputError(f"--output={path}: the ending must be one of {', '.join(_WRITERS)}")
    if path.suffix == ".parquet":
        check_arrow(path)


def write(path: pathlib.Path, texts: Texts, embedder: Embedder, done: Callable[[int], None]) -> None:
    """Writes the vectors of the texts: .npy, float32 [N, K]; or .parquet, with the other columns of the texts.

    The file has its name only when it is complete; one block of vectors is in memory at a time. ``done`` is called with
    numbers of texts. Raises InputError where it cannot be written, or the texts were changed meanwhile.
    """
    check_output(path)
    with files.replacing_file(path) as aside:
        written = _WRITERS[path.suffix](aside, texts, embedder.width, embedder.blocks(texts.texts(), done))
        if written != texts.count:
            raise InputError(f"{texts.source}: was changed while it was read; run the same command again")


def _write_npy(path: pathlib.Path, texts: Texts, width: int, blocks: Iterator[np.ndarray]) -> int:
    # One after the other: on a full disk, a mapped file would end the process without a word.
    header, written = {"descr": "<f4", "fortran_order": False, "shape": (texts.count, width)}, 0
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block_MK in blocks:
            file.write(block_MK.astype("<f4", copy=False).tobytes())
            written += len(block_MK)
    return written


def _write_parquet(path: pathlib.Path, texts: Texts, width: int, blocks: Iterator[np.ndarray]) -> int:
    import pyarrow  # large
    import pyarrow.parquet

    if VECTORS in texts.columns:
        raise InputError(f"{texts.source}: has a column {VECTORS!r}, where the vectors go; rename it in the file")
    columns = {name: _column(values) for name, values in texts.columns.items()}
    fields = [pyarrow.field(name, column.type) for name, column in columns.items()]
    schema = pyarrow.schema([*fields, pyarrow.field(VECTORS, pyarrow.list_(pyarrow.float32(), width))])
    written = 0
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for block_MK in blocks:
            vectors = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(block_MK.reshape(-1)), width)
            parts = [column.slice(written, len(block_MK)) for column in columns.values()]
            writer.write_table(pyarrow.table([*parts, vectors], schema=schema))
            written += len(block_MK)
    return written


def _column(values: list[Any] | range) -> Any:
    """The Arrow column of these values; of values of several kinds, their JSON."""
    import pyarrow

    try:
        return pyarrow.array(values)
    except (ValueError, TypeError, OverflowError):
        texts = (
            v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False, default=str) for v in values
        )
        return pyarrow.array([None if text is None else surrogates.replace(text) for text in texts])


_WRITERS = {".npy": _write_npy, ".parquet": _write_parquet}
