"""Finds the files of a corpus and reads their bytes as text or rows, in bounded memory; knows nothing of sentences."""

import codecs
import fnmatch
import glob
import gzip
import io
import itertools
import json
import os
import pathlib
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bert.errors import InputError

INSTALLED_DOCS = "installed-docs"
BLOCK = 1 << 20  # bytes decoded at once
LONG_LINE = 100_000  # characters; longer lines are handed on in pieces
LONGEST_ROW = 1 << 26  # characters of a line of JSON, which is held as a whole: a few hundred megabytes
MANY_NAMES = 20  # named in a message; of more the number is given
# A .gz file that unpacks to more than 16 MiB and 100 times its size is no text; text is packed to a third or a tenth.
MOST_UNPACKED, MOST_TIMES = 1 << 24, 100
# Found in folders. A file that is named, or met by a glob, may have any ending but those of OTHER_FORMATS.
ENDINGS = (".txt", ".jsonl", ".parquet", ".txt.gz", ".jsonl.gz")
OTHER_FORMATS = {
    **dict.fromkeys((".zip", ".tar", ".tgz", ".tar.gz", ".bz2", ".xz", ".zst", ".7z"), "unpack it first"),
    **dict.fromkeys((".csv", ".tsv", ".json", ".xml", ".html", ".pdf"), "convert it to .txt, .jsonl or .parquet first"),
    **dict.fromkeys((".arrow", ".parquet.gz"), "name the folder of the saved data set, or give plain .parquet"),
}

_BREAKS = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")

# How files of other formats begin.
_MAGIC = {
    b"\x1f\x8b": "packed by gzip; add .gz to its name",
    b"PK\x03\x04": "a zip archive (or an Excel file); unpack it, or save it as csv",
    b"PAR1": "a parquet file; let its name end in .parquet",
    b"ARROW1": "an Arrow file; name the folder of the saved data set",
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


def find_sources(spec: str | Iterable[str]) -> list[Source]:
    """Files of a corpus, sorted by path within each part of the spec, each file once.

    Args:
      spec: a folder (read with all below it), a file, a glob ("**" goes through folders), a folder saved by
        `datasets`, or "installed-docs"; or several of these, as a list or separated by commas.

    Raises:
      InputError: a part that matches nothing, or a format that is not read.
    """
    parts = _parts(spec)
    if not parts:
        raise InputError("corpus is empty; name a folder, files such as 'texts/*.txt', or installed-docs")
    found: dict[str, Source] = {}
    for part in parts:
        for source in _sources_of(part):
            found.setdefault(os.path.realpath(source.path), source)
    return list(found.values())


def _parts(spec: str | Iterable[str]) -> list[str]:
    if not isinstance(spec, str):
        return [str(part) for part in spec]
    if os.path.exists(spec):  # a name with a comma in it
        return [spec]
    return [part.strip() for part in spec.split(",") if part.strip()]


def _sources_of(part: str) -> list[Source]:
    path = pathlib.Path(part)
    if part == INSTALLED_DOCS:
        return [Source(path, INSTALLED_DOCS)]
    if (path / "dataset_dict.json").is_file():
        splits = sorted(p.parent.name for p in path.glob("*/state.json"))
        if len(splits) != 1:
            example = f"such as {path / splits[0]}" if splits else "there is none"
            raise InputError(f"{path}: holds the splits {', '.join(splits)}; name one, {example}")
        return [Source(path / splits[0], "saved")]
    if (path / "state.json").is_file() and (path / "dataset_info.json").is_file():
        return [Source(path, "saved")]
    if path.is_dir():
        files = sorted(
            file
            for file in path.rglob("*")
            if file.is_file()
            and _ending(file) in ENDINGS
            and not any(name.startswith(".") for name in file.relative_to(path).parts)  # hidden, as for a pattern
        )
        if not files:
            raise InputError(f"{path}: no file in this folder ends in one of {', '.join(ENDINGS)}")
        return [Source(file, _kind(file)) for file in files]
    files = [path] if path.is_file() else sorted(pathlib.Path(name) for name in glob.glob(part, recursive=True))
    files = [file for file in files if file.is_file()]
    if not files:
        raise InputError(f"corpus {part!r}: no such file, folder or match of a pattern (seen from {os.getcwd()})")
    return [Source(file, _kind(file)) for file in files]


def _ending(path: pathlib.Path) -> str:
    endings = [suffix.lower() for suffix in path.suffixes[-2:]]
    return "".join(endings) if endings[-1:] == [".gz"] else "".join(endings[-1:])


def _kind(path: pathlib.Path) -> str:
    ending = _ending(path)
    for other, way_out in OTHER_FORMATS.items():
        if ending == other or ending == other + ".gz":
            raise InputError(f"{path}: {other} files are not read; {way_out}")
    return {".jsonl": "jsonl", ".parquet": "parquet"}.get(ending.removesuffix(".gz"), "text")


def encoding_of(path: pathlib.Path, encoding: str | None) -> str:
    """Name of a file's encoding: UTF-8 (a BOM is taken off) unless the setting says otherwise.

    Args:
      encoding: None or "" for UTF-8; a name ("latin-1") for all files; or "GLOB=NAME" parts separated by commas, the
        first match wins, a part without "=" is for the rest. A glob is held against the file's name and its path.

    Raises:
      InputError: a name that Python does not know.
    """
    chosen = "utf-8"
    names = {name.removesuffix(ending) for name in (path.name, str(path)) for ending in ("", ".gz")}
    for part in (encoding or "").split(","):
        pattern, _, name = part.strip().rpartition("=")
        if not name:
            continue
        if not pattern or any(fnmatch.fnmatch(name, pattern) for name in names):
            chosen = name
            if pattern:
                break
    known = _text_encoding(chosen)
    if known is None:
        raise InputError(f"encoding {chosen!r} (for {path}) is unknown; name one such as latin-1 or cp1252")
    return "utf-8-sig" if known == "utf-8" else known


def _text_encoding(name: str) -> str | None:
    """Python's name of an encoding of texts; None for what is unknown, or no such encoding (base64, rot13)."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=name).read()
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        return None


def open_bytes(path: pathlib.Path) -> io.BufferedIOBase:
    """The file, unpacked where its name ends in .gz."""
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else open(path, "rb")


def read_lines(path: pathlib.Path, encoding: str, translate: bool = True) -> Iterator[str]:
    """Lines with "\\n" at their ends, whatever the file uses; a very long line comes in pieces without one.

    Args:
      translate: False: lines keep the ends that they have, LF, CRLF or CR.

    Raises:
      InputError: bytes that are not of this encoding (by position in the unpacked file), zero bytes as UTF-16 and
        UTF-32 have them, a damaged .gz file, or a file of another format, by its first bytes.
    """
    _refuse_other_formats(path)
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(encoding)(), translate)
    held, done, line = "", 0, 1
    packed, size = path.suffix.lower() == ".gz", os.path.getsize(path)
    try:
        with open_bytes(path) as handle:
            while True:
                block = handle.read(BLOCK)
                if not done:
                    _refuse_other_encodings(path, encoding, block[: 1 << 16])
                done += len(block)
                if done > MOST_UNPACKED and packed and done > MOST_TIMES * size:
                    raise InputError(
                        f"{path}: unpacks to more than {MOST_TIMES} times its {size:,} bytes, as no text does; unpack "
                        "it yourself if it is one"
                    )
                held += decoder.decode(block, final=not block)
                if translate or "\r" not in held:
                    *lines, held = held.split("\n")
                    lines = [text + "\n" for text in lines]
                else:
                    *lines, held = _BREAKS.split(held)
                line += len(lines)
                yield from lines
                *pieces, held = _in_pieces(held)
                yield from pieces
                if not block:
                    break
    except UnicodeDecodeError as error:
        bad = error.object[error.start]
        line += error.object[: error.start].count(b"\n")
        raise NotInEncoding(path, encoding, done - len(error.object) + error.start, line, bad) from None
    except UnicodeError:  # UTF-16 or UTF-32, whose order of bytes nothing tells
        raise InputError(
            f"{path}: is read as {encoding.upper()}, but no mark at its beginning tells the order of its bytes; "
            f"set encoding to '{path.name}={encoding}-le', or to {encoding}-be"
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: damaged .gz file ({error}); get it again") from None
    if held:
        yield held


def _refuse_other_formats(path: pathlib.Path) -> None:
    with open(path, "rb") as handle:
        head = handle.read(8)
    for magic, what in _MAGIC.items():
        is_text = magic.isalnum() and min(head, default=0) >= 9  # a word of that spelling
        if head.startswith(magic) and not is_text and not (magic == b"\x1f\x8b" and path.suffix.lower() == ".gz"):
            raise InputError(f"{path}: is {what}")


def _refuse_other_encodings(path: pathlib.Path, encoding: str, head: bytes) -> None:
    """Raises InputError for UTF-16 and UTF-32 without a mark at the beginning that would be read as something else.

    Both write the blanks and line ends of any text with zero bytes, which stand at odd places or at even ones. As UTF-8
    they are characters, too. UTF-8 with a mark is refused where it would be read as something else.
    """
    if head.startswith(codecs.BOM_UTF8) and not encoding.startswith("utf-8"):
        raise InputError(
            f"{path}: begins with the mark of UTF-8 (BOM), but is read as {encoding.upper()}; set encoding to "
            f"'{path.name}=utf-8'"
        )
    zeros = [head[place::4].count(0) for place in range(4)]
    most = 0.9 * (len(head) // 4)
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    found = ""
    if head[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        found = "" if encoding.startswith("utf-") else "utf-16"  # else told by their decoders
    elif min(zeros[2:]) > most or min(zeros[:2]) > most:
        found = "utf-32-le" if zeros[3] > zeros[0] else "utf-32-be"
    elif max(even, odd) >= max(4, len(head) // 2000) and min(even, odd) <= 0.1 * max(even, odd):
        found = "utf-16-le" if odd > even else "utf-16-be"
    if found and found != encoding and not (head[:4] == codecs.BOM_UTF32_BE and encoding == "utf-32"):
        raise InputError(
            f"{path}: has zero bytes where {found.upper()} has them, but is read as "
            f"{encoding.removesuffix('-sig').upper()}; set encoding to '{path.name}={found}'"
        )


def lines_of(text: str) -> Iterator[str]:
    """What `read_lines` would give for a file with this text."""
    for line in text.split("\n"):
        yield from _in_pieces(line + "\n")


def _in_pieces(line: str) -> list[str]:
    """A line cut at blanks into pieces of at most LONG_LINE characters; at least one piece."""
    pieces, start = [], 0
    while len(line) - start > LONG_LINE:
        end = line.rfind(" ", start + 1, start + LONG_LINE) + 1 or start + LONG_LINE
        pieces.append(line[start:end])
        start = end
    return [*pieces, line[start:]]


def listed(names: Sequence[str]) -> str:
    """The names for a message: the first ones and how many more there are, long ones cut."""
    short = [name if len(name) <= 100 else f"{name[:100]}..." for name in names[:MANY_NAMES]]
    return ", ".join(short) + (f" and {len(names) - MANY_NAMES:,} more" if len(names) > MANY_NAMES else "")


class NotInEncoding(InputError):
    """A byte that the file's encoding does not have."""

    def __init__(self, path: pathlib.Path, encoding: str, position: int, line: int, byte: int, others: str = ""):
        self.arguments = (path, encoding, position, line, byte)
        name = encoding.removesuffix("-sig").upper()
        super().__init__(
            f"{path}, byte {position} (line {line}): 0x{byte:02X} is not {name}; set encoding to the file's, such as "
            f"'{path.name}={wide_encoding(path) or 'cp1252'}'{others}"
        )

    def with_others(self, others: Iterable[pathlib.Path]) -> "NotInEncoding":
        """The same error, naming more files with the fault, so that all can be settled at once."""
        names = [path.name for path in others if path != self.arguments[0]]
        more = f"; the same is true of {listed(names)}" if names else ""
        return NotInEncoding(*self.arguments, more)


def wide_encoding(path: pathlib.Path) -> str:
    """The encoding of a file that has two or four bytes a character, by its first bytes; "" where it has not."""
    try:
        with open_bytes(path) as handle:
            head = handle.read(4096)
    except (OSError, EOFError, zlib.error):
        return ""
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    # The upper byte of ASCII is 0, and each file has some: blanks, line breaks, marks.
    first, second = head[::2].count(0), head[1::2].count(0)
    if max(first, second) * 100 < len(head):
        return ""
    return "utf-16-le" if second > first else "utf-16-be"


def decodes(path: pathlib.Path, encoding: str) -> bool:
    """Whether the first mebibyte of a file is of this encoding."""
    try:
        with open_bytes(path) as handle:
            codecs.getincrementaldecoder(encoding)().decode(handle.read(BLOCK))
    except (UnicodeError, OSError, EOFError, zlib.error):
        return False
    return True


def read_rows(source: Source, encoding: str, column: str) -> Iterator[tuple[str, Any]]:
    """("file:row", value of the text column) of each row; rows and lines count from 1.

    Raises:
      InputError: a row that cannot be read, or a column that is not there (with those that are).
    """
    if source.kind == "jsonl":
        yield from _json_rows(source.path, encoding, column)
        return
    from bert.text import arrow_tables  # pyarrow and pandas, 67 MB, only where a table is read

    for row, value in enumerate(arrow_tables.column_values(source.path, source.kind, column), 1):
        yield f"{source.path}:{row}", value


def _json_rows(path: pathlib.Path, encoding: str, column: str) -> Iterator[tuple[str, Any]]:
    pieces: list[str] = []
    number, size = 1, 0
    for piece in itertools.chain(read_lines(path, encoding), ["\n"]):
        pieces.append(piece)
        size += len(piece)
        if size > LONGEST_ROW:
            raise InputError(
                f"{path}, line {number}: longer than {LONGEST_ROW:,} characters; each line must hold one object, so "
                "put the text on several lines, or into a .txt file, where lines may have any length"
            )
        if piece.endswith("\n"):
            line = "".join(pieces)
            if line.strip():
                yield f"{path}:{number}", _json_value(line, f"{path}, line {number}", column)
            pieces, number, size = [], number + 1, 0


def _json_value(line: str, where: str, column: str) -> Any:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:  # the latter where it is nested too deeply
        raise InputError(f"{where}: not JSON ({error}); each line must hold one object") from None
    if not isinstance(row, dict) or column not in row:
        have = f"the columns {listed(list(row))}" if isinstance(row, dict) else f"a {type(row).__name__}, not an object"
        raise InputError(f"{where}: has {have}; set text_column to the one with the text (now {column!r})")
    return row[column]
