"""The folder that `prepare` writes: is it finished already, and how it becomes so in one step."""

import contextlib
import dataclasses
import fcntl
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

from bert.errors import InputError
from bert.text.report import Report
from bert.text.store import MANIFEST, check_files, read_manifest
from bert.text.tokenizer import Tokenizer


def is_finished(folder: pathlib.Path, noted: dict[str, Any], given: Tokenizer | None, overwrite: bool) -> bool:
    """Whether the folder holds just this; raises InputError where it holds something else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder}: is not empty and not a prepared folder; give another --out")
    manifest = read_manifest(folder)
    was = manifest["settings"]
    differing = [
        "the texts have changed" if name == "texts" else f"{name} was {was.get(name)!r}, now {value!r}"
        for name, value in noted.items()
        if was.get(name) != value
    ]
    if given is not None and given.fingerprint != manifest["tokenizer"]:
        differing.append("the vocabulary has changed")
    if differing and overwrite:
        return False
    if differing:
        raise InputError(
            f"{folder}: was prepared otherwise: {'; '.join(differing)}; give another --out, or --config.overwrite=True"
        )
    check_files(folder, manifest, checksums=False)
    return True


def report_of(folder: pathlib.Path) -> Report:
    stored = read_manifest(folder)["report"]
    return Report(**{field.name: stored[field.name] for field in dataclasses.fields(Report)})


@contextlib.contextmanager
def partial_folder(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """An empty folder beside the final one; removed again unless it was renamed. Locked against a second writer."""
    partial = folder.with_name(folder.name + ".partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    with open(partial.with_name(partial.name + ".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another prepare is writing this folder; wait for it") from None
        shutil.rmtree(partial, ignore_errors=True)  # left by a run that was killed
        partial.mkdir()
        try:
            yield partial
        finally:
            shutil.rmtree(partial, ignore_errors=True)
            pathlib.Path(lock.name).unlink(missing_ok=True)
