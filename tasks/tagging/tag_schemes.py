"""A tagged sentence, the scheme of its tags, and their conversion to IOB2.

Not here: files (tagged.py), what the tags mean (bert/bio_tags.py).
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bert import bio_tags, surrogates
from bert.bio_tags import is_tag_of_any_scheme
from bert.errors import InputError, check_choice
from tasks.annotations.annotated_texts import AnnotationSettings, Origin
from tasks.files.cells import NO_LABEL, TableCell, check_characters
from tasks.files.records import TableSettings, comma_names
from tasks.files.reports import ReadRows

# Scheme -> the letters that its tags begin with; what they mean: bert/bio_tags.py. plain: any tags.
LETTERS = {"iob1": "BIO", "iob2": "BIO", "bioes": "BIOES", "bilou": "BIOLU", "bmes": "BMEOSW"}
SCHEMES = ("auto", *LETTERS, "plain")
FORMS = "O, B, I, B-TYPE and I-TYPE, or those of BIOES, BILOU or BMES"

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
    origin: of a text from an annotation tool.
    """

    words: tuple[str, ...]
    annotations: tuple[tuple[str, tuple[str | None, ...]], ...]
    place: str
    document: str
    id: str = ""
    text: str | None = None
    places: tuple[tuple[int, int], ...] = ()
    origin: Origin | None = None

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

    # columns (a word a line, a blank line between sentences), conllu (CoNLL-U), lines (json lines), table (csv,
    # parquet, a saved data set: a sentence or a word a row), workers (a folder a worker); doccano, label_studio,
    # prodigy, brat (exports of these tools); auto: by the name and the content.
    format: str = "auto"
    # Column with the word, from 0, or from -1 at the end; of a table or json lines its name (else "tokens", "words",
    # "word").
    words: str = "0"
    # Column with the tag; 1- or 1-5 for columns of one worker each; of a table or json lines its name (else "tags",
    # "annotations", "ner_tags", "labels", "tag"); of CoNLL-U upos, xpos or a key of MISC (else NER). At -1, a file with
    # several columns of tags and cells that are `empty` is read as 1-.
    tags: str = "-1"
    sentence: str = ""  # of a table with a word a row: the column that tells the sentence; empty: by its name
    # iob1, iob2, bioes, bilou, bmes (BMEWO too): entities, converted to IOB2; plain: any tags, unchanged; auto: one of
    # the first five, by the tags
    scheme: str = "auto"
    tag_names: str = ""  # of tags that are numbers: the names of 0, 1, ... in this order (O,B-PER,I-PER)
    annotators: str = ""  # names to keep (anna,ben), or names to leave out (-cleo); columns have numbers; empty: all
    empty: str = "?"  # what stands where a word has no tag (of a worker); other files write _ or -; '' for none
    delimiter: str = ""  # between columns; '' for a run of blanks or tabs; else as of a table

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("scheme", self.scheme, SCHEMES)
        TableSettings(delimiter=self.delimiter)  # refuses what is no delimiter


def read_tags(cells: Sequence[Any], settings: TagSettings, where: Callable[[int], str]) -> tuple[str | None, ...]:
    """The tags in cells, None for empty ones; arguments and errors as of `check_tags`, and for what is no text."""
    tags = tuple(None if cell == settings.empty else cell for cell in cells)
    if settings.tag_names:
        tags = tuple(_named(tag, comma_names(settings.tag_names), where(i)) for i, tag in enumerate(tags))
    for i, tag in enumerate(tags):
        if not isinstance(tag, str | None):
            raise TableCell(where(i), tag).error(
                "is no text; set tag_names to the names of 0, 1, ... in this order (O,B-PER,I-PER; with datasets: "
                "features['ner_tags'].feature.names), or write names"
            )
    check_tags(tags, settings.scheme, where)
    return tags


def _named(tag: Any, names: Sequence[str], place: str) -> str | None:
    """The name of a tag that is a number, or a text with one; any other tag as it is."""
    if not _is_whole(tag) and not (isinstance(tag, str) and re.fullmatch(r"-?[0-9]{1,9}", tag)):
        return tag
    if int(tag) in NO_LABEL:
        return None
    if not 0 <= int(tag) < len(names):
        raise TableCell(place, tag).error(f"is no number of the {len(names)} names in tag_names, which begin at 0")
    return names[int(tag)]


def _is_whole(value: Any) -> bool:
    """Whether a tag is a whole number; 3.0 is one, as tables with empty cells hold them."""
    return type(value) is int or (isinstance(value, float) and value.is_integer())


def check_tags(tags: Iterable[str | None], scheme: str, where: Callable[[int], str]) -> None:
    """Refuses a tag that is none in its scheme; ``where``: index of a tag -> its place, for the message."""
    for i, tag in enumerate(tags):
        if tag is None or _is_right(tag, scheme):
            continue
        check_characters(tag, where(i))
        if not tag:
            raise InputError(f"{where(i)}: a tag is empty; write one, or what the setting empty says, for no tag")
        if tag.isdecimal():
            rule = "is a number; set tag_names to the names of 0, 1, ... in this order (O,B-PER,I-PER)"
            raise TableCell(where(i), tag).error(f"{rule}, or scheme to plain if numbers are the names")
        raise TableCell(where(i), tag).error(
            f"is no tag{'' if scheme == 'auto' else f' of {scheme}'}; write {FORMS}, set tags and delimiter to where "
            "these are, scheme to plain for tags of any other kind, or empty to what stands where there is no tag"
        )


@functools.lru_cache(1024)  # a file has few tags, many times
def _is_right(tag: str, scheme: str) -> bool:
    known = bool(tag) if scheme == "plain" else is_tag_of_any_scheme(tag) and tag[0] in LETTERS.get(scheme, tag)
    return known and not surrogates.contains(tag)


def _neighbours(tags: Sequence[str | None]) -> Iterator[tuple[str | None, str]]:
    """(tag before it, B or I) for each B and I; before the first word stands an O."""
    pairs: Iterator[tuple[str | None, str | None]] = itertools.pairwise(["O", *tags])
    yield from ((previous, tag) for previous, tag in pairs if tag is not None and tag != "O")


def detect_scheme(rows: Iterable[TaggedSentence]) -> str:
    """The scheme of all tags of a file with B, I and O alone: "iob1" or "iob2".

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


def letters_of(rows: Iterable[TaggedSentence]) -> str:
    """The letters that the tags of a file begin with, by the alphabet.

    Raises InputError where two of them mean the same (E and L, for example), which no scheme has.
    """
    places: dict[str, str] = {}
    for row in rows:
        for letter in {tag[0] for _, tags in row.annotations for tag in tags if tag is not None}:
            places.setdefault(letter, row.place)
    by_role: dict[str, str] = {}
    for letter in sorted(places.keys() & bio_tags.ROLES.keys()):
        other = by_role.setdefault(bio_tags.ROLES[letter], letter)
        if other != letter:
            raise InputError(
                f"{places[letter]}: a tag begins with {letter}, but one with {other} at {places[other]}; no scheme has "
                "both; correct them, or set scheme to plain"
            )
    return "".join(sorted(places))


def to_iob2(tags: Sequence[str | None], scheme: str, letters: str = "") -> tuple[tuple[str | None, ...], int]:
    """(tags in IOB2, how many words break the scheme), see `bio_tags.in_iob2`; in IOB1 each I may begin an entity.

    Plain tags are given back as they are.

    Args:
      letters: of all tags of the file. Ends, for example, are wanted only of files that write some.
    """
    if scheme == "plain":
        return tuple(tags), 0
    marked = {"iob1": "", "iob2": "B"}.get(scheme, {bio_tags.ROLES.get(letter, "") for letter in letters})
    mended, faults = bio_tags.in_iob2(tags, marked)
    return tuple(mended), faults


def check_types(rows: Iterable[TaggedSentence]) -> None:
    """Refuses tags of which some have a type and some have none."""
    seen: dict[bool, str] = {}
    for row in rows:
        for tag in {tag for _, tags in row.annotations for tag in tags if tag is not None and tag != "O"}:
            seen.setdefault(bool(bio_tags.parse(tag)[1]), tag)
        if len(seen) == 2:
            raise InputError(f"{row.place}: {seen[True]} has a type and {seen[False]} has none; give all one, or none")
