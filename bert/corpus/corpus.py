"""A corpus: files of text -> documents -> sections, read as a stream.

A long document is read as several sections, so it need not fit into memory.
"""

import dataclasses
import hashlib
import itertools
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from bert import surrogates
from bert.corpus import corpus_files, installed_docs, ranges, text_files
from bert.corpus.corpus_files import INSTALLED_DOCS, Source
from bert.corpus.layout import (
    LAYOUTS,
    SAMPLE_CHARS,
    SECTION_CHARS,
    SENTENCES,
    WRAPPED,
    cut_sections,
    resolve_layout,
    share_inside_sentences,
)
from bert.corpus.ranges import Range
from bert.errors import InputError, check_choice, printable

SURROGATES = "half characters"  # name in reports of texts with unpaired surrogates; manifests have it
# The layout of shorter files is decided together with that of their folder.
OWN_LAYOUT_CHARS = 1 << 16


class Section(NamedTuple):
    """Part of a document, or all of it. name: "file:line" or "file:row" of its beginning."""

    name: str
    text: str
    layout: str  # for layout.split_sentences
    first: bool  # a document begins here


@dataclasses.dataclass(frozen=True)
class CorpusSettings:
    """How files are read; `PrepareSettings` explains the fields."""

    encoding: str = ""
    text_column: str = "text"
    documents: str = "auto"
    sentences: str = "auto"
    language: str = "en"

    def __post_init__(self) -> None:
        check_choice("documents", self.documents, ("auto", "blank_lines", "file"))
        check_choice("sentences", self.sentences, ("auto", "lines", "split", "wrapped"))


class Corpus:
    """The files of a corpus and the settings to read them with; nothing is read before `sections`."""

    def __init__(
        self, spec: str | Iterable[str], settings: CorpusSettings | None = None,
        *, workers: int = 1, part: tuple[int, int] = (1, 1),
    ):  # fmt: skip
        """`workers`: processes that read installed documentation; files are always read by one.
        `part`: (2, 3) reads the second of three parts (ranges.py). The parts have the same sections as the whole."""
        self.settings = settings or CorpusSettings()
        self._wanted_layout = {"lines": SENTENCES}.get(self.settings.sentences, self.settings.sentences)
        self.sources = corpus_files.find_sources(spec)
        self.ranges = ranges.of_part([source.bytes for source in self.sources], part)
        self.workers = workers
        self.notes: dict[str, dict[str, Any]] = {}  # path -> bytes, encoding, layout, documents; filled while reading
        self._installed: list[tuple[str, str]] | None = None
        self._layouts: dict[tuple[pathlib.Path, str], tuple[str, float]] = {}

    def sections(self) -> Iterator[Section]:
        """All sections, in the order of the sources and of their lines."""
        for source, here in zip(self.sources, self.ranges, strict=True):
            if here is None:
                continue
            note: dict[str, Any] = {"bytes": source.bytes, "encoding": "utf-8", "documents": 0}
            self.notes[printable(str(source.path))] = note
            for section in self._sections_of(source, here, note):
                note["documents"] += section.first
                yield section

    def text_bytes(self) -> int | None:
        """About the size of the text of this part in UTF-8; None where files do not tell it: tables, packed files."""
        plain = (
            source.kind == "text" and source.path.suffix != ".gz" and "utf-8" in self._encoding_of(source.path)
            for source in self.sources
        )
        return sum(here.end - here.start for here in self.ranges if here) if all(plain) else None

    def signature(self) -> str:
        """Changes when a file of the corpus is added, removed or changed (by name, size and time of change)."""
        marks = []
        for source in self.sources:
            if source.kind == INSTALLED_DOCS:
                marks += installed_docs.installed()
            else:
                marks.append(f"{source.path} {source.mark}")
        return hashlib.sha256("\n".join(marks).encode("utf-8", "surrogateescape")).hexdigest()

    def marks(self, *, of_part: bool = True) -> dict[str, str]:
        """Name -> what changes with the file, of the files of this part, or of all."""
        pairs = zip(self.sources, self.ranges, strict=True)
        return {printable(str(source.path)): source.mark for source, here in pairs if here or not of_part}

    def _sections_of(self, source: Source, here: Range, note: dict[str, Any]) -> Iterator[Section]:
        if source.kind == INSTALLED_DOCS:
            note["layout"], note["one document is"] = WRAPPED, "a docstring"
            documents: list[tuple[str, str]] = []
            for name, text in self._installed or installed_docs.documents(self.workers):
                note["bytes"] += len(text.encode("utf-8", "surrogatepass"))
                documents.append((name, text))
                yield Section(name, text, WRAPPED, True)
            self._installed = documents  # read twice: for the vocabulary and for the tokens
            return
        encoding = self._encoding_of(source.path)
        note["encoding"] = encoding.removesuffix("-sig")
        read = self._text_sections if source.kind == "text" else self._row_sections
        try:
            yield from read(source, here, encoding, note)
        except text_files.NotInEncoding as error:
            texts = [other.path for other in self.sources if other.kind in ("text", "jsonl")]
            wrong = [path for path in texts if not text_files.decodes(path, self._encoding_of(path))]
            raise error.with_others(wrong) from None

    def _encoding_of(self, path: pathlib.Path) -> str:
        return text_files.encoding_of(path, self.settings.encoding)

    def _text_sections(
        self, source: Source, here: Range, encoding: str, note: dict[str, Any]
    ) -> Iterator[Section]:  # fmt: skip
        layout, note["inside sentences"] = self._layout(source, encoding)
        note["layout"] = layout
        wanted = self.settings.documents
        blank_lines = wanted == "blank_lines" or (wanted == "auto" and layout == SENTENCES)
        note["one document is"] = "a block between blank lines" if blank_lines else "the file"
        start, end = self._bounds(source, here, encoding, text_files.BLANK_LINE if blank_lines else None)
        lines = text_files.read_lines(source.path, encoding, start=start, end=end)
        if start and start == end:  # what cannot be cut is read by another part
            return
        if not blank_lines:
            for index, text in enumerate(cut_sections(lines, layout)):
                yield Section(str(source.path), text, layout, index == 0)
            return
        number = 1
        for blank, block in itertools.groupby(lines, key=lambda line: not line.strip()):
            if blank:
                number += sum(1 for _ in block)
                continue
            name = f"{source.path}:{number}"
            for index, text in enumerate(cut_sections(block, layout)):
                number += text.count("\n")
                yield Section(name, text, layout, index == 0)

    def _bounds(self, source: Source, here: Range, encoding: str, ending: re.Pattern[bytes] | None) -> tuple[int, int]:
        """The bytes of a file from the first beginning of a document in the range to the first one behind it; all or
        none of a file that cannot be cut. ``ending``: what stands between documents; None: the file is one."""
        if ending is None or not encoding.startswith("utf-8") or text_files.is_packed(source.path):
            return (0, here.size) if here.start == 0 else (here.size, here.size)
        first, last = (text_files.behind(source.path, position, ending) for position in (here.start, here.end))
        return (first, last) if here.start else (0, last)

    def _row_sections(
        self, source: Source, here: Range, encoding: str, note: dict[str, Any]
    ) -> Iterator[Section]:  # fmt: skip
        note["one document is"] = "a row"
        column, language = self.settings.text_column, self.settings.language
        bounds = here
        if source.kind == "jsonl":
            bounds = Range(*self._bounds(source, here, encoding, text_files.LINE_END), here.size)
        if bounds.start and bounds.start == bounds.end:
            return
        unjoined: list[str] = []
        sampled = 0

        def sample(text: str, layout: str) -> None:
            nonlocal sampled
            if layout not in LAYOUTS and sampled < SAMPLE_CHARS:
                sampled += len(text)
                unjoined.extend([text] * (self._layout_of(text)[0] != WRAPPED))

        for name, value in corpus_files.read_rows(source, bounds, encoding, column):
            text, layout = self._row_text(name, value)
            note[SURROGATES] = note.get(SURROGATES, 0) + surrogates.contains(text)
            text = surrogates.replace(text)
            sample(text, layout)
            if len(text) <= 2 * SECTION_CHARS:
                yield Section(name, text, layout, True)
                continue
            layout = resolve_layout(layout, text, language)
            for index, part in enumerate(cut_sections(text_files.lines_of(text), layout)):
                yield Section(name, part, layout, index == 0)
        if here.start:
            return
        if bounds.end < bounds.size and self._wanted_layout not in LAYOUTS:  # the sample is that of the whole file
            rows = corpus_files.read_rows(source, bounds.rest(), encoding, column)
            while sampled < SAMPLE_CHARS and (row := next(rows, None)):
                text, layout = self._row_text(*row)
                sample(surrogates.replace(text), layout)
        note["inside sentences"] = share_inside_sentences("\n\n".join(unjoined))

    def _row_text(self, name: str, value: Any) -> tuple[str, str]:
        """The text of a row and its layout, which may be "auto" or "split"; InputError where it is no text."""
        if isinstance(value, list) and all(isinstance(sentence, str) for sentence in value):
            return "\n".join(" ".join(sentence.split()) for sentence in value), SENTENCES
        if value is None or isinstance(value, str):
            return (value or "").replace("\r\n", "\n").replace("\r", "\n"), self._wanted_layout
        what = f"column {self.settings.text_column!r} holds a {type(value).__name__}"
        raise InputError(f"{name}: {what}; a text or a list of texts is needed")

    def _layout(self, source: Source, encoding: str) -> tuple[str, float]:
        """Layout of a text file, and the share of its lines that end inside sentences where none are joined.

        Short files share both with the other short files of their folder that have the same ending.
        """
        if self._wanted_layout in LAYOUTS:
            return self._wanted_layout, 0.0
        head = _head(source.path, encoding, SAMPLE_CHARS)
        if len(head) >= OWN_LAYOUT_CHARS:
            return self._layout_of(head)
        group = (source.path.parent, source.path.suffix)
        if group not in self._layouts:
            self._layouts[group] = self._layout_of(self._sample_of(group))
        return self._layouts[group]

    def _layout_of(self, sample: str) -> tuple[str, float]:
        layout = resolve_layout(self._wanted_layout, sample, self.settings.language)
        return layout, 0.0 if layout == WRAPPED else share_inside_sentences(sample)

    def _sample_of(self, group: tuple[pathlib.Path, str]) -> str:
        """Beginnings of the short files of a folder, up to SAMPLE_CHARS characters of them."""
        heads: list[str] = []
        for source in self.sources:
            if source.kind == "text" and (source.path.parent, source.path.suffix) == group:
                head = _head(source.path, self._encoding_of(source.path), OWN_LAYOUT_CHARS)
                if len(head) < OWN_LAYOUT_CHARS:
                    heads.append(head)
                if sum(map(len, heads)) >= SAMPLE_CHARS:
                    break
        return "\n\n".join(heads)


def _head(path: pathlib.Path, encoding: str, chars: int) -> str:
    """At least `chars` characters from the beginning of a file, or all of it."""
    pieces, size = [], 0
    for piece in text_files.read_lines(path, encoding):
        pieces.append(piece)
        size += len(piece)
        if size >= chars:
            break
    return "".join(pieces)
