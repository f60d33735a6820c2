"""Reads tagged sentences in json lines: ``{"tokens": [...], "tags": [...]}``; null is a missing tag.

Instead of tags, a line may have ``"annotations": [{"annotator": "a", "tags": [...]}, ...]``. Both "document", which a
split keeps together, and "id" are optional.
"""

import pathlib
from collections.abc import Mapping

from bert import surrogates
from bert.corpus.corpus_files import endings_of
from bert.errors import InputError
from tasks.files import json_tables
from tasks.files.cells import TableCell, short
from tasks.files.records import TableSettings, cell_of, check_column, has_column, value_of
from tasks.tagging.tag_schemes import Annotations, TagFile, TaggedSentence, TagSettings, read_tags

SINGLE = "1"  # the annotator of tags that name none


def read_tag_lines(path: str, settings: TagSettings, labelled: str) -> TagFile:
    """The sentences of json lines, or of a json list of objects."""
    is_json = endings_of(pathlib.Path(path))[0] == ".json"
    read = json_tables.read_json if is_json else json_tables.read_jsonl
    table = read(path, TableSettings(encoding=settings.encoding))
    if not table.rows:
        return TagFile([], list(table.notes), ())
    words_key = "tokens" if settings.words == "0" else settings.words
    check_column(table, words_key, "words")
    tags_key = settings.tags
    if tags_key == "-1":
        there = [key for key in ("tags", "annotations") if has_column(table, key)]
        if len(there) == 2:
            raise InputError(f"{path}: holds both tags and annotations; set tags to the one to use")
        tags_key = there[0] if there else "tags"
    if labelled == "needed":
        check_column(table, tags_key, "tags")
    rows: list[TaggedSentence] = []
    annotators: dict[str, None] = {}
    mended = 0
    for number, (row, place) in enumerate(zip(table.rows, table.places, strict=True), 1):
        as_written = _words(cell_of(row, place, words_key))
        words = tuple(map(surrogates.join, as_written))
        mended += words != as_written
        tags = cell_of(row, place, tags_key)
        annotations = [] if labelled == "no" else _annotations(tags, settings, len(words))
        annotators.update(dict.fromkeys(name for name, _ in annotations))
        document, identity = (value_of(row, name) for name in ("document", "id"))
        document = str(number) if document in (None, "") else str(document)
        rows.append(TaggedSentence.of(words, annotations, place, document, "" if identity is None else str(identity)))
    notes = list(table.notes)
    if mended:
        notes.append(f"{path}: {mended:,} sentences held unpaired surrogates, which are now U+FFFD")
    return TagFile(rows, notes, () if list(annotators) == [SINGLE] else tuple(annotators))


def _words(cell: TableCell) -> tuple[str, ...]:
    if not isinstance(cell.value, list):
        raise cell.error("is no list; write the words as a list of texts")
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
    for i, tag in enumerate(cell.value, 1):
        if tag is not None and not isinstance(tag, str):
            raise InputError(
                f"{cell.place}: tag {i} is {short(tag)}; write names such as B-PER, not their numbers (with datasets: "
                "features['ner_tags'].feature.names has them)"
            )
    return read_tags(cell.value, settings, lambda i: f"{cell.place}: tag {i + 1}")
