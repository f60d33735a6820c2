"""Reads tagged sentences from folders with one file per worker and document.

``WORKERS/WORKER/DOCUMENT.txt`` holds lines ``word tag`` and blank lines between sentences. The words of a document are
those of ``ground_truth/DOCUMENT.txt`` next to WORKERS; without that folder, those of most of its files. A file with
other words is dropped, and counted in the notes.
"""

import collections
import itertools
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bert.bio_tags import is_tag
from bert.errors import InputError
from tasks.files.cells import short
from tasks.files.records import comma_names
from tasks.files.text_lines import read_lines
from tasks.tagging.conll_columns import is_document_start, splitter
from tasks.tagging.tag_schemes import TagFile, TaggedSentence, TagSettings, read_tags

GROUND_TRUTH = "ground_truth"


class _Word(NamedTuple):
    text: str
    tag: str
    line: int


class _WorkerFile(NamedTuple):
    """One file of a document; with a fault, (reason, place) of a line that is no `word tag`, it has no sentences.

    no_words: places of lines with -DOCSTART- and of comments, which are left out.
    """

    path: pathlib.Path
    sentences: list[list[_Word]]
    fault: tuple[str, str] | None = None
    no_words: tuple[str, ...] = ()

    @property
    def flat(self) -> list[_Word]:
        return list(itertools.chain.from_iterable(self.sentences))

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.flat)


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
    no_words: list[str] = []
    for name in sorted(by_document):
        files = {worker: _read(file, read, settings) for worker, file in by_document[name].items()}
        true = _read(truth / name, read, settings) if truth else None
        if true and true.fault:
            raise InputError(f"{true.fault[1]}: {true.fault[0]}; mend the line")
        if not true:
            true, tied = _most_common(list(files.values()))
            ties += tied
        no_words += [place for file in files.values() for place in file.no_words]
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
    if no_words:
        notes.append(f"{path}: {len(no_words):,} comments and -DOCSTART- lines are left out (first {no_words[0]})")
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


def _read(file: pathlib.Path, split: Callable[[str], list[str]], settings: TagSettings) -> _WorkerFile:
    words: list[_Word | None] = []  # None of a blank line
    no_words = []
    for number, line in enumerate(read_lines(str(file), settings.encoding), 1):
        if not line.strip(" \t"):
            words.append(None)
            continue
        fields = split(line)
        if is_document_start(line, fields) or (fields[0] == "#" and len(fields) != 2):
            words += [None] * is_document_start(line, fields)
            no_words.append(f"{file}:{number}")
            continue
        if len(fields) != 2 or not fields[0]:
            what = "has a tag and no word" if len(fields) < 3 and is_tag(fields[-1]) else "is no word with its tag"
            return _WorkerFile(file, [], (f"a line {what}", f"{file}:{number}"))
        words.append(_Word(fields[0], fields[1], number))
    sentences = [[word for word in group if word] for _, group in itertools.groupby(words, key=bool)]
    return _WorkerFile(file, [sentence for sentence in sentences if sentence], None, tuple(no_words))


def _most_common(files: Sequence[_WorkerFile]) -> tuple[_WorkerFile, bool]:
    """(the first of the files whose words most have, whether others have as many)."""
    right = [file for file in files if not file.fault]
    if not right:
        return _WorkerFile(files[0].path, []), False
    counts = collections.Counter(file.words for file in right)
    most = max(counts.values())
    first = next(file for file in right if counts[file.words] == most)
    return first, list(counts.values()).count(most) > 1


def _fault(file: _WorkerFile, true: _WorkerFile, is_truth: bool) -> tuple[str, str] | None:
    """(reason, place) why a worker's file does not fit the words of its document; None where it does."""
    words, true_words = file.words, true.words
    if file.fault or (words and words == true_words):
        return file.fault
    reason = f"its words are not those of {GROUND_TRUTH if is_truth else 'most workers'}"
    for word, true_word in zip(file.flat, true_words, strict=False):
        if word.text != true_word:
            return reason, f"{file.path}:{word.line}, {short(word.text)} for {short(true_word)}"
    return reason, f"{file.path}, {len(words)} words for {len(true_words)}"


def _tagged(
    document: str, true: _WorkerFile, files: Mapping[str, _WorkerFile], settings: TagSettings
) -> list[TaggedSentence]:
    """The sentences as the truth has them, each with the tags of all files."""
    words_of = {name: iter(file.flat) for name, file in files.items()}

    def tags(name: str, count: int) -> tuple[str | None, ...]:
        words = list(itertools.islice(words_of[name], count))
        places = lambda i: f"{files[name].path}:{words[i].line}"  # noqa: E731
        return read_tags([word.tag for word in words], settings, places)

    rows = []
    for sentence in true.sentences:
        annotations = [(name, tags(name, len(sentence))) for name in files]
        words = tuple(word.text for word in sentence)
        rows.append(TaggedSentence.of(words, annotations, f"{true.path}:{sentence[0].line}", document))
    return rows
