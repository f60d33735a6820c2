"""The files of an export: one of rows, a folder with one for each annotator, a folder of documents; also zipped."""

import contextlib
import pathlib
import tempfile
import zipfile
import zlib
from collections.abc import Iterator

from bert.corpus.text_files import MOST_TIMES, MOST_UNPACKED
from bert.errors import InputError
from tasks.annotations.rows import is_json

_ENDINGS = (".json", ".jsonl", ".txt", ".ann")
# What zipfile raises: of damage, in names too; RuntimeError of what is encrypted, or packed in a way that it does not
# know; OSError of names that no file can have.
_FAULTS = (zipfile.BadZipFile, EOFError, zlib.error, UnicodeDecodeError, RuntimeError, OSError)


def files_of_rows(folder: pathlib.Path) -> list[pathlib.Path]:
    """The files of rows in a folder."""
    return sorted(path for path in folder.iterdir() if path.is_file() and is_json(path) and path.name[0] != ".")


@contextlib.contextmanager
def unpacked(path: str) -> Iterator[pathlib.Path]:
    """The folder with the files of a zip archive, its file where it has one; any other path as it is.

    The files are gone when the block ends; messages of `InputError` name the archive.
    """
    if not path.lower().endswith(".zip") or pathlib.Path(path).is_dir():
        yield pathlib.Path(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            _unpack(path, folder)
            yield inside(pathlib.Path(folder))
        except InputError as error:
            raise InputError(str(error).replace(folder, path)) from None


def inside(folder: pathlib.Path) -> pathlib.Path:
    """The file or folder that is alone in a folder, or in one that is alone in it; else the folder."""
    entries = list(folder.iterdir())
    if len(entries) != 1:
        return folder
    return inside(entries[0]) if entries[0].is_dir() else entries[0]


def _unpack(path: str, folder: str) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [member for member in archive.infolist() if member.filename.lower().endswith(_ENDINGS)]
            members = [member for member in members if not member.filename.startswith("__MACOSX/")]
            size, packed = (sum(getattr(member, name) for member in members) for name in ("file_size", "compress_size"))
            if size > MOST_UNPACKED and size > MOST_TIMES * packed:
                raise InputError(f"{path}: unpacks to {size:,} bytes, as no text does; unpack it yourself if it is one")
            archive.extractall(folder, members)
    except _FAULTS as error:
        raise InputError(f"{path}: cannot be unpacked ({error}); unpack it yourself, and name the folder") from None
