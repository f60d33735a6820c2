"""A table of examples, its settings (`TableSettings`), and its columns by name."""

import dataclasses
import difflib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bert.errors import InputError, check_choice, listed
from tasks.files.cells import TableCell, short
from tasks.files.look_alikes import apart

QUOTING = ("auto", "yes", "no")
RAGGED = ("refuse", "drop")
DELIMITERS = {"comma": ",", "tab": "\t", "\\t": "\t", "semicolon": ";", "space": " +"}


class Table(NamedTuple):
    """Rows with named columns, in the order of the file.

    columns: their names; of a row that leaves one out (jsonl), the value is None.
    rows: column -> value: text from csv and tsv, else the types of JSON.
    places: where each row begins, "FILE:LINE", or "FILE: row N" (from 1) where a file has no lines.
    notes: what the reader did that a person should know, one line each.
    path: the file.
    names: column -> its label names in their order, where the file says so (ClassLabel of `datasets`).
    universal_newlines: whether a line break in a text is to be read as "\\n", whatever the file has (csv).
    """

    columns: tuple[str, ...]
    rows: list[dict[str, Any]]
    places: list[str]
    notes: tuple[str, ...] = ()
    path: str = ""
    names: Mapping[str, tuple[str, ...]] = {}
    universal_newlines: bool = False


@dataclasses.dataclass(frozen=True)
class TableSettings:
    """How a text file is read; parquet and saved data sets need none of it."""

    columns: tuple[str, ...] = ()  # names for a file without a header; where they are given, the first line is data
    # '' by name and content; tab, comma, semicolon, space (a run of blanks), any one character; or a regular
    # expression. The last two kinds split a line into at most as many fields as there are columns, so the last field
    # keeps the rest of the line.
    delimiter: str = ""
    quoting: str = "auto"  # yes: csv's double quotes; no: a quote is a character like any other; auto: by the file
    encoding: str = "utf-8"  # a name, or GLOB=NAME parts as for a corpus (bert/corpus/text_files.py)
    ragged: str = "refuse"  # lines with a wrong number of fields; drop: leave them out and count them
    widths: tuple[int, ...] = ()  # further numbers of fields that are right, where last columns may be left out (None)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        check_choice("quoting", self.quoting, QUOTING)
        check_choice("ragged", self.ragged, RAGGED)
        if len(set(self.columns)) < len(self.columns) or not all(self.columns):
            raise InputError(f"columns {', '.join(map(repr, self.columns))}: each needs a name of its own")
        try:
            groups = re.compile(self.pattern).groups
        except re.error as error:
            raise InputError(f"delimiter {self.delimiter!r} is no regular expression ({error}); try tab") from None
        if groups:
            raise InputError(f"delimiter {self.delimiter!r}: write groups as (?:...), for their text would be a field")
        if self.quoting == "yes" and self.pattern:
            raise InputError(f"quoting yes needs a delimiter of one character, not {self.delimiter!r}; set it to auto")

    @property
    def character(self) -> str:
        """The delimiter where it is one character; "" where it is a pattern or not set."""
        delimiter = DELIMITERS.get(self.delimiter, self.delimiter)
        return delimiter if len(delimiter) == 1 else ""

    @property
    def pattern(self) -> str:
        """The delimiter where it is a regular expression; else ""."""
        return "" if self.character else DELIMITERS.get(self.delimiter, self.delimiter)


def value_of(row: Mapping[str, Any], name: str) -> Any:
    """Value of a column; "a.b" also finds b inside the object a. None where there is no such thing."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def cell_of(row: Mapping[str, Any], place: str, column: str) -> TableCell:
    """The value of a column with its place."""
    return TableCell(f"{place}: {column}", value_of(row, column))


def id_column(columns: Iterable[str]) -> str | None:
    """The column with the ids of rows, by its usual names in any letter case; None where there is none."""
    by_name = {name.lower(): name for name in columns}
    return next((by_name[name] for name in ("id", "guid", "idx", "index") if name in by_name), None)


def has_column(table: Table, name: str) -> bool:
    return name in table.columns or any(value_of(row, name) is not None for row in table.rows)


def check_column(table: Table, name: str, role: str) -> None:
    """Refuses a name that the table does not have; ``role``: the setting that names it, such as "text"."""
    if has_column(table, name):
        return
    known = list(dict.fromkeys([*table.columns, *_inner_names(table.rows)]))
    folded = {other.casefold(): other for other in known}
    near = [folded[match] for match in difflib.get_close_matches(name.casefold(), list(folded), 3, 0.5)]
    hint = f"; did you mean {' or '.join(near)}?{apart(name, near)}" if near else ""
    shown = listed(short(other).strip("'\"") for other in known)
    mark = re.search(r"\w\s?([|:~^])\s?\w", known[0]) if len(known) == 1 else None
    way_out = f"set delimiter to {mark[1]!r} if it stands between columns, or {role}" if mark else f"set {role}"
    raise InputError(
        f"{table.path}: no column {name!r}{hint}; the columns are {shown}; {way_out} to one of them (or columns to "
        "their names, where the first line is no header)"
    )


def _inner_names(rows: list[dict[str, Any]]) -> Iterable[str]:
    for outer, value in (rows[0] if rows else {}).items():
        if isinstance(value, Mapping):
            yield from (f"{outer}.{inner}" for inner in value)


def comma_names(text: str) -> tuple[str, ...]:
    """The names in a setting that has commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def comma_numbers(setting: str, text: str, form: str, *, zero: bool) -> dict[str, float]:
    """Name -> number in a setting like "anna=2,ben=0.5"; ``form``: "NAME=NUMBER" or the like, for messages."""
    numbers: dict[str, float] = {}
    for part in comma_names(text):
        name, _, value = (word.strip() for word in part.rpartition("="))
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not name or not 0 <= number < math.inf or (number == 0 and not zero):
            raise InputError(f"{setting}: {part!r} must be {form}, the number {'not below' if zero else 'above'} 0")
        if name in numbers:
            raise InputError(f"{setting} names {name!r} twice; give one number")
        numbers[name] = number
    return numbers


def row_places(path: str, count: int) -> list[str]:
    """The places of the rows of a file that has no lines."""
    return [f"{path}: row {i}" for i in range(1, count + 1)]


def skipped(path: str, blank: int) -> tuple[str, ...]:
    """The note on blank lines that were skipped, if any were."""
    lines = "blank line was" if blank == 1 else "blank lines were"
    return (f"{path}: {blank:,} {lines} skipped",) if blank else ()
