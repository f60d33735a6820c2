"""The folder that `prepare` writes: is it finished already, and how it becomes so without a moment of loss.

Three names stand beside each other. OUT.partial is being written; OUT.replaced is a finished folder that OUT.partial
takes the place of, until it has; OUT.partial.lock keeps a second writer away. A kill at any time leaves a whole old
folder, a whole new one, or both, and the next run goes on from there.
"""

import contextlib
import dataclasses
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

from absl import logging

from bert import locks
from bert.errors import InputError, RunError
from bert.text.manifest import MANIFEST, check_files, read_manifest
from bert.text.report import Report
from bert.text.store import Store
from bert.text.tokenizer import Tokenizer


def is_finished(folder: pathlib.Path, noted: dict[str, Any], given: Tokenizer | None, overwrite: bool) -> bool:
    """Whether the folder holds just this, whole; raises InputError where it holds something else.

    All of its bytes are read. Where some are damaged, the log says so, and the folder is to be written again.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    if not (folder / MANIFEST).is_file():
        raise InputError(f"{folder}: is not empty and not a prepared folder; give another folder")
    try:
        manifest = read_manifest(folder)
    except InputError as error:
        if not overwrite:
            raise
        logging.warning("%s", error)
        return False
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
    try:
        check_files(folder, manifest, checksums=True)
        _ = Store.open(folder).tokenizer
        report_of(folder)
    except InputError as error:
        logging.warning("%s", error)
        return False
    return True


def learnt_tokenizer(folder: pathlib.Path, noted: dict[str, Any]) -> Tokenizer | None:
    """The tokenizer of a damaged folder with these settings, where it is whole: learnt anew, it might be another."""
    try:
        manifest, found = read_manifest(folder), Tokenizer.load(folder)
    except InputError:
        return None
    was = manifest["settings"]
    same = all(was.get(name) == value for name, value in noted.items())
    return found if same and found.fingerprint == manifest["tokenizer"] else None


def report_of(folder: pathlib.Path) -> Report:
    """What the manifest says was kept and dropped.

    Raises:
      InputError: it is damaged.
    """
    stored = read_manifest(folder)["report"]
    there = [field.name for field in dataclasses.fields(Report) if field.name in stored]  # older folders lack some
    report, empty = Report(**{name: stored[name] for name in there}), Report()
    try:
        report.table()
        lists = [name for name in there if isinstance(getattr(empty, name), list)]
        if all(isinstance(stored[name], list if name in lists else int | float) for name in there):
            return report
    except (TypeError, ValueError, LookupError, AttributeError):  # whatever a value of another type brings about
        pass
    raise InputError(f"{folder / MANIFEST}: report is of other types; the file is damaged, prepare the text again")


def partial_of(folder: pathlib.Path) -> pathlib.Path:
    return folder.with_name(folder.name + ".partial")


def _replaced_by(folder: pathlib.Path) -> pathlib.Path:
    return folder.with_name(folder.name + ".replaced")


def settle(folder: pathlib.Path) -> None:
    """Clears what a run left that was killed while it replaced the folder: the old one goes, or comes back."""
    if not _replaced_by(folder).exists():
        return
    with _locked(folder):
        if folder.exists():
            shutil.rmtree(_replaced_by(folder))
        elif _replaced_by(folder).exists():
            _replaced_by(folder).rename(folder)


@contextlib.contextmanager
def partial_folder(
    folder: pathlib.Path, noted: dict[str, Any], given: Tokenizer | None
) -> Iterator[tuple[pathlib.Path, bool]]:
    """(the folder to write into, whether an earlier run finished just this but could not put it in place).

    Empty unless finished. Locked against a second writer. Removed in the end unless it is finished by then.

    Raises:
      InputError: the final folder is a mount point, its parent cannot be written, or another run writes.
    """
    if os.path.ismount(folder):  # it could be neither renamed nor removed when all is done
        raise InputError(f"{folder}: is a mount point, which nothing can take the place of; give a folder inside it")
    with _locked(folder):
        partial = partial_of(folder)
        try:
            done = is_finished(partial, noted, given, overwrite=True)
        except InputError:  # left by a run that was killed
            done = False
        if not done:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
        try:
            yield partial, done
        finally:
            if not (partial / MANIFEST).is_file():
                shutil.rmtree(partial, ignore_errors=True)


def put_in_place(folder: pathlib.Path) -> None:
    """The finished partial folder becomes the folder; an old one is deleted last.

    Raises:
      RunError: the file system refuses; both folders are kept.
    """
    partial, replaced = partial_of(folder), _replaced_by(folder)
    try:
        if folder.exists():
            folder.rename(replaced)
        partial.rename(folder)
    except OSError as error:
        if replaced.exists() and not folder.exists():
            replaced.rename(folder)
        raise RunError(
            f"{partial}: finished, but it could not take the place of {folder} ({error.strerror}); rename it by hand, "
            "or run again when that is mended: nothing will be done twice"
        ) from error
    shutil.rmtree(replaced, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: pathlib.Path) -> Iterator[None]:
    path = folder.with_name(folder.name + ".partial.lock")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(locks.held(path, f"{folder}: another prepare is writing this folder; wait for it"))
        except OSError as error:
            raise InputError(
                f"{folder}: its parent folder cannot be written ({error.strerror}); give a folder in one that can"
            ) from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
