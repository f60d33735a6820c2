"""Decides whether double quotes in a text table quote fields, and reads the records if they do.

With quoting "auto", quotes always quote unless tabs delimit. In a file with tabs they quote if each field that begins
with a quote also ends with one on its line and has only doubled quotes inside. A single lone quote in the file (MRPC,
STS-B, SMS) thus makes all quotes characters of the text, unless lines have different numbers of tabs and quoting makes
all records equally long: then fields hold tabs or line breaks.

Blanks before a quote belong to the delimiter if the file can be read that way ('x, "a, b"').
"""

import contextlib
import csv
import re
from collections.abc import Iterator

from bert.errors import InputError
from tasks.files.cells import TableCell
from tasks.files.headers import Record
from tasks.files.text_lines import LINE_LIMIT

_WHOLE = re.compile(r'"(?:[^"]|"")*"')


def are_quoting(path: str, lines: list[str], character: str, quoting: str, notes: list[str]) -> bool:
    """Whether double quotes quote; the rule is in the head of this file."""
    if quoting != "auto":
        return quoting == "yes"
    if character != "\t":
        return True
    quoted, whole = 0, True
    for line in lines:
        if '"' not in line:
            continue
        for field in line.split(character):
            spaced = field.startswith(" ") and bool(_WHOLE.fullmatch(field.strip(" ")))
            if field.startswith('"') or spaced:
                quoted += 1
                whole = whole and (spaced or bool(_WHOLE.fullmatch(field)))
    if quoted and (whole or _have_breaks(lines)):
        notes.append(f"{path}: {quoted:,} quoted fields were unquoted; set quoting to no if the quotes are text")
        return True
    if quoted:
        rule = "fields begin with a double quote, not all in pairs: quotes are text (quoting no)"
        notes.append(f"{path}: {quoted:,} {rule}")
    return False


def _have_breaks(lines: list[str]) -> bool:
    """Whether records have one length only if tabs and line breaks inside of quotes are text."""
    if len({line.count("\t") for line in lines if line.strip(" ")}) < 2:
        return False
    try:
        with _long_fields():
            lengths = {len(fields) for fields in csv.reader(map("{}\n".format, lines), delimiter="\t", strict=True)}
    except csv.Error:
        return False
    return len(lengths - {0}) == 1 and lengths != {1}


def quoted_records(path: str, lines: list[str], ends: list[str], character: str, notes: list[str]) -> list[Record]:
    """Records by the standard csv module; those with line breaks in quotes count from where they begin.

    Args:
      ends: what ends each line, which is kept inside of quotes.
    """
    spaced = re.compile(rf'(?:^|{re.escape(character)}) +"')
    if not any(spaced.search(line) for line in lines):
        return list(_records(path, lines, ends, character, False))
    skipping = None  # the records without blanks before quotes, if it can be read so
    with contextlib.suppress(InputError):
        skipping = list(_records(path, lines, ends, character, True))
    try:
        plain = list(_records(path, lines, ends, character, False))
    except InputError:
        if skipping is None:
            raise
        plain = []
    widths = {len(fields) for _, fields in plain if fields}
    # Two lone quotes would make one record of rows that are whole without them.
    if skipping is None or (len(skipping) != len(plain) and len(widths) == 1):
        for number, fields in plain:
            for field in fields:
                if field[:1] == " " and field in lines[number - 1] and _WHOLE.fullmatch(field.strip(" ")):
                    raise TableCell(f"{path}:{number}", field).error(
                        "has a blank before its quote, but other quotes after blanks are text; take the blanks away"
                    )
        return plain
    without_blanks = [[field.lstrip(" ") for field in fields] for _, fields in plain]
    if without_blanks != [[field.lstrip(" ") for field in fields] for _, fields in skipping]:
        notes.append(f"{path}: blanks before fields are left out, for quotes follow some of them")
        return skipping
    return plain


def _records(path: str, lines: list[str], ends: list[str], character: str, skip_blanks: bool) -> Iterator[Record]:
    reader = csv.reader(map(str.__add__, lines, ends), delimiter=character, strict=True, skipinitialspace=skip_blanks)
    while True:
        begin = reader.line_num + 1
        try:
            with _long_fields():
                fields = next(reader)
        except StopIteration:
            return
        except csv.Error:
            raise InputError(
                f"{path}:{begin}: a double quote in the record that begins here is not closed, or text follows a "
                "closing quote; double the quotes inside of fields, or set quoting to no"
            ) from None
        yield begin, fields


@contextlib.contextmanager
def _long_fields() -> Iterator[None]:
    """Raises csv's limit of 131,072 characters a field, which holds for the whole process."""
    before = csv.field_size_limit(LINE_LIMIT)
    try:
        yield
    finally:
        csv.field_size_limit(before)
