"""Reads tagged sentences in columns: one word per line, blank lines between sentences, tags of one or more workers.

A line of blanks and tabs is a blank line. Several blank lines count as one, and the last sentence needs none. Lines end
in LF, CRLF or CR only (U+0085 and U+2028 belong to the word). All lines have as many columns as most of them.
-DOCSTART-, with any columns, begins a document; so do "# newdoc" and "#begin document". Comments begin with #, which
is also a word: see `_is_comment`.
"""

import bisect
import collections
import dataclasses
import itertools
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bert.bio_tags import is_tag_of_any_scheme
from bert.corpus.corpus_files import endings_of
from bert.errors import InputError, listed
from tasks.files.cells import TableCell, short
from tasks.files.records import TableSettings
from tasks.files.reports import Tally
from tasks.files.text_lines import read_lines
from tasks.tagging.tag_schemes import TagFile, TaggedSentence, TagSettings, read_tags

DOCUMENT_START = "-DOCSTART-"
TEXTS = '; write texts that are not cut into words as json lines: {"text": "..."}'
BLANKS = re.compile(r"[ \t]+")
_NUMBER = re.compile(r"[0-9]+([-.][0-9]+)?")  # of a word, of several words, of an empty node
_METADATA = re.compile(r"\s*#\s*(newdoc|newpar|[\w.:-]+\s*=)")
_NEW_DOCUMENT = re.compile(r"\s*#\s*(newdoc|begin document)\b")


class _Sentence(NamedTuple):
    lines: list[int]
    document: int  # how many lines that begin one stand before it; of a file without, the number of the sentence
    columns: list[tuple[str, ...]]


def read_columns(path: str, settings: TagSettings, labelled: str) -> TagFile:
    """The sentences of a file; annotators are called by the number of their column."""
    notes: list[str] = []
    sentences = _sentences(path, settings, labelled, notes)
    if not sentences:
        return TagFile([], notes, ())
    width = len(sentences[0].columns)
    word = _column(path, "words", settings.words, width)
    if word is None:
        raise InputError(f"{path}: words is column {settings.words}, lines have {width} (from 0); set words")
    _check_words(path, sentences, word)
    columns: list[int] = []
    if labelled != "no":
        with_tags = _with_tags(sentences, word, settings) if settings.tags == "-1" else []
        if word == 0 and _is_crowd(sentences, with_tags, settings):
            notes.append(f"{path}: columns 1 to {width - 1} are read as the tags of a worker each (tags 1-)")
            settings = dataclasses.replace(settings, tags="1-")
        elif settings.scheme != "plain" and len(with_tags) > 1:
            shown = listed([str(column) for column in with_tags])
            way_out = f"set tags to another, or to {with_tags[0]}- if each is a worker's"
            notes.append(f"{path}: columns {shown} have tags; the last is read; {way_out}")
        columns = _tag_columns(path, settings, width, word, labelled == "needed")
        if not columns:
            notes.append(f"{path}: lines have {width} columns, none of them with tags (tags {settings.tags})")
    elif width > 1:
        notes.append(f"{path}: column {word} of {width} (the first is 0) is read as the words; set words for another")
    rows = [_tagged(path, sentence, word, columns, settings) for sentence in sentences]
    return TagFile(rows, notes, tuple(map(str, columns)) if len(columns) > 1 else ())


def splitter(delimiter: str) -> Callable[[str], list[str]]:
    """Line -> its fields, without blanks around them."""
    table = TableSettings(delimiter=delimiter)
    pattern = BLANKS if not delimiter else re.compile(table.pattern) if table.pattern else None
    if pattern is None:
        return lambda line: [field.strip(" ") for field in line.split(table.character)]
    return lambda line: pattern.split(line.strip(" \t"))


def is_document_start(line: str, fields: Sequence[str]) -> bool:
    """Whether a line has -DOCSTART-, with any columns behind it, whatever stands between them."""
    return DOCUMENT_START in line and (DOCUMENT_START in fields or line.lstrip().startswith(f"{DOCUMENT_START} "))


def _sentences(path: str, settings: TagSettings, labelled: str, notes: list[str]) -> list[_Sentence]:
    split = splitter(settings.delimiter)
    lines = [
        (number, line, split(line) if line.strip(" \t") else [])
        for number, line in enumerate(read_lines(path, settings.encoding), 1)
    ]
    width, example = _width(path, lines)
    rows: list[tuple[int, list[str]]] = []  # number and fields; no fields between sentences
    comments = Tally()
    documents: list[int] = []  # the lines that begin one
    marked = 0  # of these, the lines with -DOCSTART-
    for number, line, fields in lines:
        before = rows[-1][1] if rows else []
        if is_document_start(line, fields):
            documents.append(number)
            marked += 1
            fields = []
        elif fields and fields[0].startswith("#") and _is_comment(line, fields, width, before, settings, labelled):
            comments.add("comment lines (#) are left out", f"{path}:{number}")
            if _NEW_DOCUMENT.match(line):
                documents.append(number)
            continue
        elif fields and len(fields) != width:
            error = _ragged(path, number, line, len(fields), (example, width), settings)
            raise InputError(f"{error}{TEXTS}") if labelled == "no" else error
        rows.append((number, fields))
    notes += [f"{path}: {marked:,} {DOCUMENT_START} lines, each begins a document"] * bool(marked)
    notes += [f"{path}: {note}" for note in comments.notes()]
    sentences: list[_Sentence] = []
    for is_filled, group in itertools.groupby(rows, key=lambda row: bool(row[1])):
        if is_filled:
            numbers, cells = zip(*group, strict=True)
            document = bisect.bisect(documents, numbers[0]) if documents else len(sentences) + 1
            sentences.append(_Sentence(list(numbers), document, list(zip(*cells, strict=True))))
    return sentences


def _width(path: str, lines: Sequence[tuple[int, str, list[str]]]) -> tuple[int, int]:
    """(the number of fields that most lines have, the first line that has it); (0, 0) of a file without any."""
    filled = [line for line in lines if line[2] and DOCUMENT_START not in line[1]]
    if filled:
        _check_kind(path, *filled[0][:2])
    words = [line for line in filled if not line[1].lstrip().startswith("#")] or filled
    counts = collections.Counter(len(fields) for _, _, fields in words)
    width = max(counts, key=counts.__getitem__, default=0)
    return width, next((number for number, _, fields in words if len(fields) == width), 0)


def _is_comment(
    line: str, fields: list[str], width: int, before: list[str], settings: TagSettings, labelled: str
) -> bool:
    """Whether a line that begins with # is a comment, and not the word # or #word.

    It is one if it has another number of fields than most lines, and # is a field of its own or a sentence begins here.
    With as many fields, it is one only where a sentence begins, if it is like "# key = value", or has no tag.
    """
    if before and (fields[0] != "#" or len(fields) == width):
        return False
    if len(fields) != width or _METADATA.match(line):
        return True
    tags = fields[-1:] if settings.tags == "-1" else fields[1:]
    any_tag = settings.scheme == "plain" or labelled == "no" or width == 1 or fields[0] != "#"
    return not any_tag and not any(tag == settings.empty or is_tag_of_any_scheme(tag) for tag in tags)


def _check_kind(path: str, number: int, line: str) -> None:
    if re.fullmatch(r"\s*\{\s*\".*\}\s*", line):
        raise TableCell(f"{path}:{number}", line).error("is json, not columns; set format to lines")


def _check_words(path: str, sentences: Sequence[_Sentence], word: int) -> None:
    """Refuses a column that numbers the words of each sentence, as many formats have it before the words."""
    columns = [sentence.columns[word] for sentence in sentences]
    begun = all(_NUMBER.fullmatch(cells[0]) and cells[0][0] in "01" for cells in columns)
    if begun and max(map(len, columns)) > 1 and all(_NUMBER.fullmatch(cell) for cells in columns for cell in cells):
        way_out = f"set words to the column with the words, such as {word + 1}, and tags if the last column has none"
        raise InputError(f"{path}: column {word} holds the numbers of the words; {way_out}")


def _ragged(path: str, number: int, line: str, count: int, first: tuple[int, int], settings: TagSettings) -> InputError:
    hint = ""
    if line.startswith("#"):
        hint = ", or take it out if it is a comment"
    elif endings_of(pathlib.Path(path))[0] == ".csv":
        hint = ", or set words and tags to the names of columns of a table"
    elif "\t" in line and not settings.delimiter:
        hint = ", or set delimiter to tab if words hold blanks"
    what = "1 field (a word or a tag is missing)" if count == 1 else f"{count} fields"
    return InputError(
        f"{path}:{number}: {what} where {first[1]} are wanted (as in most lines, such as line {first[0]}): "
        f"{short(line)}; mend the line{hint}"
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


def _with_tags(sentences: Sequence[_Sentence], word: int, settings: TagSettings) -> list[int]:
    """The columns beside the words with nothing but tags and what stands where there is none."""

    def has_tags(column: int) -> bool:
        cells = set().union(*(sentence.columns[column] for sentence in sentences))
        return settings.scheme == "plain" or all(cell == settings.empty or is_tag_of_any_scheme(cell) for cell in cells)

    return [column for column in range(len(sentences[0].columns)) if column != word and has_tags(column)]


def _is_crowd(sentences: Sequence[_Sentence], with_tags: Sequence[int], settings: TagSettings) -> bool:
    """Whether a file has a column for each worker: several, all with tags, and some of them empty."""
    if not len(sentences[0].columns) - 1 == len(with_tags) > 1 or not settings.empty:
        return False
    return any(settings.empty in sentence.columns[column] for sentence in sentences for column in with_tags)


def _tagged(path: str, sentence: _Sentence, word: int, columns: Sequence[int], settings: TagSettings) -> TaggedSentence:
    words = sentence.columns[word]
    if "" in words:
        line = sentence.lines[words.index("")]
        raise InputError(f"{path}:{line}: the word (column {word}) is empty; write one, or take the line out")

    def tags(column: int) -> tuple[str | None, ...]:
        return read_tags(sentence.columns[column], settings, lambda i: f"{path}:{sentence.lines[i]}: column {column}")

    annotations = [(str(column), tags(column)) for column in columns]
    return TaggedSentence.of(words, annotations, f"{path}:{sentence.lines[0]}", str(sentence.document))
