"""Tagged sentences in json lines, and in folders with a file for each worker and document.

Json lines: ``{"tokens": [...], "tags": [...]}``, or instead of tags ``"annotations": [{"annotator": "a", "tags":
[...]}, ...]``; null is no tag. "document" may name what a split must not cut apart.

Folders: ``WORKERS/WORKER/DOCUMENT.txt`` with lines ``word tag`` and blank lines between sentences. The words of a
document are those of ``ground_truth/DOCUMENT.txt`` beside WORKERS; without that folder, those that most of its files
have. A file with other words does not fit the others: it is dropped, and counted in the notes.
"""

import collections
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bert import surrogates
from bert.bio_tags import is_tag
from bert.errors import InputError
from tasks.files import json_tables
from tasks.files.cells import TableCell, short
from tasks.files.records import TableSettings, cell_of, check_column, comma_names, has_column, value_of
from tasks.files.text_lines import read_lines
from tasks.tagging.conll_columns import splitter
from tasks.tagging.tag_schemes import TagFile, TaggedSentence, TagSettings, check_tags

GROUND_TRUTH = "ground_truth"
SINGLE = "1"  # the annotator of tags that name none
Annotations = list[tuple[str, tuple[str | None, ...]]]  # (annotator, a tag or None for each word)


def read_tag_lines(path: str, settings: TagSettings, labelled: str) -> TagFile:
    """The sentences of json lines, or of a json list of objects."""
    read = json_tables.read_json if path.lower().removesuffix(".gz").endswith(".json") else json_tables.read_jsonl
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
        with_tags = tuple((name, tags) for name, tags in annotations if any(tag is not None for tag in tags))
        document, id = (
            "" if value is None else str(value) for value in (value_of(row, "document"), value_of(row, "id"))
        )
        rows.append(TaggedSentence(words, with_tags, place, document or str(number), id))
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
    tags = tuple(None if tag == settings.empty else tag for tag in cell.value)
    check_tags(tags, settings.scheme, lambda i: f"{cell.place}: tag {i + 1}")
    return tags


class _File(NamedTuple):
    """One file of a document; with a fault, (reason, place) of a line that is no `word tag`, it has no sentences."""

    path: pathlib.Path
    sentences: list[list[tuple[str, str, int]]]  # (word, tag, line)
    fault: tuple[str, str] | None

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word for sentence in self.sentences for word, _, _ in sentence)


def read_workers(path: str, settings: TagSettings, labelled: str) -> TagFile:
    """The sentences of all documents, by name of the document, with the tags of the workers whose files fit.

    Args:
      path: the folder of the workers' folders, or the one that holds it and ground_truth.
    """
    workers, truth = _folders(path)
    by_document: dict[str, dict[str, pathlib.Path]] = {name: {} for name in _names(truth)} if truth else {}
    dropped: dict[str, list[str]] = {}  # reason -> places of the files, in the order of their documents
    for worker in workers:
        for name in _names(worker):
            if truth and name not in by_document:
                dropped.setdefault(f"no such document in {GROUND_TRUTH}", []).append(str(worker / name))
            else:
                by_document.setdefault(name, {})[worker.name] = worker / name
    wants_truth = GROUND_TRUTH in comma_names(settings.annotators)
    read = splitter(settings.delimiter)
    rows: list[TaggedSentence] = []
    used = ties = 0
    for name in sorted(by_document):
        files = {worker: _read(file, read, settings) for worker, file in by_document[name].items()}
        true = _read(truth / name, read, settings) if truth else None
        if true and true.fault:
            raise InputError(f"{true.fault[1]}: {true.fault[0]}; mend the line")
        if not true:
            true, tied = _most_common(list(files.values()))
            ties += tied
        faults = {worker: _fault(file, true, bool(truth)) for worker, file in files.items()}
        for reason, place in filter(None, faults.values()):
            dropped.setdefault(reason, []).append(place)
        fitting = {worker: file for worker, file in files.items() if not faults[worker]}
        used += len(fitting)
        if truth and wants_truth:
            fitting[GROUND_TRUTH] = true
        rows += _tagged(pathlib.Path(name).stem, true, fitting if labelled != "no" else {}, settings)
    notes = [
        f"{path}: {used:,} files of {len(workers)} workers on {len(by_document):,} documents are used",
        *(f"dropped {len(places):,} files of workers: {why} (first {places[0]})" for why, places in dropped.items()),
    ]
    if ties:
        notes.append(f"{path}: in {ties:,} documents no words have most files; those of the first file were taken")
    return TagFile(rows, notes, (*(worker.name for worker in workers), *([GROUND_TRUTH] if truth else [])))


def _folders(path: str) -> tuple[list[pathlib.Path], pathlib.Path | None]:
    """(the workers' folders by name, the folder of the truth if there is one)."""
    folder = pathlib.Path(path)
    inner = _subfolders(folder)
    beside = [entry for entry in inner if entry.name != GROUND_TRUTH]
    truth = folder / GROUND_TRUTH
    if len(inner) == len(beside):
        truth = folder.resolve().parent / GROUND_TRUTH
    elif len(beside) == 1 and _subfolders(beside[0]):
        beside = _subfolders(beside[0])
    deeper = [worker.name for worker in beside if _subfolders(worker)]
    if deeper:
        raise InputError(f"{path}: holds folders of folders ({', '.join(deeper[:5])}); name one of them")
    if not beside:
        raise InputError(f"{path}: holds no folder for each worker; name the folder that does, or a file")
    return beside, truth if truth.is_dir() else None


def _subfolders(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _read(file: pathlib.Path, split: Callable[[str], list[str]], settings: TagSettings) -> _File:
    sentences: list[list[tuple[str, str, int]]] = [[]]
    for number, line in enumerate(read_lines(str(file), settings.encoding), 1):
        if not line.strip(" \t"):
            if sentences[-1]:
                sentences.append([])
            continue
        fields = split(line)
        if len(fields) != 2 or not fields[0]:
            what = "has a tag and no word" if len(fields) < 3 and is_tag(fields[-1]) else "is no word with its tag"
            return _File(file, [], (f"a line {what}", f"{file}:{number}"))
        sentences[-1].append((fields[0], fields[1], number))
    return _File(file, [sentence for sentence in sentences if sentence], None)


def _most_common(files: Sequence[_File]) -> tuple[_File, bool]:
    """(the first of the files whose words most have, whether others have as many)."""
    counts = collections.Counter(file.words for file in files if not file.fault)
    if not counts:
        return _File(files[0].path, [], None), False
    (words, most), *others = counts.most_common()
    return next(file for file in files if not file.fault and file.words == words), most in [n for _, n in others]


def _fault(file: _File, true: _File, is_truth: bool) -> tuple[str, str] | None:
    """(reason, place) why a worker's file cannot be laid beside the words of its document; None where it can."""
    if file.fault or (file.words and file.words == true.words):
        return file.fault
    reason = f"its words are not those of {GROUND_TRUTH if is_truth else 'most workers'}"
    lines = [line for sentence in file.sentences for _, _, line in sentence]
    for line, one, other in zip(lines, file.words, true.words, strict=False):
        if one != other:
            return reason, f"{file.path}:{line}, {short(one)} for {short(other)}"
    return reason, f"{file.path}, {len(file.words)} words for {len(true.words)}"


def _tagged(document: str, true: _File, files: Mapping[str, _File], settings: TagSettings) -> list[TaggedSentence]:
    """The sentences as the truth has them, each with the tags of all files."""
    flat = {name: [entry for sentence in file.sentences for entry in sentence] for name, file in files.items()}
    rows, begin = [], 0
    for sentence in true.sentences:
        end = begin + len(sentence)
        annotations = []
        for name, entries in flat.items():
            part, file = entries[begin:end], files[name].path
            tags = tuple(None if tag == settings.empty else tag for _, tag, _ in part)
            check_tags(tags, settings.scheme, lambda i: f"{file}:{part[i][2]}")  # noqa: B023
            if any(tag is not None for tag in tags):
                annotations.append((name, tags))
        words = tuple(word for word, _, _ in sentence)
        rows.append(TaggedSentence(words, tuple(annotations), f"{true.path}:{sentence[0][2]}", document))
        begin = end
    return rows
