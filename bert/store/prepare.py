"""Corpus -> prepared folder (reader.py), as a stream: read, drop duplicates, hold out, split, tokenize, write.

One process reads and writes; several split and tokenize. The output does not depend on their number, and is the same in
every run. Several machines: shards.py.
"""

import collections
import dataclasses
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from bert import files, worker_pool
from bert.corpus.corpus import Corpus
from bert.corpus.remote_files import is_remote
from bert.errors import InputError
from bert.store.kept_sections import KeptSections, Place, SectionMark
from bert.store.learnt_vocabulary import Progress, learn_vocabulary
from bert.store.manifest import MANIFEST
from bert.store.prepare_report import PrepareReport
from bert.store.prepare_settings import PrepareSettings
from bert.store.prepared_folder import is_finished, learnt_tokenizer, replacing, report_of
from bert.store.tokenize_sections import TokenizedSection, start_tokenizing, tokenize_sections
from bert.tokenizer.added_words import words_of
from bert.tokenizer.backends import MAX_WORD_CHARS, load_tokenizer, open_vocabulary
from bert.tokenizer.tokenizer import Tokenizer

TASK_CHARS = 1 << 19  # text handed to a worker at once

T = TypeVar("T")


class PreparedFolder(NamedTuple):
    """The result of `prepare`."""

    directory: pathlib.Path
    tokenizer: Tokenizer
    report: PrepareReport
    was_finished: bool  # before this call


def no_progress(step: str, done: int, total: int | None) -> None:
    """Shows nothing."""


@dataclasses.dataclass
class Job:
    """What is asked for: the folder to write, the texts, and the settings."""

    folder: pathlib.Path  # where links lead
    corpus: Corpus
    settings: PrepareSettings
    tokenizer: Tokenizer | None  # None: to be learnt
    noted: dict[str, Any]  # the settings and the signature of the texts, as a manifest holds them

    @classmethod
    def of(
        cls, out: str | pathlib.Path, settings: PrepareSettings, workers: int, *, part: tuple[int, int] = (1, 1)
    ) -> "Job":  # fmt: skip
        """Raises InputError for texts or a vocabulary that cannot be used. ``part``: that of `Corpus`."""
        if is_remote(str(out)):
            raise InputError(
                f"out is {str(out)!r}; prepared text is read from a disk: name a folder, and copy it there"
            )
        corpus = Corpus(settings.corpus, settings.corpus_settings(), workers=workers, part=part)
        rules = {name: getattr(settings, name) for name in ("lower_case", "strip_accents", "max_word_chars")}
        words = words_of(settings.add_tokens)
        tokenizer = open_vocabulary(settings.vocab, **rules).add_words(words) if settings.vocab else None
        longest = tokenizer.max_word_chars if tokenizer else settings.max_word_chars or MAX_WORD_CHARS
        settings = dataclasses.replace(settings, max_word_chars=longest)  # what the folder notes
        named = {"add_tokens": "\n".join(word.content for word in words), "texts": corpus.signature()}
        noted = _writable(dataclasses.asdict(settings) | named)
        return cls(pathlib.Path(os.path.realpath(out)), corpus, settings, tokenizer, noted)


def prepare(
    out: str | pathlib.Path, settings: PrepareSettings,
    *, workers: int = 1, overwrite: bool = False, progress: Progress = no_progress,
) -> PreparedFolder:  # fmt: skip
    """Writes a prepared folder, or finds it finished already; one whose files are damaged is written again.

    Args:
      out: the folder, or a link to it; new, empty, or one that an earlier call with the same settings finished.
      workers: processes that split and tokenize.
      overwrite: replace a finished folder that differs.

    Raises InputError for texts or settings that cannot be used, or a folder that was prepared otherwise or cannot be
    replaced; RunError where the disk is full or a worker was killed.
    """
    job = Job.of(out, settings, workers)
    folder, noted, tokenizer = job.folder, job.noted, job.tokenizer
    files.recover_interrupted_replace(folder, (MANIFEST,), clear=True)
    if is_finished(folder, noted, tokenizer, overwrite):
        return finished(out, folder, True)
    tokenizer = tokenizer or learnt_tokenizer(folder, noted)  # the ids of a damaged folder stay what they were
    with replacing(folder, noted, tokenizer) as (new, done):
        if not done:
            _write(job, new, tokenizer, workers, progress)
    return finished(out, folder, done)


def finished(out: str | pathlib.Path, folder: pathlib.Path, before: bool) -> PreparedFolder:
    return PreparedFolder(pathlib.Path(out), load_tokenizer(folder), report_of(folder), before)


def _writable(noted: dict[str, Any]) -> dict[str, Any]:
    """Settings as a manifest can hold them: bytes of a path that are not UTF-8 are spelled out."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in noted.items()
    }


def _write(job: Job, folder: pathlib.Path, tokenizer: Tokenizer | None, workers: int, progress: Progress) -> None:
    """Fills an empty folder."""
    remarks: list[str] = []
    if tokenizer is None:
        tokenizer, remarks = learn_vocabulary(job.corpus, job.settings, progress)
    sink = KeptSections(folder, tokenizer, job.settings, remarks)
    sections, total = _kept_sections(job, sink), job.corpus.text_bytes()
    for (place, done), piece in tokenized(sections, tokenizer, job.settings, workers):
        sink.add(place, piece)
        progress("tokens", done, total)
    sink.finish(job.corpus.notes, job.noted)


def _kept_sections(job: Job, sink: KeptSections) -> Iterator[tuple[tuple[Place, int], str, str]]:
    """((where its tokens go, bytes read up to its end), text, layout) of each section that is kept."""
    for section in job.corpus.sections():
        if place := sink.place(SectionMark.of(section, job.settings.seed)):
            yield (place, sink.report.text_bytes), section.text, section.layout


def tokenized(
    sections: Iterable[tuple[T, str, str]], tokenizer: Tokenizer, settings: PrepareSettings, workers: int
) -> Iterator[tuple[T, TokenizedSection]]:
    """(what belongs to it, its tokens) of each section (what belongs to it, text, layout), in order."""
    under_way: collections.deque[list[T]] = collections.deque()

    def tasks() -> Iterator[list[tuple[str, str]]]:
        belongings: list[T] = []
        texts: list[tuple[str, str]] = []
        size = 0
        for belonging, text, layout in sections:
            belongings.append(belonging)
            texts.append((text, layout))
            size += len(text)
            if size >= TASK_CHARS:
                under_way.append(belongings)
                yield texts
                belongings, texts, size = [], [], 0
        if texts:
            under_way.append(belongings)
            yield texts

    setup = (tokenizer, settings.language, settings.special_tokens_in_text, bool(settings.word_boundaries))
    for pieces in worker_pool.ordered_map(
        tokenize_sections, tasks(), workers=workers, setup=start_tokenizing, setup_arguments=setup
    ):
        yield from zip(under_way.popleft(), pieces.sections(), strict=True)
