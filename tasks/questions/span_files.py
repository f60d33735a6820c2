"""Files of questions in which annotators marked any number of spans: MultiSpanQA, PICO, and our own json lines.

lines: an object a line (or a list of them):
  {"id": "q1", "question": "Who?", "context": "Ann and Bo.", "document": "d1",
   "annotations": [{"annotator": "w1", "spans": [[0, 3], [8, 10]]}, {"annotator": "w2", "spans": []}]}
  Spans are [start, end) in code points. Without id it is the row's number; without annotator his position; without
  document, questions on the same passage are of one document; without annotations the question is not annotated.
multispanqa: question and context are lists of words, joined here by single blanks; label has a B, I or O a word.
  Source: github.com/haonan-li/MultiSpanQA.
pico: {"Participants": {WORKER: [[start, end], ...]}, "docid": "123"} a line, and 123.txt in a folder of documents. Each
  key is a question of its own, with the id DOCID/KEY. Source: github.com/yinfeiy/PICO-data.

Spans outside of the passage, reversed, empty or of blanks alone are dropped, never clipped; an annotator who has no
other is left out. Spans of one annotator that overlap become one. All of it is counted. Golds are the texts of the
spans that are left; of MultiSpanQA those of all tagged words, as its scorer has them.
"""

import itertools
import pathlib
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bert import bio_tags
from bert.corpus import text_files
from bert.errors import InputError, listed
from tasks.files.records import Table, short
from tasks.questions.question_rows import (
    NO_DOCUMENT,
    Annotation,
    Found,
    Gold,
    Question,
    QuestionSettings,
    Spans,
    Tally,
    id_of,
    list_of,
    name_of,
    object_of,
    question_of,
    text_of,
)

NO_SPANS = "none of its annotators has a right span"
_LINE_FIELDS = ("id", "question", "context", "document", "annotations")
_ANNOTATION = "{'annotator': ..., 'spans': [[start, end], ...]}"
Annotated = tuple[tuple[Annotation, ...], str]  # of a question; and why some are missing, where they are


def read_span_lines(table: Table, settings: QuestionSettings, tally: Tally, annotated: bool) -> Found:
    """The questions of our own json lines; ``annotated``: whether annotations are read."""
    for number, (row, place) in enumerate(zip(table.rows, table.places, strict=True), 1):
        for name in row:
            if name not in _LINE_FIELDS and row[name] is not None:
                tally.add(f"field {short(name)}, which is not read", place)
        context = text_of(row.get("context"), f"{place}: context", tally)
        asked = question_of(row.get("question"), place, settings, tally)
        given = row.get("annotations") if annotated else None
        found = () if given is None else _by_annotator(given, place)
        annotations, lost = _annotations(found, context, place, tally)
        identity = name_of(row.get("id"), f"{place}: id") or str(number)
        group = name_of(row.get("document"), f"{place}: document")
        yield Question(identity, asked, context, annotations, place, group, _texts(annotations, context), lost)


def read_multispanqa(table: Table, settings: QuestionSettings, tally: Tally, annotated: bool) -> Found:
    """The questions of a MultiSpanQA file, each with its one annotator "1"; arguments and errors as above."""
    for row, place in zip(table.rows, table.places, strict=True):
        identity = id_of(row.get("id"), f"{place}: id")
        words = _words(row.get("context"), f"{place}: context", tally)
        asked = row.get("question")
        if isinstance(asked, list):
            asked = " ".join(_words(asked, f"{place}: question", tally))
        asked = question_of(asked, place, settings, tally)
        context = " ".join(words)
        tags = row.get("label") if annotated else None
        found = [] if tags is None else [("1", _tagged_spans(tags, words, place, tally))]
        annotations, lost = _annotations(found, context, place, tally)
        golds = tuple(Gold(name, tuple(context[a:b] for a, b in spans)) for name, spans in found)
        yield Question(identity, asked, context, annotations, place, "", golds, lost)


def read_pico(table: Table, settings: QuestionSettings, tally: Tally, annotated: bool) -> Found:
    """The questions of a PICO file, one for each key of a line (all keys of the file, where a line has none)."""
    if not settings.documents:
        raise InputError(f"{table.path}: pico files need their texts; set documents to the folder with DOCID.txt")
    ids = [id_of(row.get("docid"), f"{place}: docid") for row, place in zip(table.rows, table.places, strict=True)]
    keys = [_keys(row, place, tally) for row, place in zip(table.rows, table.places, strict=True)]
    known = list(dict.fromkeys(key for some in keys for key in some))
    if settings.question and len(known) > 1:
        raise InputError(
            f"{table.path}: has the keys {listed(known, 5)}; leave question empty, each is asked for by name"
        )
    if not settings.question and not known:
        raise InputError(f"{table.places[0]}: has no key such as Participants; set question to what is asked")
    texts = _documents(settings, set(ids), tally)
    for row, place, document, some in zip(table.rows, table.places, ids, keys, strict=True):
        for key in some or known or [""]:
            context = texts.get(document, "")
            given = row[key].items() if annotated and key in some and document in texts else ()
            annotations, lost = _annotations(given, context, f"{place}: {key}", tally)
            lost = lost if document in texts else NO_DOCUMENT
            identity, golds = f"{document}/{key}" if key else document, _texts(annotations, context)
            yield Question(identity, settings.question or key, context, annotations, place, document, golds, lost)


def _keys(row: Mapping[str, Any], place: str, tally: Tally) -> list[str]:
    """What is marked in a document."""
    for name, value in row.items():
        if isinstance(value, list):
            raise InputError(f"{place}: {name} is a list; it must be like {{WORKER: [[start, end], ...]}}")
        if name != "docid" and value is not None and not isinstance(value, Mapping):
            tally.add(f"field {short(name)}, which is not read", place)
    return [name for name, value in row.items() if isinstance(value, Mapping)]


def _by_annotator(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """(annotator, spans as they are) of each annotation of our own lines."""
    for i, annotation in enumerate(list_of(value, f"{place}: annotations", f"objects like {_ANNOTATION}"), 1):
        where = f"{place}: annotation {i}"
        annotation = object_of(annotation, where, _ANNOTATION)
        yield name_of(annotation.get("annotator"), f"{where}: annotator").strip() or str(i), annotation.get("spans")


def _annotations(marked: Iterable[tuple[str, Any]], context: str, place: str, tally: Tally) -> Annotated:
    """The annotations of a question; found: (annotator, spans as they are), none where it is not annotated."""
    annotations: dict[str, Annotation] = {}
    lost = ""
    seen = set()
    for annotator, value in marked:
        name = annotator.strip()
        where = f"{place}: annotator {name}"
        if name in seen:
            raise InputError(f"{where}: stands twice; put his spans together, or name each annotator")
        seen.add(name)
        spans = list_of(value, f"{where}: spans", "[start, end]")
        right = _right_spans(spans, context, where, tally)
        if spans and not right:
            tally.add("annotators without a right span, left out", where)
            lost = NO_SPANS
        else:
            annotations[name] = Annotation(name, _merged(right, where, tally))
    return tuple(annotations.values()), lost


def _texts(annotations: Iterable[Annotation], context: str) -> tuple[Gold, ...]:
    return tuple(Gold(name, tuple(context[a:b] for a, b in spans)) for name, spans in annotations)


def _right_spans(values: list[Any], context: str, where: str, tally: Tally) -> list[tuple[int, int]]:
    right = []
    for span in values:
        if not isinstance(span, list) or len(span) != 2 or any(type(bound) is not int for bound in span):
            raise InputError(f"{where}: span {short(span)} must be [start, end], two whole numbers; leave out the rest")
        start, end = span
        if end < start:
            tally.add("spans that end before they start, dropped", where)
        elif start < 0 or end > len(context):
            tally.add("spans outside of the passage, dropped", where)
        elif start == end:
            tally.add("empty spans, dropped", where)
        elif not context[start:end].strip():
            tally.add("spans of blanks alone, dropped", where)
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


def _words(value: Any, where: str, tally: Tally) -> list[str]:
    return [text_of(word, f"{where}: word {i}", tally) for i, word in enumerate(list_of(value, where, "words"), 1)]


def _tagged_spans(value: Any, words: list[str], place: str, tally: Tally) -> list[list[int]]:
    """[start, end) of each span in the words joined by blanks. An I that no span goes before starts one."""
    tags = list_of(value, f"{place}: label", "B, I or O, one a word")
    if len(tags) != len(words):
        raise InputError(f"{place}: {len(tags)} tags in label but {len(words)} words in context; each word needs one")
    for i, tag in enumerate(tags, 1):
        if tag not in ("B", "I", "O"):
            raise InputError(f"{place}: label {i} is {short(tag)}; it must be B, I or O")
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
        # "-sig" would take off a byte order mark, and with it move all offsets.
        encoding = text_files.encoding_of(place, settings.encoding).removesuffix("-sig")
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise text_files.NotInEncoding(place, encoding, error.start, line, data[error.start]) from None
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
