"""Column names of a text table: reads them from its first line, and repairs common faults.

A column without a name is left out if it is empty, otherwise called by its position ("column 3"). A first column
without a name is called "index", because pandas writes row numbers there. If each row has extra empty fields at its end
(a comma at the end of lines), these are left out.
"""

import re
from collections.abc import Sequence

from bert.errors import InputError, listed
from tasks.files.cells import short

Record = tuple[int, list[str]]  # (line where it begins, fields)

FEW_ROWS = 10  # with fewer rows a column's content is not judged


def split_header(path: str, records: list[Record], notes: list[str]) -> tuple[tuple[str, ...], list[Record]]:
    """(names of the columns, the records below the header, without columns that have neither name nor content)."""
    if not records:
        raise InputError(f"{path}: no rows and no header; is it the right file?")
    number, fields = records[0]
    names, rows = [field.strip() for field in fields], records[1:]
    first: dict[str, int] = {}
    for position, name in enumerate(names, 1):
        if name and first.setdefault(name, position) < position:
            raise InputError(
                f"{path}:{number}: the header has {short(name)} twice (columns {first[name]} and {position})"
                "; name each column once, or set columns if the first line is no header"
            )
    named = max((i for i, name in enumerate(names, 1) if name), default=0)
    shortest = min((len(row) for _, row in rows), default=0)
    ends = rows and named and (named < len(names) or 1 < named < shortest)
    if ends and all(_is_empty(row[named:]) for _, row in rows):
        notes.append(f"{path}: the header or the rows end in a delimiter; the empty columns behind it are left out")
        names = names[:named]
        rows = [(line, row[:named]) for line, row in rows]
    if names[:1] == [""] and len(names) > 1 and "index" not in names:
        names[0] = "index"
        notes.append(f"{path}: the first column has no name; it was taken for row numbers and called index")
    nameless = [i for i, name in enumerate(names) if not name]
    empty = {i for i in nameless if len(names) > 1 and all(_is_empty(row[i : i + 1]) for _, row in rows)}
    taken = set(names)
    for i in nameless:
        names[i] = f"column {i + 1}"
        while names[i] in taken:
            names[i] += "'"
    if set(nameless) - empty:
        called = listed((names[i] for i in nameless if i not in empty), 5)
        notes.append(f"{path}: columns without a name are called by their place: {called}")
    if empty:
        notes.append(f"{path}: {len(empty):,} columns have neither name nor content and are left out")
        whole = len(names)
        rows = [(line, [f for i, f in enumerate(row) if i not in empty or len(row) != whole]) for line, row in rows]
    return tuple(name for i, name in enumerate(names) if i not in empty), rows


def check_no_header(path: str, columns: Sequence[str], records: list[Record], notes: list[str]) -> None:
    """With ``columns`` set: refuses a first line that is a header of these names, and notes one that may be another."""
    if not records:
        return
    number, fields = records[0]
    first = [field.strip().casefold() for field in fields]
    wanted = [name.casefold() for name in columns]
    equal = sum(a == b for a, b in zip(first, wanted, strict=False))
    if sorted(first) == sorted(wanted) or 2 * equal >= len(wanted):  # one name among many may be a value
        raise InputError(
            f"{path}:{number}: the first line holds the column names; leave columns empty (--columns= of evaluate "
            "and predict)"
        )
    below = [row for _, row in records[1:] if len(row) == len(fields)]
    looks_so = all(re.fullmatch(r"[\w .-]{1,40}", field) for field in fields)
    if looks_so and any(_is_new(field, [row[i] for row in below]) for i, field in enumerate(fields)):
        notes.append(
            f"{path}:{number}: the first line looks like a header ({listed(map(short, fields), 5)}) and is read as a "
            "row; leave columns empty if it is one"
        )


def _is_new(value: str, others: list[str]) -> bool:
    """Whether a value differs in kind from those below it: the values repeat and it is none of them, or are numbers."""
    different = set(others)
    few = len(different) * 2 <= len(others) and value not in different
    numbers = all(other.strip().isdecimal() for other in others) and not value.strip().isdecimal()
    return len(others) >= FEW_ROWS and (few or numbers)


def _is_empty(fields: Sequence[str]) -> bool:
    return not any(field.strip() for field in fields)
