"""Writes the files of a command: whole or not at all, never over what is read; rows as JSON lines."""

import csv
import io
import itertools
import json
import math
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert import files, surrogates
from bert.errors import InputError


def write_whole(path: pathlib.Path, text: str | Iterable[str]) -> None:
    """Writes a file that has its name only when it is complete.

    Into a pipe or device goes each of several texts when it is there.
    """
    parts = [text] if isinstance(text, str) else text
    try:
        files.write(path, map(surrogates.join, parts))  # JSON can hold them in any cell, id or name, and UTF-8 cannot
    except OSError as error:
        if isinstance(error, BrokenPipeError) and files.standard_stream(path):  # such as head, which has read enough
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another name") from None


def check_other_file(option: str, output: str | pathlib.Path, *sources: str, folder: bool = False) -> None:
    """Refuses to write over a file that is read, or over one in a folder that is, by whatever name or link.

    A folder is refused, too, unless the output may be one (``folder``), and the name of a packed file, for none is
    written. ``sources``: files and folders; one that is not there may be several with commas between.
    """
    if (ending := os.path.splitext(output)[1].lower()) in (".gz", ".zip"):
        raise InputError(f"{option}={output}: files are not packed; leave out {ending}")
    if os.path.isdir(output) and not folder:
        raise InputError(f"{option}={output}: is a folder; name a file")
    if not os.path.isfile(output):  # nothing is there, or a pipe or device
        return
    names = itertools.chain.from_iterable([name] if os.path.exists(name) else name.split(",") for name in sources)
    for path in map(pathlib.Path, names):
        read = [path, *(path.rglob("*") if path.is_dir() else ())]
        if any(file.exists() and file.samefile(output) for file in read):
            raise InputError(f"{option}={output}: is the input, which it would replace; choose another name")


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """An object a line; NaN and infinity, which JSON does not have, become null."""
    return "".join(json.dumps(_finite(row), ensure_ascii=False, default=str, allow_nan=False) + "\n" for row in rows)


def table_line(cells: Sequence[Any], delimiter: str) -> str:
    """A row of a csv or tsv file; lists and objects become JSON, which is read back as such."""
    out = io.StringIO()
    # The module quotes what is in its line terminator, and a lone CR would end a line for whoever reads the file.
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerow(map(_cell, cells))
    return out.getvalue().removesuffix("\r\n").replace("\0", "\ufffd") + "\n"


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (list, dict)) else value


def columns_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The names in the rows, in the order in which they come."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
