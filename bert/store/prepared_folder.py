"""The folder that `prepare` writes: whether it is complete, and its atomic replacement (bert/files.py)."""

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from absl import logging

from bert import files
from bert.errors import InputError
from bert.store.manifest import MANIFEST, check_files, damaged, read_manifest
from bert.store.prepare_report import PrepareReport
from bert.store.prepare_settings import PrepareSettings
from bert.store.reader import Store
from bert.tokenizer import tokenizer_files
from bert.tokenizer.backends import load_tokenizer
from bert.tokenizer.tokenizer import Tokenizer

TEXTS_CHANGED = "the texts have changed"
_SHARD_FILE = re.compile(r"\w+-\d{5,}\.(tokens|sentences|documents|words)")  # of writer.py


def is_finished(folder: pathlib.Path, noted: dict[str, Any], tokenizer: Tokenizer | None, overwrite: bool) -> bool:
    """Whether the folder holds just this, whole; raises InputError where it holds something else.

    All of its bytes are read. Where some are damaged, the log says so, and the folder is to be written again.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MANIFEST).is_file():
        if not _is_left_without_manifest(folder):
            raise InputError(f"{folder}: is not empty and not a prepared folder; give another folder")
        logging.warning("%s", f"{folder / MANIFEST}: is missing; the text is prepared again")
        return False
    try:
        manifest = read_manifest(folder)
    except InputError as error:
        if not overwrite:
            raise
        logging.warning("%s", error)
        return False
    differing = differences(manifest, noted, tokenizer)
    if differing and overwrite:
        return False
    if differing:
        raise InputError(
            f"{folder}: was prepared otherwise: {'; '.join(differing)}; give another folder, or set overwrite to True"
        )
    try:
        check_files(folder, manifest, checksums=True)
        _ = Store.open(folder).tokenizer
        report_of(folder)
    except InputError as error:
        logging.warning("%s", error)
        return False
    return True


def learnt_tokenizer(folder: pathlib.Path, noted: dict[str, Any]) -> Tokenizer | None:
    """The tokenizer of a damaged folder with these settings, where it is whole; an earlier version may have learnt
    it."""
    try:
        manifest, tokenizer = read_manifest(folder), load_tokenizer(folder)
    except InputError:
        return None
    return None if differences(manifest, noted, tokenizer) else tokenizer


def differences(manifest: dict[str, Any], noted: dict[str, Any], tokenizer: Tokenizer | None) -> list[str]:
    """What differs from the settings that a manifest has, and from its vocabulary where that is given."""
    newer = {field.name: field.default for field in dataclasses.fields(PrepareSettings)}  # than the folder: defaults
    was = {**newer, **manifest["settings"]}
    differing = [
        TEXTS_CHANGED if name == "texts" else f"{name} was {was.get(name)!r}, now {value!r}"
        for name, value in noted.items()
        if was.get(name) != value
    ]
    changed = tokenizer is not None and tokenizer.fingerprint != manifest["tokenizer"]
    return differing + ["the vocabulary has changed"] * changed


def report_of(folder: pathlib.Path) -> PrepareReport:
    """The report in the manifest; InputError where it is damaged."""
    stored, empty = read_manifest(folder)["report"], vars(PrepareReport())
    values = {name: stored[name] for name in empty if name in stored}  # older folders lack some
    report = PrepareReport(**values)
    try:
        report.table()
        if all(isinstance(value, list if empty[name] == [] else int | float) for name, value in values.items()):
            return report
    except (TypeError, ValueError, LookupError, AttributeError):  # of values of other types
        pass
    raise damaged(f"{folder / MANIFEST}: report is of other types")


def _written_names(folder: pathlib.Path) -> list[str]:
    """What the manifest lists, and what looks like a prepared folder's file, for a manifest may be damaged."""
    if not (folder / MANIFEST).is_file() and not _is_left_without_manifest(folder):
        return []
    shard_files = filter(_SHARD_FILE.fullmatch, (path.name for path in folder.iterdir()))
    ours = [MANIFEST, *tokenizer_files.WRITTEN, *shard_files]
    with contextlib.suppress(InputError):
        ours += read_manifest(folder)["files"]
    return ours


def _is_left_without_manifest(folder: pathlib.Path) -> bool:
    """Whether the files are those of a prepared folder, tokens among them, but for its manifest."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    shards = {*filter(_SHARD_FILE.fullmatch, names)}
    return bool(shards) and names <= {*tokenizer_files.WRITTEN, *shards}


@contextlib.contextmanager
def replacing(
    folder: pathlib.Path, noted: dict[str, Any], tokenizer: Tokenizer | None
) -> Iterator[tuple[pathlib.Path, bool]]:
    """(a folder to write into, whether an earlier run finished just this but could not put it in place).

    Empty unless finished; takes the place of ``folder`` at the end, which may hold no files but its own.
    """

    def is_done(new: pathlib.Path) -> bool:
        try:
            return is_finished(new, noted, tokenizer, overwrite=True)
        except InputError:  # left by a run that was killed
            return False

    files.check_replaceable(folder, _written_names(folder))
    busy = f"{folder}: another prepare is writing this folder; wait for it"
    with files.replacing(folder, finished=is_done, busy=busy) as new:
        yield new, is_done(new)
