"""Corpus -> prepared folder (reader.py), as a stream: read, drop duplicates, hold out, split, tokenize, write.

One process reads and writes; several split and tokenize. The output does not depend on their number. With a given
vocabulary, it is the same in every run. A learnt vocabulary may differ in a few pieces between runs
(`WordPiece.train`), and so may the output.
"""

import collections
import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from bert import files, worker_pool
from bert.corpus.corpus import Corpus
from bert.errors import InputError
from bert.store.manifest import MANIFEST
from bert.store.prepare_report import PrepareReport, group_sources, remarks_on_lines
from bert.store.prepare_settings import PrepareSettings
from bert.store.prepared_folder import is_finished, learnt_tokenizer, replacing, report_of
from bert.store.reader import SPLITS
from bert.store.text_hashes import SeenDigests, fraction
from bert.store.tokenize_sections import start_tokenizing, tokenize_sections
from bert.store.writer import StoreWriter, finish
from bert.tokenizer import letter_case
from bert.tokenizer.added_words import words_of
from bert.tokenizer.backends import MAX_WORD_CHARS, load_tokenizer, open_vocabulary, train_tokenizer
from bert.tokenizer.tokenizer import Tokenizer

TASK_BYTES = 1 << 19  # text handed to a worker at once


class PreparedFolder(NamedTuple):
    """The result of `prepare`."""

    directory: pathlib.Path
    tokenizer: Tokenizer
    report: PrepareReport
    was_finished: bool  # before this call


# Called now and then with (step, bytes of text so far, of all where known); step is "vocabulary" or "tokens".
Progress = Callable[[str, int, int | None], None]


def prepare(
    out: str | pathlib.Path, settings: PrepareSettings,
    *, workers: int = 1, overwrite: bool = False, progress: Progress = lambda step, done, total: None,
) -> PreparedFolder:  # fmt: skip
    """Writes a prepared folder, or finds it finished already; one whose files are damaged is written again.

    Args:
      out: the folder, or a link to it; new, empty, or one that an earlier call with the same settings finished.
      workers: processes that split and tokenize.
      overwrite: replace a finished folder that differs.

    Raises InputError for texts or settings that cannot be used, or a folder that was prepared otherwise or cannot be
    replaced; RunError where the disk is full or a worker was killed.
    """
    folder = pathlib.Path(os.path.realpath(out))
    corpus = Corpus(settings.corpus, settings.corpus_settings(), workers=workers)
    rules = {name: getattr(settings, name) for name in ("lower_case", "strip_accents", "max_word_chars")}
    words = words_of(settings.add_tokens)
    tokenizer = open_vocabulary(settings.vocab, **rules).add_words(words) if settings.vocab else None  # to be learnt
    longest = tokenizer.max_word_chars if tokenizer else settings.max_word_chars or MAX_WORD_CHARS
    settings = dataclasses.replace(settings, max_word_chars=longest)  # what the folder notes
    named = {"add_tokens": "\n".join(word.content for word in words), "texts": corpus.signature()}
    noted = _writable(dataclasses.asdict(settings) | named)
    files.recover_interrupted_replace(folder, (MANIFEST,), clear=True)
    if is_finished(folder, noted, tokenizer, overwrite):
        return PreparedFolder(pathlib.Path(out), load_tokenizer(folder), report_of(folder), True)
    tokenizer = tokenizer or learnt_tokenizer(folder, noted)  # the ids of a damaged folder stay what they were
    with replacing(folder, noted, tokenizer) as (new, done):
        if not done:
            _Preparation(corpus, settings, workers, progress).write(new, tokenizer, noted)
    return PreparedFolder(pathlib.Path(out), load_tokenizer(folder), report_of(folder), done)


def _writable(noted: dict[str, Any]) -> dict[str, Any]:
    """Settings as a manifest can hold them: bytes of a path that are not UTF-8 are spelled out."""
    return {
        name: value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
        for name, value in noted.items()
    }


class _VocabularyTexts:
    """About `vocab_megabytes` of the corpus, chosen evenly by a hash of each section; can be read several times."""

    def __init__(self, corpus: Corpus, settings: PrepareSettings, progress: Progress):
        self.corpus, self.settings, self.progress = corpus, settings, progress
        self.sample: list[str] = []  # of the last reading, up to letter_case.SAMPLE_CHARS
        self.stopped = False  # before the end, for packed files held far more than expected

    def __iter__(self) -> Iterator[str]:
        size = sum(source.bytes * (4 if source.path.suffix == ".gz" else 1) for source in self.corpus.sources)
        wanted = self.settings.vocab_megabytes * 1e6
        done, self.sample, text = 0, [], ""
        for section in self.corpus.sections():
            text = section.text
            if wanted < size and fraction(text.encode("utf-8", "surrogatepass"), self.settings.seed) >= wanted / size:
                continue
            if done < letter_case.SAMPLE_CHARS:
                self.sample.append(text)
            yield text
            done += len(text)
            self.progress("vocabulary", done, None)
            if done >= 2 * wanted:
                self.stopped = True
                return
        if not done:  # of equal sections all or none are chosen
            yield text


class _Task(NamedTuple):
    """Sections for one worker, and for each where its tokens go."""

    sections: list[tuple[str, str]]  # text, layout
    places: list[tuple[str, bool]]  # split; whether it continues the section before it, in the same document and split
    bytes: int


class _Preparation:
    """One run of `prepare`, and its counts."""

    def __init__(self, corpus: Corpus, settings: PrepareSettings, workers: int, progress: Progress):
        self.corpus, self.settings, self.workers, self.progress = corpus, settings, workers, progress
        self.report = PrepareReport()

    def write(self, folder: pathlib.Path, tokenizer: Tokenizer | None, noted: dict[str, Any]) -> None:
        """Fills an empty folder; `noted` goes into its manifest."""
        report, words = self.report, bool(self.settings.word_boundaries)
        tokenizer = tokenizer or self._train_tokenizer()
        sizes: dict[str, int] = {"vocab_size": tokenizer.vocab_size, "shard_tokens": self.settings.shard_tokens}
        writers = {split: StoreWriter(folder, split, word_boundaries=words, **sizes) for split in SPLITS}
        self._write_shards(tokenizer, writers)
        report.count(writers)
        if not report.tokens:
            raise InputError(
                f"corpus {self.settings.corpus!r}: no text in {report.read} documents; nothing was written"
            )
        report.sources = group_sources(self.corpus.notes)
        report.remarks += remarks_on_lines(self.corpus.notes)
        finish(folder, tokenizer, writers, settings=noted, report=report.as_dict())

    def _train_tokenizer(self) -> Tokenizer:
        settings, remarks = self.settings, self.report.remarks
        texts = _VocabularyTexts(self.corpus, settings, self.progress)
        tokenizer = train_tokenizer(
            texts, vocab_size=settings.vocab_size, lower_case=settings.lower_case is not False,
            strip_accents=settings.strip_accents, max_word_chars=settings.max_word_chars,
            source=f"corpus {settings.corpus!r}",
        )  # fmt: skip
        if texts.stopped:
            remarks.append(
                f"the vocabulary was learnt from the first {2 * settings.vocab_megabytes} MB alone, for packed files "
                "hold more than four times their size; raise vocab_megabytes for more"
            )
        if merged := letter_case.merged_by_lower_case(texts.sample) if settings.lower_case is None else []:
            pairs = ", ".join(f"{first} and {second}" for first, second in merged[:3])
            remarks.append(
                f"lower-casing makes {len(merged)} frequent pairs of words equal ({pairs}); if letter case tells them "
                "apart, set lower_case to False"
            )
        by_default = settings.strip_accents is None and tokenizer.lower_case
        if by_default and (marks := letter_case.lost_marks(texts.sample)) >= letter_case.MANY_MARKS:
            remarks.append(
                f"removing accents drops {100 * marks:.0f} % of the characters, marks that belong to the words of this "
                "script; set strip_accents to False to keep them"
            )
        return tokenizer.add_words(words_of(settings.add_tokens))

    def _tasks(self) -> Iterator[_Task]:
        """Sections worth tokenizing, in tasks of about TASK_BYTES.

        A long document that loses a section (a duplicate, or one held out) is two documents from then on: text that was
        not adjacent must never be taken for a continuation.
        """
        settings, report = self.settings, self.report
        seen = SeenDigests() if settings.deduplicate else None
        first_digest = previous = None
        task = _Task([], [], 0)
        for section in self.corpus.sections():
            data = section.text.strip().encode("utf-8", "surrogatepass")
            digest = hashlib.blake2b(data, digest_size=8).digest()
            report.read += section.first
            report.text_bytes += len(data)
            # The first document with text always trains: a corpus of one document must not end up held out.
            first_digest = first_digest or (digest if data else None)
            place = 1.0 if digest == first_digest else fraction(digest, settings.seed)
            split = "validation" if place < settings.validation_share else "train"
            if seen is not None and data and not seen.add(digest):
                report.duplicates += section.first
                report.duplicate_parts += not section.first
                previous = None
                continue
            report.next_held_out = min(report.next_held_out, place if data else 1.0)
            joined = not section.first and previous == split
            report.cuts += not section.first and not joined
            task.sections.append((section.text, section.layout))
            task.places.append((split, joined))
            task = task._replace(bytes=task.bytes + len(data))
            previous = split
            if task.bytes >= TASK_BYTES:
                yield task
                task = _Task([], [], 0)
        if task.sections:
            yield task

    def _write_shards(self, tokenizer: Tokenizer, writers: Mapping[str, StoreWriter]) -> None:
        """Gives the writers of both splits every section."""
        under_way: collections.deque[tuple[_Task, int]] = collections.deque()  # with the bytes read up to its end

        def sections() -> Iterator[list[tuple[str, str]]]:
            for task in self._tasks():
                under_way.append((task, self.report.text_bytes))
                yield task.sections

        settings, total = self.settings, self.corpus.text_bytes()
        setup = (tokenizer, settings.language, settings.special_tokens_in_text, bool(settings.word_boundaries))
        for pieces in worker_pool.ordered_map(
            tokenize_sections, sections(), workers=self.workers, setup=start_tokenizing, setup_arguments=setup
        ):
            task, done = under_way.popleft()
            for (split, joined), piece in zip(task.places, pieces.sections(), strict=True):
                if not joined:
                    for writer in writers.values():
                        writer.end_document()
                    self.report.empty += not len(piece.tokens)
                writers[split].add(piece.tokens, piece.sentence_lengths, piece.continues)
            self.report.add_lost(pieces.lost)
            self.progress("tokens", done, total)
        for writer in writers.values():
            writer.end_document()
