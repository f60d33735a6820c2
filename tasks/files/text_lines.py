"""Reads text files, by lines or whole, and refuses files that are damaged or not text."""

import pathlib
from collections.abc import Iterator

from bert.corpus import text_files
from bert.errors import InputError

LINE_LIMIT = 1 << 26  # characters of a line, or of a quoted field; a longer one is a damaged file, not an example


def read_lines(path: str, encoding: str, *, ends: bool = False) -> Iterator[str]:
    """Lines of a text file without their ends, or with them (LF, CRLF or CR) where ``ends`` is set; .gz is unpacked.

    Raises:
      InputError: bytes that are not of the encoding, a damaged .gz file, a NUL, or a line over LINE_LIMIT characters
        (before the rest of it is read); see also `text_files.read_lines`.
    """
    file = pathlib.Path(path)
    number, length = 1, 0
    pieces: list[str] = []
    for piece in text_files.read_lines(file, text_files.encoding_of(file, encoding), not ends):
        if "\0" in piece:
            wide = text_files.wide_encoding(file)
            way_out = f"Set encoding to {wide}" if wide and wide != encoding else "Take it out if it is"
            raise InputError(f"{path}:{number}: holds a NUL character; is it text? {way_out}")
        pieces.append(piece.removeprefix("\ufeff") if number == 1 and not pieces else piece)
        length += len(piece)
        if length > LINE_LIMIT:
            raise InputError(f"{path}:{number}: longer than {LINE_LIMIT:,} characters; write a line for each example")
        if piece.endswith(("\n", "\r") if ends else "\n"):
            yield "".join(pieces) if ends else "".join(pieces)[:-1]
            number, pieces, length = number + 1, [], 0
    if length:
        yield "".join(pieces)


def aligned_lines(path: str, encoding: str) -> Iterator[str]:
    """The lines of a file whose line i belongs to line i of another one: only LF and CRLF end a line.

    Raises:
      InputError: a CR elsewhere, where some programs end a line and others do not; and as `read_lines`.
    """
    for number, line in enumerate(read_lines(path, encoding, ends=True), 1):
        if line.endswith("\r"):
            rule = "a carriage return (CR) without a line feed, at which some programs end a line and others do not"
            raise InputError(f"{path}:{number}: has {rule}; write a blank in its place, or end all lines with LF")
        yield line.removesuffix("\n").removesuffix("\r")


def whole_text(file: pathlib.Path, encoding: str) -> str:
    """The text of a file with its line ends, and a byte order mark as its first character, for offsets count them."""
    return decoded(file, file.read_bytes(), encoding)


def decoded(file: pathlib.Path, content: bytes, encoding: str) -> str:
    """The same of a file's content; ``file`` says which encoding it has, and is named in messages."""
    name = text_files.encoding_of(file, encoding).removesuffix("-sig")
    try:
        return content.decode(name)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise text_files.NotInEncoding(file, name, error.start, line, content[error.start]) from None
