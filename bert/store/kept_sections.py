"""Which sections of a corpus are kept, and the prepared folder that they make.

It is what one process does with all sections in their order: a section is a duplicate if an earlier one is equal.
"""

import hashlib
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert.corpus.corpus import Section
from bert.errors import InputError
from bert.store.prepare_report import PrepareReport, group_sources, remarks_on_lines
from bert.store.prepare_settings import PrepareSettings
from bert.store.reader import SPLITS
from bert.store.text_hashes import SeenDigests, fraction
from bert.store.tokenize_sections import TokenizedSection
from bert.store.writer import StoreWriter, finish
from bert.tokenizer.tokenizer import Tokenizer


class SectionMark(NamedTuple):
    """All of a section's text that decides where it goes."""

    digest: int  # 64 bits
    place: float  # from 0 to below 1; held out where it is below the share
    bytes: int  # of UTF-8, without white space at the ends; 0: no text
    first: bool  # a document begins here

    @classmethod
    def of(cls, section: Section, seed: int) -> "SectionMark":
        data = section.text.strip().encode("utf-8", "surrogatepass")
        digest = hashlib.blake2b(data, digest_size=8).digest()
        return cls(int.from_bytes(digest, "little"), fraction(digest, seed), len(data), section.first)


class Place(NamedTuple):
    """Where the tokens of a section go."""

    split: str
    joined: bool  # it continues the section before it, in the same document and split


class KeptSections:
    """The writers of both splits, and the counts of the report. `place` and `add` are called in the sections' order."""

    def __init__(
        self, folder: pathlib.Path, tokenizer: Tokenizer, settings: PrepareSettings, remarks: list[str]
    ):  # fmt: skip
        """``folder``: empty. ``remarks``: those on the vocabulary, for the report."""
        self.folder, self.tokenizer, self.settings = folder, tokenizer, settings
        self.report = PrepareReport(remarks=list(remarks))
        sizes = {"vocab_size": tokenizer.vocab_size, "shard_tokens": settings.shard_tokens}
        words = bool(settings.word_boundaries)
        self._writers = {split: StoreWriter(folder, split, word_boundaries=words, **sizes) for split in SPLITS}
        self._seen = SeenDigests() if settings.deduplicate else None
        self._first_digest: int | None = None
        self._previous: str | None = None

    def place(self, mark: SectionMark) -> Place | None:
        """Where a section goes; None: it is a duplicate.

        A long document that loses a section (a duplicate, or one held out) is two documents from then on: text that was
        not adjacent must never be taken for a continuation.
        """
        report = self.report
        report.read += mark.first
        report.text_bytes += mark.bytes
        # The first document with text always trains: a corpus of one document must not end up held out.
        if self._first_digest is None and mark.bytes:
            self._first_digest = mark.digest
        place = 1.0 if mark.digest == self._first_digest else mark.place
        split = "validation" if place < self.settings.validation_share else "train"
        if self._seen is not None and mark.bytes and not self._seen.add(mark.digest):
            report.duplicates += mark.first
            report.duplicate_parts += not mark.first
            self._previous = None
            return None
        report.next_held_out = min(report.next_held_out, place if mark.bytes else 1.0)
        joined = not mark.first and self._previous == split
        report.cuts += not mark.first and not joined
        self._previous = split
        return Place(split, joined)

    def add(self, place: Place, piece: TokenizedSection) -> None:
        """Writes the tokens of a section that is kept."""
        if not place.joined:
            self._end_document()
            self.report.empty += not len(piece.tokens)
        self._writers[place.split].add(piece.tokens, piece.sentence_lengths, piece.continues)
        self.report.add_lost(piece.lost)

    def finish(self, notes: Mapping[str, Mapping[str, Any]], noted: Mapping[str, Any]) -> None:
        """Completes the folder. ``notes``: how each file was read (`Corpus.notes`); ``noted``: settings to note."""
        self._end_document()
        report = self.report
        report.count(self._writers)
        if not report.tokens:
            raise InputError(
                f"corpus {self.settings.corpus!r}: no text in {report.read} documents; nothing was written"
            )
        report.sources = group_sources(notes)
        report.remarks += remarks_on_lines(notes)
        finish(self.folder, self.tokenizer, self._writers, settings=noted, report=report.as_dict())

    def _end_document(self) -> None:
        for writer in self._writers.values():
            writer.end_document()
