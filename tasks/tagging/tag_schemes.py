"""A tagged sentence, the scheme of its tags, and their conversion to IOB2.

Not here: files (tagged.py), what the tags mean (bert/bio_tags.py).
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from bert import bio_tags
from bert.bio_tags import is_tag
from bert.errors import InputError, check_choice
from tasks.annotations.annotated_texts import AnnotationSettings, Source
from tasks.annotations.tools import TOOLS
from tasks.files.cells import TableCell, check_characters
from tasks.files.records import TableSettings
from tasks.files.reports import ReadRows

FORMATS = ("auto", "columns", "lines", "workers", *TOOLS)
SCHEMES = ("auto", "iob1", "iob2", "plain")
FORMS = "O, B, I, B-TYPE and I-TYPE"


Annotations = Sequence[tuple[str, tuple[str | None, ...]]]  # (annotator, a tag or None for each word)


class TaggedSentence(NamedTuple):
    """A sentence.

    words: none is "", but one may have nothing to see in it (a zero-width blank). () only from json lines, unlabelled.
    annotations: (annotator, a tag or None for each word); who gave no tag at all is not listed. In IOB2, unless the
      scheme is plain.
    place: "FILE:LINE" of its first word, or "FILE: row N".
    document: what must not be cut apart by a split: a -DOCSTART- or a file by number or name; else the sentence.
    id: of json lines and annotation tools, where they have one.
    text, places: of a sentence that is a text cut into words: the text, and [start, end) of each word in it.
    source: of a text from an annotation tool.
    """

    words: tuple[str, ...]
    annotations: tuple[tuple[str, tuple[str | None, ...]], ...]
    place: str
    document: str
    id: str = ""
    text: str | None = None
    places: tuple[tuple[int, int], ...] = ()
    source: Source | None = None

    @classmethod
    def of(
        cls, words: tuple[str, ...], annotations: Annotations, place: str, document: str, id: str = ""
    ) -> "TaggedSentence":
        """The sentence without the annotators who gave no tag at all."""
        with_tags = tuple((name, tags) for name, tags in annotations if any(tag is not None for tag in tags))
        return cls(words, with_tags, place, document, id)


TaggedRows = ReadRows[TaggedSentence]


class TagFile(NamedTuple):
    """What a reader gives, tags as they are in the file. annotators: those to choose from; () where none are named."""

    rows: list[TaggedSentence]
    notes: list[str]
    annotators: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class TagSettings(AnnotationSettings):
    """How a file of tagged sentences is read."""

    # columns (a word a line, a blank line between sentences), lines (json lines), workers (a folder a worker); doccano,
    # label_studio, prodigy, brat (exports of these tools); auto: by the name and the content.
    format: str = "auto"
    words: str = "0"  # column with the word, from 0, or from -1 at the end; of json lines the key (else "tokens")
    # Column with the tag; 1- or 1-5 for columns of one worker each; of json lines the key (else "tags" or
    # "annotations"). At -1, a file with several columns of tags and cells that are `empty` is read as 1-.
    tags: str = "-1"
    scheme: str = "auto"  # iob1, iob2; plain: any tags, unchanged; auto: iob1 or iob2, by the tags
    annotators: str = ""  # names to keep (anna,ben), or names to leave out (-cleo); columns have numbers; empty: all
    empty: str = "?"  # a cell without a tag of its worker; '' for none
    delimiter: str = ""  # between columns; '' for a run of blanks or tabs; else as of a table

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("format", self.format, FORMATS)
        check_choice("scheme", self.scheme, SCHEMES)
        TableSettings(delimiter=self.delimiter)  # refuses what is no delimiter


def read_tags(
    cells: Sequence[str | None], settings: TagSettings, where: Callable[[int], str]
) -> tuple[str | None, ...]:
    """The tags in cells, None for empty ones; arguments and errors as of `check_tags`."""
    tags = tuple(None if cell == settings.empty else cell for cell in cells)
    check_tags(tags, settings.scheme, where)
    return tags


def check_tags(tags: Iterable[str | None], scheme: str, where: Callable[[int], str]) -> None:
    """Refuses a tag that is none in its scheme; ``where``: index of a tag -> its place, for the message."""
    for i, tag in enumerate(tags):
        if tag is None or (tag if scheme == "plain" else is_tag(tag)):
            if tag:
                check_characters(tag, where(i))
            continue
        if not tag:
            raise InputError(f"{where(i)}: a tag is empty; write one, or what the setting empty says, for no tag")
        raise TableCell(where(i), tag).error(
            f"is no tag; write {FORMS}, set tags and delimiter to where these are, or set scheme to plain for tags of "
            "any other kind"
        )


def _neighbours(tags: Sequence[str | None]) -> Iterator[tuple[str | None, str]]:
    """(tag before it, B or I) for each B and I; before the first word stands an O."""
    pairs: Iterator[tuple[str | None, str | None]] = itertools.pairwise(["O", *tags])
    yield from ((previous, tag) for previous, tag in pairs if tag is not None and tag != "O")


def detect_scheme(rows: Iterable[TaggedSentence]) -> str:
    """The scheme of all tags of a file: "iob1" or "iob2".

    A B where IOB1 would have an I settles it: IOB2, whatever else is wrong. Else an I that begins an entity means IOB1.
    A file with neither is the same in both.
    """
    by_i = False
    for row in rows:
        for _, tags in row.annotations:
            for previous, tag in _neighbours(tags):
                if bio_tags.begins(previous, tag):
                    if tag[0] == "B":
                        return "iob2"
                    by_i = True
    return "iob1" if by_i else "iob2"


def to_iob2(tags: Sequence[str | None], scheme: str) -> tuple[tuple[str | None, ...], int]:
    """(tags in IOB2, how many were at fault): each I that begins an entity becomes B, a fault unless it is IOB1.

    An I after None stays, for its B may be what the annotator left out. Plain tags are given back as they are.
    """
    if scheme == "plain":
        return tuple(tags), 0
    mended = tuple(bio_tags.repaired(tags))
    strays = sum(a != b for a, b in zip(tags, mended, strict=True))
    return mended, strays if scheme == "iob2" else 0


def check_types(rows: Iterable[TaggedSentence]) -> None:
    """Refuses tags of which some have a type and some have none."""
    seen: dict[bool, str] = {}
    for row in rows:
        for tag in {tag for _, tags in row.annotations for tag in tags if tag is not None and tag != "O"}:
            seen.setdefault(bool(bio_tags.parse(tag)[1]), tag)
        if len(seen) == 2:
            raise InputError(f"{row.place}: {seen[True]} has a type and {seen[False]} has none; give all one, or none")
