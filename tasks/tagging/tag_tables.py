"""Reads tagged sentences in tables: json lines, json, csv, parquet, Arrow, and data sets saved by `datasets`.

A sentence a row: ``{"tokens": [...], "tags": [...]}``; null is a missing tag. Instead of tags, a row may have
``"annotations": [{"annotator": "a", "tags": [...]}, ...]``. Both "document", which a split keeps together, and "id" are
optional. In csv, a list is text, as JSON or as Python or NumPy print it, or words with blanks between them. Numbers of
tags get their names from the file (ClassLabel of `datasets`), or from the setting tag_names.

A word a row: see word_rows.py.
"""

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bert import surrogates
from bert.corpus.corpus_files import endings_of
from bert.errors import InputError
from tasks.files import json_tables, printed
from tasks.files.annotators import SINGLE
from tasks.files.cells import TableCell, short
from tasks.files.records import Table, TableSettings, cell_of, check_column, value_of
from tasks.files.tables import read_table
from tasks.files.text_lines import read_lines
from tasks.tagging import word_rows
from tasks.tagging.tag_schemes import Annotations, TagFile, TaggedSentence, TagSettings, read_tags

# Names of columns where the settings name none, in any case; the first that is there counts.
WORDS = ("tokens", "words", "token", "word", "sentence")
TAGS = ("tags", "annotations", "ner_tags", "labels", "tag", "ner", "label")
SENTENCES = ("sentence #", "sentence", "sentence_id", "sentence_idx", "sent_id", "sentence id")


def is_tag_table(path: str, settings: TagSettings) -> bool:
    """Whether a .csv or .tsv file has a header that names words, and tags or sentences; else it has columns."""
    if endings_of(pathlib.Path(path))[0] not in (".csv", ".tsv"):
        return False
    header = re.split(r"[,;\t]", next(read_lines(path, settings.encoding), ""))
    names = {name.strip(' "').casefold() for name in header}
    others = {*TAGS, *SENTENCES, settings.tags.casefold()}
    return bool(names & {*WORDS, settings.words.casefold()} and names & others and len(names) > 1)


def read_tag_lines(path: str, settings: TagSettings, labelled: str) -> TagFile:
    """The sentences of json lines, or of a json list of objects, whatever the file is called."""
    is_json = endings_of(pathlib.Path(path))[0] == ".json"
    read = json_tables.read_json if is_json else json_tables.read_jsonl
    return _tag_file(read(path, TableSettings(encoding=settings.encoding)), settings, labelled)


def read_tag_table(path: str, settings: TagSettings, labelled: str) -> TagFile:
    """The sentences of any table that `read_table` reads."""
    table = read_table(path, TableSettings(encoding=settings.encoding, delimiter=settings.delimiter))
    return _tag_file(table, settings, labelled)


def _tag_file(table: Table, settings: TagSettings, labelled: str) -> TagFile:
    if not table.rows:
        return TagFile([], list(table.notes), ())
    notes = list(table.notes)
    words_key = _column(table, settings.words, "0", "words", WORDS, notes)
    check_column(table, words_key, "words")
    if settings.tags == "-1" and labelled != "no" and {"tags", "annotations"} <= set(table.columns):
        raise InputError(f"{table.path}: holds both tags and annotations; set tags to the one to use")
    tags_key = _column(table, settings.tags, "-1", "tags", TAGS, notes)
    if labelled == "needed":
        check_column(table, tags_key, "tags")
    first = table.rows[0]
    if not any(_is_list(value_of(first, key)) for key in (words_key, tags_key)):
        sentence_key = settings.sentence or _known(table, SENTENCES, (words_key, tags_key))
        if sentence_key or (table.universal_newlines and _are_single(table, words_key)):
            columns = word_rows.Columns(words_key, tags_key, sentence_key)
            return word_rows.read(table, columns, settings, labelled, notes)
    rows: list[TaggedSentence] = []
    annotators: dict[str, None] = {}
    mended = 0
    for number, (row, place) in enumerate(zip(table.rows, table.places, strict=True), 1):
        as_written = _words(_opened(cell_of(row, place, words_key), table))
        words = tuple(map(surrogates.join, as_written))
        mended += words != as_written
        tags = _opened(cell_of(row, place, tags_key), table)
        annotations = [] if labelled == "no" else _annotations(tags, settings, len(words))
        annotators.update(dict.fromkeys(name for name, _ in annotations))
        document, identity = (value_of(row, name) for name in ("document", "id"))
        document = str(number) if document in (None, "") else str(document)
        rows.append(TaggedSentence.of(words, annotations, place, document, "" if identity is None else str(identity)))
    if mended:
        notes.append(f"{table.path}: {mended:,} sentences held unpaired surrogates, which are now U+FFFD")
    return TagFile(rows, notes, () if list(annotators) == [SINGLE] else tuple(annotators))


def _column(table: Table, setting: str, unset: str, role: str, names: Sequence[str], notes: list[str]) -> str:
    """The column that a setting names, or the first with a known name; the message names the usual one without."""
    if setting != unset:
        return setting
    name = _known(table, names)
    if name and name not in ("tokens", "tags", "annotations"):
        notes.append(f"{table.path}: the column {name!r} is read as the {role}; set {role} for another")
    return name or names[0]


def _known(table: Table, names: Sequence[str], taken: Sequence[str] = ()) -> str:
    """The first column that has one of the names, in any case, and is not taken; "" without any."""
    columns = {column.casefold(): column for column in reversed(table.columns) if column not in taken}
    return next((columns[name] for name in names if name in columns), "")


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (isinstance(value, str) and value.strip()[:1] == "[" and len(value) > 1)


def _are_single(table: Table, key: str) -> bool:
    """Whether no text of a column has a blank in it."""
    return not any(re.search(r"\S\s+\S", str(value_of(row, key) or "")) for row in table.rows)


def _opened(cell: TableCell, table: Table) -> TableCell:
    """The cell; where its list stands there as text, that list; of csv also the words of a text with blanks."""
    if not isinstance(cell.value, str) or not (table.universal_newlines or _is_list(cell.value)):
        return cell
    value = printed.structure(cell.value, cell.place)
    if value is None and table.universal_newlines:
        value = cell.value.split()
    return cell.part(list(value) if isinstance(value, tuple) else cell.value if value is None else value)


def _words(cell: TableCell) -> tuple[str, ...]:
    if not isinstance(cell.value, list):
        rule = (
            "is no list; write the words as a list of texts, or, of a word a row, set sentence to the column that tells"
        )
        raise cell.error(f"{rule} the sentence")
    for i, word in enumerate(cell.value, 1):
        if not word or not isinstance(word, str):
            raise InputError(f"{cell.place}: word {i} is {short(word)}; write each word as a text that is not empty")
    return tuple(cell.value)


def _annotations(cell: TableCell, settings: TagSettings, count: int) -> Annotations:
    """The annotations of a sentence of `count` words, from a list of tags or of objects."""
    if cell.value is None or cell.value == []:
        return []
    if not isinstance(cell.value, list) or not isinstance(cell.value[0], Mapping):
        return [(SINGLE, _tags(cell, settings, count))]
    annotations = {}
    for i, annotation in enumerate(cell.value, 1):
        inner = TableCell(f"{cell.place}: annotation {i}", annotation)
        if not isinstance(annotation, Mapping) or not {"annotator", "tags"} <= annotation.keys():
            raise inner.error('must be like {"annotator": "a", "tags": [...]}; correct it')
        name = annotation["annotator"]
        if isinstance(name, bool) or not isinstance(name, (str, int)) or name == "":
            raise InputError(f"{inner.place}: annotator is {short(name)}; write a name, in quotes")
        if str(name) in annotations:
            raise InputError(f"{inner.place}: the annotator {short(name)} stands twice; merge the two, or rename one")
        annotations[str(name)] = _tags(inner.part(annotation["tags"]), settings, count)
    return list(annotations.items())


def _tags(cell: TableCell, settings: TagSettings, count: int) -> tuple[str | None, ...]:
    if not isinstance(cell.value, list):
        raise cell.error("is no list; write a list with a tag for each word, or with annotations")
    if len(cell.value) != count:
        what = f"{len(cell.value)} tags for {count} words"
        raise InputError(f"{cell.place}: {what}; write one for each, null where there is none")
    return read_tags(cell.value, settings, lambda i: f"{cell.place}: tag {i + 1}")
