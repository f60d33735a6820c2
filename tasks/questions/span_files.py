"""Reads questions with any number of spans per annotator: MultiSpanQA, PICO, and our own json lines.

lines: an object a line (or a list of them):
  {"id": "q1", "question": "Who?", "context": "Ann and Bo.", "document": "d1",
   "annotations": [{"annotator": "w1", "spans": [[0, 3], [8, 10]]}, {"annotator": "w2", "spans": []}]}
  Spans are [start, end) in code points. A missing id becomes the number of the row, a missing annotator its position in
  the list. Without document, questions on the same passage have the same document. Without annotations, the question is
  not annotated.
multispanqa: question and context are lists of words, joined here by single blanks; label has B, I or O for each word.
  Source: github.com/haonan-li/MultiSpanQA.
pico: {"Participants": {WORKER: [[start, end], ...]}, "docid": "123"} a line, and 123.txt in a folder of documents. Each
  key is a question of its own, with the id DOCID/KEY. Source: github.com/yinfeiy/PICO-data.

Spans that are outside the passage, reversed, empty or blank are dropped, never clipped; an annotator without other
spans is left out. Overlapping spans of one annotator are joined. The report counts all of these. Golds are the texts of
the remaining spans; for MultiSpanQA, those of all tagged words, as in its scorer.
"""

import itertools
import pathlib
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bert import bio_tags
from bert.errors import InputError, listed
from tasks.annotations.marks import fault_of
from tasks.files.annotators import SINGLE
from tasks.files.cells import TableCell, short
from tasks.files.records import Table, cell_of
from tasks.files.reports import Tally
from tasks.files.text_lines import decoded
from tasks.questions.question_rows import (
    NO_DOCUMENT,
    Annotation,
    Gold,
    Question,
    QuestionFields,
    QuestionSettings,
    Spans,
    id_of,
    list_of,
    name_of,
    object_of,
)

NO_SPANS = "none of its annotators has a right span"
_LINE_FIELDS = ("id", "question", "context", "document", "annotations")
_ANNOTATION = "{'annotator': ..., 'spans': [[start, end], ...]}"


def read_span_lines(table: Table, fields: QuestionFields) -> Iterator[Question]:
    """The questions of our own json lines."""
    for number, (row, place) in enumerate(zip(table.rows, table.places, strict=True), 1):
        for name in row:
            if name not in _LINE_FIELDS and row[name] is not None:
                fields.tally.add(f"field {short(name)}, which is not read", place)
        context = fields.text(row, place, "context")
        question = fields.question(row.get("question"), place)
        marked = cell_of(row, place, "annotations")
        by_annotator = _by_annotator(marked, place) if fields.annotated and marked.value is not None else ()
        annotations, lost = annotations_of(by_annotator, context, place, fields.tally)
        identity = name_of(cell_of(row, place, "id")) or str(number)
        group = name_of(cell_of(row, place, "document"))
        yield Question(identity, question, context, annotations, place, group, golds_of(annotations, context), lost)


def read_multispanqa(table: Table, fields: QuestionFields) -> Iterator[Question]:
    """The questions of a MultiSpanQA file, each with one annotator."""
    for row, place in zip(table.rows, table.places, strict=True):
        identity = id_of(cell_of(row, place, "id"))
        words = fields.texts(cell_of(row, place, "context"))
        text = row.get("question")
        if isinstance(text, list):
            text = " ".join(fields.texts(cell_of(row, place, "question")))
        question = fields.question(text, place)
        context = " ".join(words)
        tags = cell_of(row, place, "label")
        has_tags = fields.annotated and tags.value is not None
        spans = [(SINGLE, _tagged_spans(tags, words, place, fields.tally))] if has_tags else []
        annotations, lost = annotations_of(spans, context, place, fields.tally)
        golds = golds_of(spans, context)  # also of spans that are left out, as its scorer has them
        yield Question(identity, question, context, annotations, place, "", golds, lost)


def read_pico(table: Table, fields: QuestionFields) -> Iterator[Question]:
    """The questions of a PICO file, one for each key of a line (all keys of the file, where a line has none)."""
    settings = fields.settings
    if not settings.documents:
        raise InputError(f"{table.path}: pico files need their texts; set documents to the folder with DOCID.txt")
    lines = list(zip(table.rows, table.places, strict=True))
    ids = [id_of(cell_of(row, place, "docid")) for row, place in lines]
    keys = [_keys(row, place, fields.tally) for row, place in lines]
    known = list(dict.fromkeys(itertools.chain.from_iterable(keys)))
    if settings.question and len(known) > 1:
        raise InputError(f"{table.path}: has the keys {listed(known, 5)}; leave question empty, each is asked by name")
    if not settings.question and not known:
        raise InputError(f"{table.places[0]}: has no key such as Participants; set question to what is asked")
    texts = _documents(settings, set(ids), fields.tally)
    for (row, place), document, own_keys in zip(lines, ids, keys, strict=True):
        for key in own_keys or known or [""]:
            context = texts.get(document, "")
            is_marked = fields.annotated and key in own_keys and document in texts
            marked = row[key].items() if is_marked else ()
            annotations, lost = annotations_of(marked, context, f"{place}: {key}", fields.tally)
            lost = lost if document in texts else NO_DOCUMENT
            identity, golds = f"{document}/{key}" if key else document, golds_of(annotations, context)
            yield Question(identity, settings.question or key, context, annotations, place, document, golds, lost)


def _keys(row: Mapping[str, Any], place: str, tally: Tally) -> list[str]:
    """What is marked in a document."""
    for name, value in row.items():
        if isinstance(value, list):
            raise InputError(f"{place}: {name} is a list; it must be like {{WORKER: [[start, end], ...]}}")
        if name != "docid" and value is not None and not isinstance(value, Mapping):
            tally.add(f"field {short(name)}, which is not read", place)
    return [name for name, value in row.items() if isinstance(value, Mapping)]


def _by_annotator(cell: TableCell, place: str) -> Iterator[tuple[str, Any]]:
    """(annotator, spans as they are) of each annotation of our own lines."""
    for i, annotation in enumerate(list_of(cell, f"objects like {_ANNOTATION}"), 1):
        where = f"{place}: annotation {i}"
        annotation = object_of(TableCell(where, annotation), _ANNOTATION)
        yield name_of(cell_of(annotation, where, "annotator")).strip() or str(i), annotation.get("spans")


def annotations_of(
    marked: Iterable[tuple[str, Any]], context: str, place: str, tally: Tally
) -> tuple[tuple[Annotation, ...], str]:
    """The annotations of a question, without annotators that have no right span, and why some are missing, if any are.

    Args:
      marked: (annotator, spans as they are), none where it is not annotated.
    """
    annotations: dict[str, Annotation | None] = {}
    for annotator, value in marked:
        name = annotator.strip()
        where = f"{place}: annotator {name}"
        if name in annotations:
            raise InputError(f"{where}: stands twice; put his spans together, or name each annotator")
        spans = list_of(TableCell(f"{where}: spans", value), "[start, end]")
        right = _right_spans(spans, context, where, tally)
        annotations[name] = Annotation(name, _merged(right, where, tally)) if right or not spans else None
        if annotations[name] is None:
            tally.add("annotators without a right span, left out", where)
    lost = NO_SPANS if None in annotations.values() else ""
    return tuple(annotation for annotation in annotations.values() if annotation), lost


def golds_of(marked: Iterable[tuple[str, Iterable[Any]]], context: str) -> tuple[Gold, ...]:
    """The texts of (annotator, spans)."""
    return tuple(Gold(name, tuple(context[start:end] for start, end in spans)) for name, spans in marked)


def _right_spans(values: list[Any], context: str, place: str, tally: Tally) -> list[tuple[int, int]]:
    right = []
    for span in values:
        if not isinstance(span, list) or len(span) != 2 or any(type(bound) is not int for bound in span):
            raise TableCell(f"{place}: span", span).error("must be [start, end], two whole numbers; leave out the rest")
        start, end = span
        fault = fault_of(start, end, context)
        if fault:
            tally.add(fault, place)
        else:
            right.append((start, end))
    return right


def _merged(spans: list[tuple[int, int]], where: str, tally: Tally) -> Spans:
    """Spans in ascending order; those that overlap are one, those that touch stay two."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            tally.add("spans that overlap another of the same annotator, made one with it", where)
        else:
            merged.append((start, end))
    return tuple(merged)


def _tagged_spans(cell: TableCell, words: list[str], place: str, tally: Tally) -> list[list[int]]:
    """[start, end) of each span in the words joined by blanks. An I that no span goes before starts one."""
    tags = list_of(cell, "B, I or O, one a word")
    if len(tags) != len(words):
        raise InputError(f"{place}: {len(tags)} tags in label but {len(words)} words in context; each word needs one")
    for i, tag in enumerate(tags, 1):
        if tag not in ("B", "I", "O"):
            raise TableCell(f"{place}: label {i}", tag).error("must be B, I or O; correct it")
    for before, tag in itertools.pairwise(["O", *tags]):
        if tag == "I" and bio_tags.begins(before, tag):
            tally.add("tags I after O, each read as B", place)
    starts = [0, *itertools.accumulate(len(word) + 1 for word in words)]
    return [[starts[first], starts[stop] - 1] for _, first, stop in bio_tags.spans(tags)]


def _documents(settings: QuestionSettings, wanted: set[str], tally: Tally) -> dict[str, str]:
    """The texts of the wanted documents that are there, by their ids; line ends as they are, for offsets count them."""
    texts: dict[str, str] = {}
    places: dict[str, pathlib.Path] = {}
    for place, data in _contents(pathlib.Path(settings.documents), wanted):
        if place.stem in texts:
            raise InputError(f"{place}: there is also {places[place.stem]}; name the folder with the right one")
        text = decoded(place, data, settings.encoding)
        if text.startswith("\ufeff"):
            tally.add("documents with a byte order mark, which counts as their first character", str(place))
        texts[place.stem], places[place.stem] = text, place
    return texts


def _contents(documents: pathlib.Path, wanted: set[str]) -> Iterator[tuple[pathlib.Path, bytes]]:
    """(path, bytes) of the .txt files of a folder or archive whose names without the ending are wanted."""
    if documents.is_dir():
        for file in sorted(documents.rglob("*.txt")):
            if file.stem in wanted and file.is_file():
                yield file, file.read_bytes()
        return
    if not documents.exists():
        raise InputError(f"{documents}: no such folder or archive; set documents to the folder with DOCID.txt")
    try:
        with tarfile.open(documents, "r:*") as archive:
            for member in archive:
                name = pathlib.PurePosixPath(member.name)
                if name.suffix == ".txt" and name.stem in wanted and member.isfile():
                    content = archive.extractfile(member)
                    assert content is not None
                    yield documents / name, content.read()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"{documents}: cannot be read as a .tar.gz ({reason}); name the folder of documents") from None
