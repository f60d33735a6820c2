"""Decodes text files and reads their lines, in bounded memory."""

import codecs
import fnmatch
import gzip
import io
import pathlib
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import cast

from bert.corpus.remote_files import RemotePath
from bert.errors import InputError, listed

BLOCK = 1 << 20  # bytes decoded at once
LONG_LINE = 100_000  # characters; longer lines are handed on in pieces
# A .gz file that unpacks to more than 16 MiB and 100 times its size is no text; text is packed to a third or a tenth.
MOST_UNPACKED, MOST_TIMES = 1 << 24, 100
# What ends documents and rows of plain text in UTF-8, where a file can be cut.
BLANK_LINE, LINE_END = re.compile(rb"\n\r?\n"), re.compile(rb"\n")
_BREAKS = re.compile(r"(?<=\n)|(?<=\r)(?!\n)")

# How files of other formats begin.
_MAGIC = {
    b"\x1f\x8b": "packed by gzip; add .gz to its name",
    b"PK\x03\x04": "a zip archive (or an Excel file); unpack it, or save it as csv",
    b"PAR1": "a parquet file; let its name end in .parquet",
    b"ARROW1": "an Arrow file; name the folder of the saved data set",
}


def encoding_of(path: pathlib.Path, encoding: str | None) -> str:
    """Name of a file's encoding: UTF-8 (a BOM is taken off) unless the setting says otherwise.

    encoding: None or "" for UTF-8; a name ("latin-1") for all files; or "GLOB=NAME" parts separated by commas, the
    first match wins, a part without "=" is for the rest. A glob is held against the file's name and its path.
    """
    chosen = "utf-8"
    names = {name.removesuffix(ending) for name in (path.name, str(path)) for ending in ("", ".gz")}
    for part in (encoding or "").split(","):
        pattern, _, name = part.strip().rpartition("=")
        if name and (not pattern or any(fnmatch.fnmatch(name, pattern) for name in names)):
            chosen = name
            if pattern:
                break
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=chosen).read()  # fails for encodings of no text (base64, rot13), too
        known = codecs.lookup(chosen).name
    except (LookupError, ValueError):
        why = f"encoding {chosen!r} (for {path}) is unknown"
        raise InputError(f"{why}; name one such as latin-1 or cp1252") from None
    return "utf-8-sig" if known == "utf-8" else known


def open_bytes(path: pathlib.Path) -> io.BufferedIOBase:
    """The file, unpacked where its name ends in .gz."""
    if is_packed(path) and not isinstance(path, RemotePath):
        return gzip.open(path, "rb")
    plain = cast(io.BufferedIOBase, path.open("rb"))
    return gzip.GzipFile(fileobj=plain) if is_packed(path) else plain


def is_packed(path: pathlib.Path) -> bool:
    return path.suffix.lower() == ".gz"


def behind(path: pathlib.Path, position: int, ending: re.Pattern[bytes]) -> int:
    """The position behind the first match that begins at a position or later; the size of the file if there is none."""
    held = b""
    with open_bytes(path) as handle:
        position = handle.seek(position)
        while block := handle.read(BLOCK):
            data = held + block
            if match := ending.search(data):
                return position - len(held) + match.end()
            position += len(block)
            held = data[-2:]
    return position


def read_lines(
    path: pathlib.Path, encoding: str, translate: bool = True, *, start: int = 0, end: int | None = None
) -> Iterator[str]:
    """Lines with "\\n" at their ends, whatever the file uses; a very long line comes in pieces without one.

    Args:
      translate: False: lines keep the ends that they have, LF, CRLF or CR.
      start: byte of a plain file in UTF-8 to begin at, behind the end of a line; pieces are those of the whole file.
      end: byte to end before; None: the end of the file.

    Raises InputError for a pipe, bytes of another encoding, a damaged .gz file, and a file of another format.
    """
    if isinstance(path, pathlib.Path) and path.is_fifo():  # not the address of a remote file
        raise InputError(f"{path}: is a pipe, which can be read only once; write its text to a file, and name that")
    _refuse_other_formats(path)
    codec = encoding.removesuffix("-sig") if start else encoding
    decoder = io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(codec)(), translate)
    held, done, line = "", start, 1
    packed, size = is_packed(path), path.stat().st_size
    try:
        with open_bytes(path) as handle:
            handle.seek(start)
            while True:
                most = BLOCK - done % BLOCK  # the blocks, and so the pieces of long lines, are those of the whole file
                block = handle.read(most if end is None or packed else max(0, min(most, end - done)))
                if not done:
                    _refuse_other_encodings(path, encoding, block[: 1 << 16])
                done += len(block)
                if done > MOST_UNPACKED and packed and done > MOST_TIMES * size:
                    what = f"unpacks to more than {MOST_TIMES} times its {size:,} bytes"
                    raise InputError(f"{path}: {what}, as no text does; unpack it yourself if it is one")
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
        line += error.object[: error.start].count(b"\n") + _line_ends(path, start)
        raise NotInEncoding(path, encoding, done - len(error.object) + error.start, line, bad) from None
    except UnicodeError:  # UTF-16 or UTF-32 without a mark
        what = f"is read as {encoding.upper()}, but no mark at its beginning tells the order of its bytes"
        way_out = f"set encoding to '{path.name}={encoding}-le', or to {encoding}-be"
        raise InputError(f"{path}: {what}; {way_out}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: damaged .gz file ({error}); get it again") from None
    if held:
        yield held


def _line_ends(path: pathlib.Path, end: int) -> int:
    """How many there are before a byte of the file."""
    count = 0
    with open_bytes(path) as handle:
        while block := handle.read(min(BLOCK, end - handle.tell())):
            count += block.count(b"\n")
    return count


def _refuse_other_formats(path: pathlib.Path) -> None:
    with path.open("rb") as handle:
        head = handle.read(8)
    for magic, what in _MAGIC.items():
        is_text = magic.isalnum() and min(head, default=0) >= 9  # a word of that spelling
        if head.startswith(magic) and not is_text and not (magic == b"\x1f\x8b" and path.suffix.lower() == ".gz"):
            raise InputError(f"{path}: is {what}")


def _refuse_other_encodings(path: pathlib.Path, encoding: str, head: bytes) -> None:
    """Raises InputError for UTF-8 with a mark, UTF-16 and UTF-32 that would be read as something else.

    Decoders of other encodings take the mark for letters, and UTF-8's takes zero bytes for characters.
    """
    actual, what = _wide_encoding(head), ""
    has_mark = actual in ("utf-16", "utf-32")  # which the decoders of UTF tell
    if head.startswith(codecs.BOM_UTF8) and not encoding.startswith("utf-8"):
        actual, what = "utf-8", "begins with the mark of UTF-8 (BOM)"
    elif actual and actual != encoding and not (has_mark and encoding[:6] in (actual, "utf-8-")):
        what = f"has zero bytes where {actual.upper()} has them"
    if what:
        name = encoding.removesuffix("-sig").upper()
        raise InputError(f"{path}: {what}, but is read as {name}; set encoding to '{path.name}={actual}'")


def lines_of(text: str) -> Iterator[str]:
    """The lines that `read_lines` yields for a file with this text."""
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
        """The same error, naming more files with the fault."""
        names = [path.name for path in others if path != self.arguments[0]]
        more = f"; the same is true of {listed(names)}" if names else ""
        return NotInEncoding(*self.arguments, more)


def wide_encoding(path: pathlib.Path) -> str:
    """The encoding of a file that has two or four bytes a character, by its first bytes; "" where it has not."""
    try:
        with open_bytes(path) as handle:
            return _wide_encoding(handle.read(4096))
    except (OSError, EOFError, zlib.error):
        return ""


def _wide_encoding(head: bytes) -> str:
    """By the mark, or by the zero bytes in blanks and line ends of any text, at odd places or at even ones."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    zeros = [head[place::4].count(0) for place in range(4)]
    most = 0.9 * (len(head) // 4)
    if min(zeros[2:]) > most or min(zeros[:2]) > most:
        return "utf-32-le" if zeros[3] > zeros[0] else "utf-32-be"
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    if max(even, odd) < max(4, len(head) // 2000) or min(even, odd) > 0.1 * max(even, odd):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def decodes(path: pathlib.Path, encoding: str) -> bool:
    """Whether the first mebibyte of a file is of this encoding."""
    try:
        with open_bytes(path) as handle:
            codecs.getincrementaldecoder(encoding)().decode(handle.read(BLOCK))
    except (UnicodeError, OSError, EOFError, zlib.error):
        return False
    return True
