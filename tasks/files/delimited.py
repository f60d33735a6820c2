"""Reads text tables with one record per line: csv, tab-separated, and lines split by a pattern.

If no delimiter is set, a first line such as "sep=;" decides. Otherwise, .tsv is split at tabs. A .csv is split at
commas, unless its first line has none but has tabs, or else semicolons, or only one of these splits all lines into
equally many fields. Any other file is split at tabs if every line has one. Quotes: quotes.py. Headers: headers.py.

Lines end in LF, CRLF or CR. Blank lines outside quotes are skipped and counted.
"""

import csv
import itertools
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from bert.corpus.corpus_files import endings_of
from bert.errors import InputError, listed
from tasks.files.cells import short
from tasks.files.headers import Record, check_no_header, split_header
from tasks.files.quotes import are_quoting, quoted_records
from tasks.files.records import DELIMITERS, Table, TableSettings, skipped
from tasks.files.text_lines import read_lines

_SEPARATOR_LINE = re.compile(r'"?sep=([^"]|\\t)"?[,;\t]*', re.IGNORECASE)  # for Excel
PROBED = 200  # lines by which the delimiter is chosen


def read_delimited(path: str, settings: TableSettings) -> Table:
    """A table from a text file.

    Raises:
      InputError: what read_lines raises, no delimiter found, a bad header, a line with too few or too many fields, or a
        quote that is not closed.
    """
    lines, ends = [], []
    for line in read_lines(path, settings.encoding, ends=True):
        text = line.rstrip("\r\n")
        lines.append(text)
        ends.append(sys.intern(line[len(text) :]))
    notes: list[str] = []
    character, columns = settings.character, settings.columns
    separator = _SEPARATOR_LINE.fullmatch(lines[0]) if lines else None
    if separator:
        lines[0] = ""
    if not character and not settings.pattern:
        named = DELIMITERS.get(separator[1], separator[1]) if separator else ""
        character = named or _find_delimiter(path, lines, columns, notes)
    quoted = bool(character) and are_quoting(path, lines, character, settings.quoting, notes)
    records: Iterable[Record]
    if quoted:
        records = quoted_records(path, lines, ends, character, notes)
    elif settings.pattern:
        records = _split_records(lines, settings.pattern, len(columns))
    else:
        records = ((i, line.split(character) if character else [line]) for i, line in enumerate(lines, 1))
    everything = list(records)
    # Delimiters alone are a row of empty fields, not a blank line.
    filled = [(number, fields) for number, fields in everything if lines[number - 1].strip(" ")]
    notes += skipped(path, len(everything) - len(filled) - bool(separator))
    if columns:
        check_no_header(path, columns, filled, notes)
    else:
        columns, filled = split_header(path, filled, notes)
    return _table(path, columns, filled, settings, quoted, notes)


def _table(
    path: str, columns: tuple[str, ...], records: list[Record], settings: TableSettings, quoted: bool, notes: list[str]
) -> Table:
    allowed = {len(columns), *settings.widths}
    right = [(number, fields) for number, fields in records if len(fields) in allowed]
    if len(right) < len(records):
        wrong = [(number, fields) for number, fields in records if len(fields) not in allowed]
        if settings.ragged != "drop":
            alike = sum(len(fields) == len(wrong[0][1]) for _, fields in wrong)
            raise _ragged(path, *wrong[0], columns, allowed, quoted, alike > max(1, len(right)))
        first = f"the first is line {wrong[0][0]}"
        notes.append(f"{path}: {len(wrong):,} lines with a wrong number of fields dropped, {first}")
    rows: list[dict[str, Any]] = [dict(itertools.zip_longest(columns, fields)) for _, fields in right]
    places = [f"{path}:{number}" for number, _ in right]
    return Table(columns, rows, places, tuple(notes), path, universal_newlines=True)


def _ragged(
    path: str, number: int, fields: list[str], columns: tuple[str, ...], allowed: set[int], quoted: bool, most: bool
) -> InputError:
    hints = {
        "; most lines have as many, so the column names may be at fault": most,
        f"; quoting is {'on' if quoted else 'off'}, set it if that is wrong": any('"' in field for field in fields),
        "; line 1 is read as the header, take it out if it is a comment": columns[0].startswith("#"),
    }
    return InputError(
        f"{path}:{number}: {len(fields)} field{'s' * (len(fields) != 1)} where "
        f"{' or '.join(map(str, sorted(allowed)))} are wanted ({listed(columns, 8)})"
        f"{''.join(hint for hint, holds in hints.items() if holds)}; mend the line, or set ragged to drop"
    )


def _find_delimiter(path: str, lines: list[str], columns: tuple[str, ...], notes: list[str]) -> str:
    """The delimiter by name and content; "" where a line is one field."""
    filled = [line for line in lines if line.strip(" ")]
    first = filled[0] if filled else ""
    ending, _ = endings_of(pathlib.Path(path))
    if ending == ".csv":
        marks = [mark for mark in ",\t;" if mark in first]
        width = len(columns)
        regular = [mark for mark in marks if _is_regular(lines, mark, width)] if len(marks) > 1 else marks
        if len(regular) > 1 and width:
            raise InputError(
                f"{path}: {' and '.join(map(repr, regular))} both split its lines into {width} fields; set delimiter "
                "to comma, tab or semicolon"
            )
        chosen = next(iter(regular or marks), ",")
        if chosen != ",":
            notes.append(f"{path}: split at {'tabs' if chosen == chr(9) else 'semicolons'}")
        return chosen
    if ending == ".tsv" or (filled and all("\t" in line for line in filled)):
        return "\t"
    if len(columns) == 1 or not filled:
        return ""
    number = next(i for i, line in enumerate(lines, 1) if line.strip(" ") and "\t" not in line)
    raise InputError(
        f"{path}:{number}: no tab in {short(lines[number - 1])}; set delimiter (comma, space, a pattern), or "
        "columns to one name if a line is one text"
    )


def _is_regular(lines: list[str], mark: str, width: int) -> bool:
    """Whether a delimiter splits the first lines into equally many fields: two or more, or ``width``."""
    probed = list(itertools.islice((line for line in lines if line.strip(" ")), PROBED))
    try:
        lengths = [len(fields) for fields in csv.reader((line + "\n" for line in probed), delimiter=mark)]
    except csv.Error:
        return False
    lengths = lengths[:-1] if len(probed) == PROBED else lengths  # the last record may be cut off
    return len(set(lengths)) == 1 and lengths[0] == (width or max(lengths[0], 2))


def _split_records(lines: list[str], pattern: str, width: int) -> Iterator[Record]:
    """Lines split by a pattern into at most `width` fields (0: as many as the first line has)."""
    compiled = re.compile(pattern)
    for number, line in enumerate(lines, 1):
        fields = compiled.split(line.strip(" "), maxsplit=max(width - 1, 0)) if width != 1 else [line]
        width = width or (len(fields) if line.strip(" ") else 0)
        yield number, fields
