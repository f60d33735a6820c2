"""Reads tagged sentences in columns: one word per line, blank lines between sentences, tags of one or more workers.

A line of blanks and tabs is a blank line. Several blank lines count as one, and the last sentence needs none. Lines end
in LF, CRLF or CR only (U+0085 and U+2028 belong to the word). -DOCSTART- begins a document. There are no comments: # is
an ordinary word.
"""

import bisect
import itertools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bert.bio_tags import is_tag
from bert.errors import InputError
from tasks.files.cells import TableCell, short
from tasks.files.records import TableSettings
from tasks.files.text_lines import read_lines
from tasks.tagging.tag_schemes import TagFile, TaggedSentence, TagSettings, read_tags

DOCUMENT_START = "-DOCSTART-"
BLANKS = re.compile(r"[ \t]+")


class _Sentence(NamedTuple):
    lines: list[int]
    document: int  # how many -DOCSTART- stand before it
    columns: list[tuple[str, ...]]


def read_columns(path: str, settings: TagSettings, labelled: str) -> TagFile:
    """The sentences of a file; annotators are called by the number of their column."""
    sentences, documents = _sentences(path, settings)
    notes = [f"{path}: {documents:,} {DOCUMENT_START} lines, each begins a document"] if documents else []
    if not sentences:
        return TagFile([], notes, ())
    width = len(sentences[0].columns)
    word = _column(path, "words", settings.words, width)
    if word is None:
        raise InputError(f"{path}: words is column {settings.words}, lines have {width} (from 0); set words")
    columns: list[int] = []
    if labelled != "no":
        if _is_crowd(sentences, settings):
            notes.append(f"{path}: columns 1 to {width - 1} are read as the tags of a worker each (tags 1-)")
            settings = TagSettings(**{**vars(settings), "tags": "1-"})
        columns = _tag_columns(path, settings, width, word, labelled == "needed")
        if not columns:
            notes.append(f"{path}: lines have {width} columns, none of them with tags (tags {settings.tags})")
    elif width > 1:
        notes.append(f"{path}: column {word} of {width} (the first is 0) is read as the words; set words for another")
    rows = [_tagged(path, sentence, word, columns, settings) for sentence in sentences]
    if not documents:
        rows = [row._replace(document=str(number)) for number, row in enumerate(rows, 1)]
    return TagFile(rows, notes, tuple(map(str, columns)) if len(columns) > 1 else ())


def splitter(delimiter: str) -> Callable[[str], list[str]]:
    """Line -> its fields, without blanks around them."""
    table = TableSettings(delimiter=delimiter)
    pattern = BLANKS if not delimiter else re.compile(table.pattern) if table.pattern else None
    if pattern is None:
        return lambda line: [field.strip(" ") for field in line.split(table.character)]
    return lambda line: pattern.split(line.strip(" \t"))


def _sentences(path: str, settings: TagSettings) -> tuple[list[_Sentence], int]:
    """(all sentences, the number of -DOCSTART- lines)."""
    split = splitter(settings.delimiter)
    lines: list[tuple[int, list[str]]] = []  # number and fields; no fields between sentences
    documents: list[int] = []  # the lines with -DOCSTART-
    first = None  # number of the first line, and of its fields
    for number, line in enumerate(read_lines(path, settings.encoding), 1):
        fields = split(line) if line.strip(" \t") else []
        if DOCUMENT_START in fields:
            documents.append(number)
            fields = []
        if fields and not first:
            _check_kind(path, number, line)
            first = (number, len(fields))
        if fields and first and len(fields) != first[1]:
            raise _ragged(path, number, line, len(fields), first, settings)
        lines.append((number, fields))
    sentences = []
    for is_filled, group in itertools.groupby(lines, key=lambda line: bool(line[1])):
        if is_filled:
            numbers, rows = zip(*group, strict=True)
            document = bisect.bisect(documents, numbers[0])
            sentences.append(_Sentence(list(numbers), document, list(zip(*rows, strict=True))))
    return sentences, len(documents)


def _check_kind(path: str, number: int, line: str) -> None:
    if re.fullmatch(r"\s*\{\s*\".*\}\s*", line):
        raise TableCell(f"{path}:{number}", line).error("is json, not columns; set format to lines")


def _ragged(path: str, number: int, line: str, count: int, first: tuple[int, int], settings: TagSettings) -> InputError:
    hint = ""
    if line.startswith("#"):
        hint = "; comment lines are not read, take them out"
    elif "\t" in line and not settings.delimiter:
        hint = ", or set delimiter to tab if words hold blanks"
    what = "1 field (a word or a tag is missing)" if count == 1 else f"{count} fields"
    return InputError(
        f"{path}:{number}: {what} where {first[1]} are wanted (as in line {first[0]}): {short(line)}; mend the "
        f"line{hint}"
    )


def _column(path: str, role: str, text: str, width: int) -> int | None:
    """Number of a column, from 0; None where the lines have no such column."""
    if not re.fullmatch(r"-?[0-9]+", text):
        raise InputError(f"{path}: {role} {text!r} must be the number of a column (0 the first, -1 the last)")
    number = int(text)
    return number % width if -width <= number < width else None


def _tag_columns(path: str, settings: TagSettings, width: int, word: int, needed: bool) -> list[int]:
    """Numbers of the columns with tags; none where there are none and none are needed."""
    several = re.fullmatch(r"([0-9]+)-([0-9]*)", settings.tags)
    if several:
        begin, end = int(several[1]), int(several[2] or width - 1)
        if begin <= word <= end:
            raise InputError(f"{path}: tags {settings.tags} includes column {word}, which holds the words; set tags")
        columns = list(range(begin, end + 1)) if end < width else []
    else:
        number = _column(path, "tags", settings.tags, width)
        if number == word and settings.tags != "-1":
            raise InputError(f"{path}: words and tags are both the column {word}; set tags to another")
        columns = [] if number is None or number == word else [number]
    if needed and not columns:
        raise InputError(
            f"{path}: tags is {settings.tags}, but lines have {width} column{'s' * (width != 1)} (the first is 0), the "
            f"words are in {word}; set tags, or delimiter if the lines were not split right"
        )
    return columns


def _is_crowd(sentences: Sequence[_Sentence], settings: TagSettings) -> bool:
    """Whether a file has a column for each worker: several, all with tags, and some of them empty."""
    if (settings.words, settings.tags) != ("0", "-1") or len(sentences[0].columns) < 3 or not settings.empty:
        return False
    some_empty = False
    for sentence in sentences:
        cells = set().union(*sentence.columns[1:])
        some_empty |= settings.empty in cells
        if settings.scheme != "plain" and not all(cell == settings.empty or is_tag(cell) for cell in cells):
            return False
    return some_empty


def _tagged(path: str, sentence: _Sentence, word: int, columns: Sequence[int], settings: TagSettings) -> TaggedSentence:
    words = sentence.columns[word]
    if "" in words:
        line = sentence.lines[words.index("")]
        raise InputError(f"{path}:{line}: the word (column {word}) is empty; write one, or take the line out")

    def tags(column: int) -> tuple[str | None, ...]:
        return read_tags(sentence.columns[column], settings, lambda i: f"{path}:{sentence.lines[i]}: column {column}")

    annotations = [(str(column), tags(column)) for column in columns]
    return TaggedSentence.of(words, annotations, f"{path}:{sentence.lines[0]}", str(sentence.document))
