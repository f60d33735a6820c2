"""Finds the files of a corpus, and reads the rows of those that are tables."""

import glob
import itertools
import json
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bert.corpus import remote_files
from bert.corpus.ranges import Range
from bert.corpus.text_files import read_lines
from bert.errors import InputError, listed
from bert.extras import check_arrow

INSTALLED_DOCS = "installed-docs"
LONGEST_ROW = 1 << 26  # characters of a line of JSON, which is held as a whole: a few hundred megabytes
# Found in folders. A file that is named, or met by a glob, may have any ending but those of OTHER_FORMATS.
ENDINGS = (".txt", ".jsonl", ".parquet", ".txt.gz", ".jsonl.gz")
ARCHIVES = dict.fromkeys((".zip", ".tar", ".tgz", ".bz2", ".xz", ".zst", ".7z"), "unpack it first")
OTHER_FORMATS = {
    **ARCHIVES,
    **dict.fromkeys((".csv", ".tsv", ".json", ".xml", ".html", ".pdf"), "convert it to .txt, .jsonl or .parquet first"),
    **dict.fromkeys((".arrow", ".parquet.gz"), "name the folder of the saved data set, or give plain .parquet"),
}


class Source(NamedTuple):
    """One file (or saved data set) of a corpus. kind: "text", "jsonl", "parquet", "saved" or "installed-docs"."""

    path: pathlib.Path
    kind: str

    @property
    def bytes(self) -> int:
        """Size on disk, packed if it is packed; 0 for what is no file."""
        if self.kind == "saved":
            return sum(path.stat().st_size for path in self.path.glob("*.arrow"))
        return self.path.stat().st_size if self.path.is_file() else 0

    @property
    def mark(self) -> str:
        """Changes when the file does."""
        return f"{self.bytes} {self.path.stat().st_mtime_ns}" if self.path.exists() else ""


def find_sources(spec: str | Iterable[str]) -> list[Source]:
    """Files of a corpus, sorted by path within each part of the spec, each file once.

    spec: a folder (read with all below it), a file, a glob ("**" goes through folders), a folder saved by `datasets`,
    or "installed-docs"; or several of these, as a list or separated by commas.

    Raises InputError for a part that matches nothing, or a format that is not read.
    """
    if isinstance(spec, str) and not os.path.exists(spec):  # else a name with a comma in it
        spec = [part.strip() for part in spec.split(",") if part.strip()]
    parts = [spec] if isinstance(spec, str) else list(map(str, spec))
    if not parts:
        raise InputError("corpus is empty; name a folder, files such as 'texts/*.txt', or installed-docs")
    sources: dict[str, Source] = {}
    for part in parts:
        for source in _sources_of(part):
            name = str(source.path)
            sources.setdefault(name if remote_files.is_remote(name) else os.path.realpath(name), source)
    return list(sources.values())


def _sources_of(part: str) -> list[Source]:
    path = pathlib.Path(part)
    if part == INSTALLED_DOCS:
        return [Source(path, INSTALLED_DOCS)]
    if remote_files.is_remote(part):
        there = remote_files.find(part)
        if len(there) != 1 or not part.endswith(f"/{there[0].name}"):  # of a folder or a pattern
            there = [file for file in there if "".join(endings_of(file)) in ENDINGS]
        if not there:
            raise InputError(f"corpus {part!r}: no file is there that ends in one of {', '.join(ENDINGS)}")
        return [Source(file, _kind(file)) for file in there]
    if saved := saved_data_set(path):
        return [Source(saved, "saved")]
    if path.is_dir():
        named = (file for file in path.rglob("*") if "".join(endings_of(file)) in ENDINGS)
        # Hidden ones are left out, as for a pattern.
        files = [file for file in named if not any(name.startswith(".") for name in file.relative_to(path).parts)]
    else:
        files = [path] if path.is_file() else list(map(pathlib.Path, glob.glob(part, recursive=True)))
    sources = [Source(file, _kind(file)) for file in sorted(files) if file.is_file()]
    if not sources and path.is_dir():
        raise InputError(f"{path}: no file in this folder ends in one of {', '.join(ENDINGS)}; rename the files")
    if not sources:
        raise InputError(
            f"corpus {part!r}: no such file, folder or match of a pattern (seen from {os.getcwd()}); set corpus to one "
            "(nothing is downloaded)"
        )
    return sources


def saved_data_set(folder: pathlib.Path) -> pathlib.Path | None:
    """The folder of a split that `datasets` saved; None for any other path."""
    if (folder / "dataset_dict.json").is_file():
        splits = sorted(file.parent.name for file in folder.glob("*/state.json"))
        if len(splits) != 1:
            example = f"such as {folder / splits[0]}" if splits else "there is none"
            raise InputError(f"{folder}: holds the splits {', '.join(splits)}; name one, {example}")
        return folder / splits[0]
    return folder if (folder / "state.json").is_file() and (folder / "dataset_info.json").is_file() else None


def endings_of(path: pathlib.Path) -> tuple[str, str]:
    """(the ending that tells the format, ".gz" or ""), in small letters: (".csv", ".gz") of "a.CSV.gz"."""
    endings = [suffix.lower() for suffix in path.suffixes[-2:]]
    packed = endings.pop() if endings[-1:] == [".gz"] else ""
    return (endings or [""])[-1], packed


def _kind(path: pathlib.Path) -> str:
    ending, packed = endings_of(path)
    for other in (ending, ending + packed):
        if other in OTHER_FORMATS:
            raise InputError(f"{path}: {other} files are not read; {OTHER_FORMATS[other]}")
    return {".jsonl": "jsonl", ".parquet": "parquet"}.get(ending, "text")


def read_rows(source: Source, here: Range, encoding: str, column: str) -> Iterator[tuple[str, Any]]:
    """("file:row", value of the text column) of each row of a range, which in jsonl begins and ends at a line's end.

    Rows and lines count from 1; in jsonl those behind the range's start, which is part of the name.
    """
    if source.kind == "jsonl":
        yield from _json_rows(source.path, here, encoding, column)
        return
    check_arrow(source.path, "pyarrow" if source.kind == "parquet" else "datasets")
    from bert.corpus import arrow_files  # pyarrow and pandas, 67 MB, only where a table is read

    for row, value in arrow_files.column_values(source.path, source.kind, column, here):
        yield f"{source.path}:{row}", value


def _json_rows(path: pathlib.Path, here: Range, encoding: str, column: str) -> Iterator[tuple[str, Any]]:
    pieces: list[str] = []
    number, size = 1, 0
    place = f"{path}, from byte {here.start} on" if here.start else str(path)
    for piece in itertools.chain(read_lines(path, encoding, start=here.start, end=here.end), ["\n"]):
        pieces.append(piece)
        size += len(piece)
        if size > LONGEST_ROW:
            what = f"longer than {LONGEST_ROW:,} characters; each line must hold one object"
            way_out = "put the text on several lines, or into a .txt file, where lines may have any length"
            raise InputError(f"{place}, line {number}: {what}, so {way_out}")
        if piece.endswith("\n"):
            line = "".join(pieces)
            if line.strip():
                yield f"{place}:{number}", _json_value(line, f"{place}, line {number}", column)
            pieces, number, size = [], number + 1, 0


def _json_value(line: str, where: str, column: str) -> Any:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:  # the latter where it is nested too deeply
        raise InputError(f"{where}: not JSON ({error}); each line must hold one object") from None
    if not isinstance(row, dict) or column not in row:
        have = f"the columns {listed(row)}" if isinstance(row, dict) else f"a {type(row).__name__}, not an object"
        raise InputError(f"{where}: has {have}; set text_column to the one with the text (now {column!r})")
    return row[column]
