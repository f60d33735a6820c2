"""Tables in text, a record a line: csv, tab-separated, and lines split by a pattern.

Which delimiter, where none is set: .tsv is split at tabs; .csv at commas, unless its first line has none and has tabs
or else semicolons; any other file at tabs, where every line has one.

Whether quotes quote, where quoting is "auto": with tabs they do only if at least one field begins with a double quote,
and each that does is whole on its line: it ends with one, and every quote inside is doubled. A single lone quote in the
file (MRPC, STS-B, SMS) thus makes all of them characters of the text. With any other character they always do.

Lines end in LF, CRLF or CR. Lines of nothing but blanks are skipped and counted, but not inside of quotes.
"""

import contextlib
import csv
import itertools
import re
from collections.abc import Iterator
from typing import Any

from bert.errors import InputError
from tasks.reading.records import Table, TableSettings, listed, short
from tasks.reading.text_lines import LINE_LIMIT, read_lines

_WHOLE_QUOTED = re.compile(r'"(?:[^"]|"")*"')
Record = tuple[int, list[str]]  # (line where it begins, fields)


def read(path: str, ending: str, settings: TableSettings) -> Table:
    """A table from a text file.

    Args:
      ending: of its name, without .gz: ".csv", ".tsv", or anything else.

    Raises:
      InputError: what read_lines raises, no delimiter found, a bad header, a line with too few or too many fields, or a
        quote that is not closed.
    """
    lines = list(read_lines(path, settings.encoding))
    notes: list[str] = []
    character = settings.character
    if not character and not settings.pattern:
        character = _find_delimiter(path, lines, ending, settings, notes)
    quoted = bool(character) and _quotes(lines, character, settings, notes)
    if quoted:
        records = _quoted_records(path, lines, character)
    elif settings.pattern:
        records = _split_records(lines, settings.pattern, len(settings.columns))
    else:
        records = ((i, line.split(character) if character else [line]) for i, line in enumerate(lines, 1))
    blank, found = 0, []
    for number, fields in records:
        if not lines[number - 1].strip(" "):  # delimiters alone are a row of empty fields, not a blank line
            blank += 1
            continue
        found.append((number, fields))
    if blank:
        notes.append(f"{path}: {blank:,} blank {'line was' if blank == 1 else 'lines were'} skipped")
    columns = settings.columns or _header(path, found, notes)
    if not settings.columns:
        found = found[1:]
    elif found and sorted(field.strip().casefold() for field in found[0][1]) == sorted(map(str.casefold, columns)):
        raise InputError(
            f"{path}:{found[0][0]}: the first line holds the column names; leave columns empty (--columns= of evaluate "
            "and predict)"
        )
    return _table(path, columns, found, settings, quoted, notes)


def _table(
    path: str, columns: tuple[str, ...], records: list[Record], settings: TableSettings, quoted: bool, notes: list[str]
) -> Table:
    rows: list[dict[str, Any]] = []
    places: list[str] = []
    dropped: list[int] = []
    allowed = {len(columns), *settings.widths}
    for number, fields in records:
        if len(fields) not in allowed:
            if settings.ragged == "drop":
                dropped.append(number)
                continue
            quotes = f"; quoting is {'on' if quoted else 'off'}, set it if that is wrong" * any(
                '"' in f for f in fields
            )
            wanted = " or ".join(map(str, sorted(allowed)))
            raise InputError(
                f"{path}:{number}: {len(fields)} field{'s' * (len(fields) != 1)} where {wanted} are wanted "
                f"({listed(columns, 8)}){quotes}; mend the line, or set ragged to drop"
            )
        rows.append(dict(itertools.zip_longest(columns, fields)))
        places.append(f"{path}:{number}")
    if dropped:
        notes.append(f"{path}: {len(dropped):,} lines with a wrong number of fields dropped, the first is {dropped[0]}")
    return Table(columns, rows, places, tuple(notes), path)


def _find_delimiter(path: str, lines: list[str], ending: str, settings: TableSettings, notes: list[str]) -> str:
    """The delimiter by name and content; "" where a line is one field."""
    filled = [line for line in lines if line.strip(" ")]
    first = filled[0] if filled else ""
    if ending == ".csv":
        chosen = next((mark for mark in ",\t;" if mark in first), ",")
        if chosen != ",":
            notes.append(f"{path}: no comma in its first line; split at {'tabs' if chosen == chr(9) else 'semicolons'}")
        return chosen
    if ending == ".tsv" or (filled and all("\t" in line for line in filled)):
        return "\t"
    if len(settings.columns) == 1 or not filled:
        return ""
    number = next(i for i, line in enumerate(lines, 1) if line.strip(" ") and "\t" not in line)
    raise InputError(
        f"{path}:{number}: no tab in {short(lines[number - 1])}; set delimiter (comma, space, a pattern), or "
        "columns to one name if a line is one text"
    )


def _quotes(lines: list[str], character: str, settings: TableSettings, notes: list[str]) -> bool:
    """Whether double quotes quote; the rule is in the head of this file."""
    if settings.quoting != "auto":
        return settings.quoting == "yes"
    if character != "\t":
        return True
    quoted, whole = 0, True
    for line in lines:
        if '"' not in line:
            continue
        for field in line.split(character):
            if field.startswith('"'):
                quoted += 1
                whole = whole and bool(_WHOLE_QUOTED.fullmatch(field))
    if quoted and whole:
        notes.append(f"{quoted:,} quoted fields were unquoted; set quoting to no if the quotes belong to the text")
    elif quoted:
        notes.append(f"{quoted:,} fields begin with a double quote, not all in pairs: quotes are text (quoting no)")
    return bool(quoted) and whole


def _split_records(lines: list[str], pattern: str, width: int) -> Iterator[Record]:
    """Lines split by a pattern into at most `width` fields (0: as many as the first line has)."""
    compiled = re.compile(pattern)
    for number, line in enumerate(lines, 1):
        fields = compiled.split(line.strip(" "), maxsplit=max(width - 1, 0)) if width != 1 else [line]
        width = width or (len(fields) if line.strip(" ") else 0)
        yield number, fields


def _quoted_records(path: str, lines: list[str], character: str) -> Iterator[Record]:
    """Records by the standard csv module; those with line breaks in quotes count from where they begin."""
    reader = csv.reader((line + "\n" for line in lines), delimiter=character, strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            with _long_fields():
                fields = next(reader)
        except StopIteration:
            return
        except csv.Error:
            opens = _opening_line(lines, begin, character)
            raise InputError(
                f"{path}:{opens}: the double quote that opens a field here is not closed, or more than a delimiter "
                "follows where it closes; double the quotes inside of fields, or set quoting to no"
            ) from None
        yield begin, fields


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """csv refuses fields over 131,072 characters unless told otherwise, for the whole process."""
    before = csv.field_size_limit(LINE_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _opening_line(lines: list[str], begin: int, character: str) -> int:
    """Line of the last quote that opens a field in the faulty record that begins at line `begin`."""
    opens, inside = begin, False
    for number, line in enumerate(itertools.islice(lines, begin - 1, None), begin):
        if inside and '"' not in line:
            continue
        previous = character
        position = 0
        while position < len(line):
            mark = line[position]
            if inside and mark == '"':
                if line[position + 1 : position + 2] == '"':
                    position += 1
                elif line[position + 1 : position + 2] in ("", character):
                    inside = False
                else:
                    return opens
            elif not inside and mark == '"' and previous == character:
                opens, inside = number, True
            previous = mark
            position += 1
        if not inside:
            return opens
    return opens


def _header(path: str, records: list[Record], notes: list[str]) -> tuple[str, ...]:
    if not records:
        raise InputError(f"{path}: no rows and no header; is it the right file?")
    number, fields = records[0]
    names = [field.strip() for field in fields]
    if names[0] == "" and len(names) > 1 and "index" not in names:
        names[0] = "index"  # as pandas writes the index of its rows
        notes.append(f"{path}: the first column has no name; it was taken for row numbers and called index")
    for position, name in enumerate(names, 1):
        if not name:
            raise InputError(f"{path}:{number}: column {position} of the header has no name; give each column one")
        if name in names[: position - 1]:
            raise InputError(
                f"{path}:{number}: the header has {short(name)} twice (columns {names.index(name) + 1} and {position})"
                "; name each column once, or set columns if the first line is no header"
            )
    return tuple(names)
