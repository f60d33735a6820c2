"""Reads pairs of a sentence and its translation: two text files, or two columns of a table."""

import dataclasses
import pathlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.corpus.corpus_files import endings_of
from bert.errors import InputError, check_range, listed
from tasks.files import equal_texts, splits, tables
from tasks.files.label_numbers import is_number
from tasks.files.records import Table, TableSettings, cell_of, check_column, comma_names
from tasks.files.reports import ReadReport, ReadRows, Row, Tally
from tasks.files.text_lines import aligned_lines

# Settings that a model directory carries, so that bert evaluate reads a file of the same form by its name alone.
FILE_SETTINGS = {"text": "", "columns": "", "delimiter": "", "quoting": "auto", "encoding": "utf-8", "ragged": "refuse"}
_TABLES = {*tables.READERS, ".gz"} - {".txt"}


class Pair(NamedTuple):
    """A sentence and its translation; None where only sentences were read.

    number: its row in the file, from 0. cells: that row of a table, by column.
    """

    source: str
    target: str | None
    place: str
    number: int
    cells: Mapping[str, Any] = {}


Pairs = ReadRows[Pair]
# Rows with a source, which need not be a text, a target, a place and a number: pairs, or those of a task like this one.
Sourced = ReadRows[Any]


def read_pairs(data: str, settings: Mapping[str, Any], *, labelled: bool = True) -> Pairs:
    """The pairs of "SOURCE,TARGET", two text files of as many lines, or of a table with two columns.

    ``labelled``: False reads sources only, of a text file with a sentence a line, or of a table.

    Raises InputError, with its place, for a sentence without a translation, files of different length, or no pair.
    """
    source, *targets = data.split(",")
    if targets and not pathlib.Path(data).exists():
        if len(targets) > 1:
            raise InputError(f"{data}: {len(targets) + 1} files; name two, SOURCE,TARGET")
        if table := next((name for name in (source, *targets) if endings_of(pathlib.Path(name))[0] in _TABLES), ""):
            raise InputError(f"{table}: a table beside another file; name it alone, and its two columns by text")
        return _of_files(source, targets[0], settings["encoding"], labelled)
    if not labelled and _is_text(data):
        return _of_lines(data, settings["encoding"])
    if _is_text(data):
        raise InputError(f"{data}: one text file; name two with a comma, SOURCE,TARGET, or a table with two columns")
    return _of_table(data, settings, labelled)


def _is_text(data: str) -> bool:
    path = tables.check_path(data)
    return path.is_file() and endings_of(path)[0] not in _TABLES


def _lines(path: str, encoding: str) -> list[str]:
    if tables.check_path(path).is_dir():
        raise InputError(f"{path}: is a folder; name a text file")
    return [line.strip() for line in aligned_lines(path, encoding)]


def _of_files(source: str, target: str, encoding: str, labelled: bool) -> Pairs:
    if not labelled:
        tables.check_path(target)
        return _of_lines(source, encoding)
    sides = (_lines(source, encoding), _lines(target, encoding))
    lengths = [len(lines) for lines in sides]
    if lengths[0] != lengths[1]:
        rule = (
            f"{lengths[0]:,} lines, but {target} has {lengths[1]:,}; line i of one must translate line i of the other"
        )
        raise InputError(f"{source}: {rule}")
    rows = [Pair(a, b, f"{source}:{i}", i - 1) for i, (a, b) in enumerate(zip(*sides, strict=True), 1)]
    return _checked(rows, f"{source},{target}", target, ())


def _of_lines(path: str, encoding: str) -> Pairs:
    rows = [Pair(line, None, f"{path}:{i}", i - 1) for i, line in enumerate(_lines(path, encoding), 1)]
    if not rows:
        raise InputError(f"{path}: no lines; is it the right file?")
    return _sources(rows, path, ())


def _of_table(data: str, settings: Mapping[str, Any], labelled: bool) -> Pairs:
    rows, columns, notes = rows_of_table(data, settings, labelled)
    if not labelled:
        return _sources(rows, data, notes)
    return _checked(rows, data, columns[1], notes)


def rows_of_table(
    data: str, settings: Mapping[str, Any], labelled: bool, sources: str = "sources"
) -> tuple[list[Pair], tuple[str, ...], tuple[str, ...]]:
    """(rows as they stand, the names of the columns that are read, notes on the table).

    ``sources``: what messages call these.
    """
    names = ("delimiter", "quoting", "encoding", "ragged")
    how = TableSettings(columns=comma_names(settings["columns"]), **{name: settings[name] for name in names})
    table = tables.read_table(data, how)
    columns = (comma_names(settings["text"]) or table.columns)[: 1 + labelled]
    if len(set(columns)) < 1 + labelled:
        shown = listed(map(repr, table.columns))
        raise InputError(f"{data}: text must name two of the columns {shown}, that of the {sources} first")
    for column in columns:
        check_column(table, column, "text")
    rows = [Pair(*_texts(table, i, columns), table.places[i], i, row) for i, row in enumerate(table.rows)]
    if settings["text"]:
        return rows, columns, table.notes
    for place, column in enumerate(columns):
        if rows and all(is_number(row[place]) for row in rows):
            shown = listed(map(repr, table.columns))
            raise InputError(f"{data}: {column!r} holds numbers alone; name the columns to read by text, of {shown}")
    read = f"column{'s' * (len(columns) > 1)} read: {listed(map(repr, columns))}"
    return rows, columns, (*table.notes, f"{data}: {read}; text chooses others")


def _texts(table: Table, i: int, columns: tuple[str, ...]) -> tuple[str, str | None]:
    def text(column: str) -> str:
        cell = cell_of(table.rows[i], table.places[i], column)
        if cell.value is not None and not isinstance(cell.value, str):
            raise cell.error("must be a text; text names the columns to read")
        return (cell.value or "").strip()

    return text(columns[0]), text(columns[1]) if columns[1:] else None


def _sources(rows: list[Pair], path: str, notes: tuple[str, ...]) -> Pairs:
    """Sentences to translate."""
    empty = [row.place for row in rows if not row.source]
    if empty:
        notes = (*notes, f"{path}: rows without a text: {len(empty):,} (first {empty[0]}); their translation is empty")
    return Pairs(rows, ReadReport(path, len(rows), len(rows), notes=notes))


def _checked(rows: list[Pair], source: str, target: str, notes: tuple[str, ...]) -> Pairs:
    """The pairs with a text on each side; those with none on both are dropped, and one side alone is refused."""
    kept, empty = [], Tally()
    for row in rows:
        if row.source and row.target:
            kept.append(row)
        elif row.source or row.target:
            missing, there = (f"in {target}", "here") if row.source else ("here", f"in {target}")
            raise InputError(f"{row.place}: a sentence {there}, but none {missing}; write it, or take out both")
        else:
            empty.add("no text on both sides", row.place)
    if not kept:
        raise InputError(f"{source}: no pair of sentences; is it the right file?")
    return Pairs(kept, ReadReport(source, len(rows), len(kept), empty.counts, notes))


def others(path: str, pairs: Pairs, encoding: str) -> list[str]:
    """Another system's translations of the pairs' sources: a line for each row of the pairs' file.

    Raises InputError where there are more lines or fewer.
    """
    lines, read = _lines(path, encoding), pairs.report.read
    if len(lines) != read:
        rule = f"{len(lines):,} lines, but {pairs.report.source} has {read:,}; line i must translate its row i"
        raise InputError(f"{path}: {rule}")
    return [lines[row.number] for row in pairs.rows]


def key_of(row: Pair) -> Hashable:
    """The same for equal pairs (equal_texts.py)."""
    return equal_texts.key_of([row.source]), equal_texts.key_of([row.target or ""])


def split(pairs: Pairs, share: float, seed: int, *, equal_apart: bool = False) -> tuple[Pairs, Pairs]:
    """(train, validation): a share of the pairs, those with equal sources in one part unless ``equal_apart``."""
    keys = None if equal_apart else [equal_texts.key_of([row.source]) for row in pairs.rows]
    return split_by(pairs, share, seed, keys)


def split_by(
    rows: ReadRows[Row], share: float, seed: int, keys: Sequence[Hashable] | None
) -> tuple[ReadRows[Row], ReadRows[Row]]:
    """(train, validation): a share of the rows, those with equal keys in one part."""
    check_range("validation_share", share, above=0, below=1)
    count = len(rows.rows)
    take_C = splits.rows_by_class(np.array([count]), share)
    group_N = equal_texts.first_of_equal(range(count) if keys is None else keys)
    held_N = splits.draw(np.zeros(count, np.int64), group_N, take_C, np.random.default_rng(seed))
    if not held_N.any():
        different = len(np.unique(group_N))  # equal ones stay in one part
        rule = f"{count} rows with {different} different sources are too few to hold out {share:g}"
        raise InputError(f"{rows.report.source}: {rule}; name a validation")
    return rows.divided(held_N, share, seed)


@dataclasses.dataclass(frozen=True)
class Fitting:
    """Which pairs have room: indices of those kept, and the place of the first of the others."""

    kept: list[int]
    left_out: int
    first: str


def fitting(pairs: ReadRows[Any], length_N: np.ndarray, limit: int) -> Fitting:
    """The pairs of which each side has at most ``limit`` tokens. Raises InputError where none has."""
    long_N = np.asarray(length_N) > limit
    first = pairs.rows[int(long_N.argmax())].place if long_N.any() else ""
    if long_N.all():
        raise InputError(f"{first}: {length_N[0]} tokens, and no pair has at most max_length, {limit}; raise it")
    return Fitting(np.flatnonzero(~long_N).tolist(), int(long_N.sum()), first)
