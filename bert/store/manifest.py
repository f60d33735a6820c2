"""The manifest of a prepared folder (its fields: `finish` in writer.py): read, checked, and compared with the files."""

import concurrent.futures
import hashlib
import json
import pathlib
import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from bert import json_files
from bert.errors import InputError

FORMAT = 1
MANIFEST = "manifest.json"
_LIMIT = 1 << 28  # bytes; some 250 for each file of a shard of 67 million tokens
_AGAIN = "prepare the text again into another folder, or with overwrite=True"


def damaged(what: str) -> InputError:
    """The error of a prepared folder whose bytes cannot be what `prepare` wrote; ``what`` begins with the place."""
    return InputError(f"{what}; the file is damaged, prepare the text again")


def read_manifest(folder: pathlib.Path) -> dict[str, Any]:
    """The manifest of a finished folder; InputError where it is missing, of another version, or damaged."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the one that prepare wrote")
    if not path.is_file():
        raise InputError(f"{folder}: no {MANIFEST}, so this is no finished prepared folder; run prepare to its end")
    try:
        manifest = json_files.read_object(path, limit=_LIMIT, allow_surrogates=True)  # in names of files
    except InputError as error:
        raise InputError(f"{error} ({_AGAIN})") from None
    if manifest.get("format") != FORMAT:
        raise InputError(f"{path}: format {manifest.get('format')!r}, this version reads {FORMAT}; {_AGAIN}")
    if field := next(_wrong_fields(manifest), None):
        raise InputError(f"{path}: {field} is missing or of another type; the file is damaged, {_AGAIN}")
    if "sha256" in manifest and manifest != sealed(manifest):  # older folders have none
        raise InputError(f"{path}: its checksum differs from its contents; the file is damaged, {_AGAIN}")
    return manifest


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with its own checksum: SHA-256 of the other fields as JSON."""
    fields = {name: value for name, value in manifest.items() if name != "sha256"}
    return fields | {"sha256": hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()}


def _wrong_fields(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Names of fields that are not what `finish` writes."""
    kinds = {"tokenizer": str, "vocab_size": int, "word_boundaries": bool}
    kinds |= dict.fromkeys(("labels", "settings", "report", "splits", "files"), dict)
    yield from (name for name, kind in kinds.items() if not _is(kind, manifest.get(name)))
    for name, noted in manifest["files"].items():
        if not _is_plain_name(name) or not _is(dict, noted):
            yield f"files {name!r}"
        elif not _is(int, noted.get("bytes")) or not _is(str, noted.get("sha256")):
            yield f"bytes or sha256 of files {name!r}"
    for split, counts in manifest["splits"].items():
        numbers = ("documents", "sentences", "tokens")
        if not _is(dict, counts) or not all(_is(int, counts.get(name)) for name in numbers):
            yield f"splits {split!r}"
        elif not _is(list, counts.get("shards")) or not all(map(_is_plain_name, counts["shards"])):
            yield f"shards of splits {split!r}"


def _is(kind: type, value: Any) -> bool:
    """Whether a value of JSON is of this type; int: a count."""
    return type(value) is kind and (kind is not int or value in range(1 << 62))


def _is_plain_name(value: Any) -> bool:
    """Whether it names a file in the folder itself, and is no path to elsewhere."""
    return isinstance(value, str) and re.fullmatch(r"[\w][\w.-]*", value) is not None


def check_files(folder: pathlib.Path, manifest: Mapping[str, Any], *, checksums: bool) -> None:
    """Raises InputError naming the first file that is missing or differs in size (or in content)."""
    for name, noted in manifest["files"].items():
        path = folder / name
        size = path.stat().st_size if path.is_file() else None
        if size != noted["bytes"]:
            state = "missing" if size is None else f"{size:,} bytes long"
            raise InputError(f"{path}: {state}, the manifest says {noted['bytes']:,} bytes; prepare the text again")
        if checksums and sha256(path) != noted["sha256"]:
            raise damaged(f"{path}: its checksum differs from the manifest's")


def check_checksums_beside(folder: pathlib.Path, manifest: Mapping[str, Any]) -> concurrent.futures.Future[None]:
    """`check_files` with checksums in a daemon thread (2 GB a second); ``result()`` waits, and raises its error."""
    future: concurrent.futures.Future[None] = concurrent.futures.Future()

    def check() -> None:
        try:
            check_files(folder, manifest, checksums=True)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(None)

    threading.Thread(target=check, name="checksums", daemon=True).start()
    return future


def sha256(path: pathlib.Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
