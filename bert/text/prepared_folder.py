"""The folder that `prepare` writes: is it finished already, and how it becomes so without a moment of loss.

A kill at any time leaves a whole old folder, a whole new one, or both (bert/files.py), and the next run goes on from
there.
"""

import contextlib
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

from bert import files
from bert.errors import InputError
from bert.text.report import Report
from bert.text.store import MANIFEST, check_files, read_manifest
from bert.text.tokenizer import Tokenizer


def is_finished(folder: pathlib.Path, noted: dict[str, Any], given: Tokenizer | None, overwrite: bool) -> bool:
    """Whether the folder holds just this; raises InputError where it holds something else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder}: is not empty and not a prepared folder; give another folder")
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
            f"{folder}: was prepared otherwise: {'; '.join(differing)}; give another folder, or set overwrite to True"
        )
    check_files(folder, manifest, checksums=False)
    return True


def report_of(folder: pathlib.Path) -> Report:
    stored = read_manifest(folder)["report"]
    there = [field.name for field in dataclasses.fields(Report) if field.name in stored]  # older folders lack some
    return Report(**{name: stored[name] for name in there})


def settle(folder: pathlib.Path) -> None:
    """Clears away what killed runs left; a folder that one was just replacing comes back."""
    files.settle(folder, (MANIFEST,), clear=True)


@contextlib.contextmanager
def replacing(
    folder: pathlib.Path, noted: dict[str, Any], given: Tokenizer | None
) -> Iterator[tuple[pathlib.Path, bool]]:
    """(a folder to write into, whether an earlier run finished just this but could not put it in place).

    Empty unless finished; takes the place of ``folder`` at the end.

    Raises:
      InputError: ``folder`` has files that its manifest does not list, is a mount point, or cannot be made; or another
        run writes it.
      RunError: all is written, but the file system refuses to put it in place; both folders are kept.
    """

    def is_done(new: pathlib.Path) -> bool:
        try:
            return is_finished(new, noted, given, overwrite=True)
        except InputError:  # left by a run that was killed
            return False

    ours = (MANIFEST, *read_manifest(folder)["files"]) if (folder / MANIFEST).is_file() else ()
    files.check_replaceable(folder, ours)
    busy = f"{folder}: another prepare is writing this folder; wait for it"
    with files.replacing(folder, finished=is_done, busy=busy) as new:
        yield new, is_done(new)
