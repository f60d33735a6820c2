"""Reads tagged sentences in any format: columns (CoNLL, one or many annotators), CoNLL-U, tables, folders of workers,
exports of annotation tools.

Which sentences are kept: for training and scoring, sentences with a word and a tag; for prediction, all sentences in
their order. Dropped sentences are counted by reason.

Not here: tags and types (tag_schemes.py); the formats (conll_columns.py, conllu.py, tag_tables.py, worker_folders.py,
tagged_texts.py).
"""

import collections
import dataclasses
from collections.abc import Hashable, Sequence

import numpy as np

from bert.corpus.corpus_files import saved_data_set
from bert.errors import InputError, check_choice, listed
from tasks.annotations.tools import TOOLS, tool_of
from tasks.files import annotators
from tasks.files.cells import short
from tasks.files.equal_texts import first_of_equal, key_of
from tasks.files.records import comma_names
from tasks.files.reports import ReadReport, Tally, check_labelled, kept_rows, none_left
from tasks.files.splits import check_share
from tasks.files.tables import check_path, ending_to_read, unreadable
from tasks.tagging.conll_columns import read_columns
from tasks.tagging.conllu import is_conllu, read_conllu
from tasks.tagging.tag_schemes import (
    LETTERS,
    TaggedRows,
    TaggedSentence,
    TagSettings,
    check_types,
    detect_scheme,
    letters_of,
    to_iob2,
)
from tasks.tagging.tag_tables import is_tag_table, read_tag_lines, read_tag_table
from tasks.tagging.tagged_texts import read_tagged_texts
from tasks.tagging.worker_folders import read_workers

_MAY_BE_MISSING = (None, "_", "-", "?")  # what files write where there is no tag
READERS = {
    "columns": read_columns,
    "conllu": read_conllu,
    "lines": read_tag_lines,
    "table": read_tag_table,
    "workers": read_workers,
    **dict.fromkeys(TOOLS, read_tagged_texts),
}


def read_tagged(path: str, settings: TagSettings | None = None, *, labelled: str) -> TaggedRows:
    """The sentences of a file or of a folder of workers, with tags in IOB2 (as they are, if the scheme is plain).

    Args:
      labelled: "needed"; "if there"; "no": tags are not read.

    Raises:
      InputError: what the readers raise, an annotator that is not there, tags with and without types, or no row left.
    """
    settings = settings or TagSettings()
    check_labelled(labelled)
    path = str(path)
    settings = dataclasses.replace(settings, format=_format(path, settings))
    try:
        file = READERS[settings.format](path, settings, labelled)
    except PermissionError:
        raise unreadable(path) from None
    if not file.rows:
        raise InputError(f"{path}: no sentences; is it the right file?")
    rows, notes = file.rows, list(file.notes)
    if labelled != "no":
        notes += _unnamed(path, rows, settings)
        if settings.scheme != "plain":  # of the whole file, whoever of its annotators is kept
            check_types(rows)
            rows = _in_iob2(path, rows, settings.scheme, notes)
        if file.annotators and settings.annotators:
            choice = _choice(path, settings.annotators, file.annotators)
            rows = [row._replace(annotations=tuple(a for a in row.annotations if a[0] in choice)) for row in rows]
        elif settings.annotators:
            notes.append(f"{path}: its tags name no annotators; annotators {settings.annotators} is unused")
    reasons = {"no words": [not row.words for row in rows], "no tags": [not row.annotations for row in rows]}
    notes += _missing(path, rows)
    drop = reasons if labelled == "needed" else ()
    some_tags = labelled == "if there" and not all(reasons["no tags"])
    mention = ("no words", "no tags") if some_tags else ("no words",)
    used, dropped = kept_rows("sentences", [row.place for row in rows], reasons, drop, mention, notes)
    if not used:
        hints = [note.removeprefix(f"{path}: ") for note in file.notes[:3]] if settings.format in TOOLS else []
        raise none_left(path, "sentences", len(rows), dropped, "; ".join([*hints, "are words and tags right?"]))
    report = ReadReport(path, len(rows), len(used), dropped, tuple(notes))
    return TaggedRows([rows[i] for i in used], report)


def split(rows: TaggedRows, share: float, seed: int, *, equal_apart: bool = False) -> tuple[TaggedRows, TaggedRows]:
    """(train, validation): whole documents split off at random, about a share of the sentences, in their order.

    A pure function of its arguments. Each part has at least one document; a single one is split by sentences. Documents
    with equal sentences (see equal_texts.py) from beginning to end, and equal sentences of a single document, stay in
    one part, if there are others.

    Args:
      equal_apart: see `tasks.job.as_begun`; equal ones may be in both parts then.
    """
    check_share(share)
    documents = [row.document for row in rows.rows]
    if len(set(documents)) == 1:
        documents = [row.place for row in rows.rows]
    before = len(set(documents))
    if before < 2:
        raise InputError(
            f"{rows.report.source}: only one sentence can be used, which is not split; name a validation file "
            f"({'; '.join(str(rows.report).splitlines())})"
        )
    together = documents if equal_apart else _first_of_equal(documents, rows.rows)
    if len(set(together)) > 1:  # else how many sentences are in both parts is in the job's report
        documents = together
    names, document_N, sizes = np.unique(documents, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    taken = np.cumsum(sizes[order])[:-1]  # sentences in the first 1, 2, ... documents, all but the last
    count = int(np.abs(taken - share * len(rows.rows)).argmin()) + 1
    same = before - len(names)
    note = f"{same:,} of {before:,} documents or sentences equal an earlier one; equal ones stay in one part"
    notes = [note] * bool(same)
    return rows.divided(np.isin(document_N, order[:count]), share, seed, notes)


def _first_of_equal(documents: Sequence[str], rows: Sequence[TaggedSentence]) -> list[str]:
    """For each sentence the name of its document, or of the first one that holds the same sentences."""
    sentences: dict[str, list[Hashable]] = {}
    for name, row in zip(documents, rows, strict=True):
        sentences.setdefault(name, []).append(key_of([" ".join(row.words)]))
    names = list(sentences)
    first = first_of_equal(map(tuple, sentences.values()))
    same = {name: names[i] for name, i in zip(names, first, strict=True)}
    return [same[name] for name in documents]


def _format(path: str, settings: TagSettings) -> str:
    check_choice("format", settings.format, ("auto", *READERS))
    file = check_path(path)
    if settings.format in ("auto", "table") and saved_data_set(file):
        return "table"
    if settings.format in TOOLS:
        return settings.format
    if settings.format == "auto" and settings.words == "0" and (tool := tool_of(path, settings.encoding)):
        return tool
    if file.is_dir() or settings.format == "workers":
        if not file.is_dir() or settings.format not in ("auto", "workers"):
            kind = "a folder" if file.is_dir() else "no folder"
            raise InputError(f"{path}: is {kind}, but format is {settings.format}; name another, or set format to auto")
        return "workers"
    if settings.format != "auto":
        return settings.format
    ending = ending_to_read(file, " as tagged sentences")
    if ending in (".jsonl", ".ndjson", ".json"):
        return "lines"
    if ending in (".parquet", ".arrow") or is_tag_table(path, settings):
        return "table"
    return "conllu" if is_conllu(path, settings) else "columns"


def _missing(path: str, rows: Sequence[TaggedSentence]) -> list[str]:
    """The notes on words without a tag whose annotator gave others of the sentence one, and on plain tags like "_"."""
    tally = Tally()
    for row in rows:
        counts = collections.Counter(tag for _, tags in row.annotations for tag in tags if tag in _MAY_BE_MISSING)
        for tag, count in counts.items():
            what = f"tags are {tag!r}; set empty to {tag!r} if that means none"
            what = what if tag else "words have no tag, beside others of their sentence"
            tally.add(what, row.place, count)
    return [f"{path}: {count:,} {what} (first {first})" for what, (count, first) in tally.counts.items()]


def _unnamed(path: str, rows: Sequence[TaggedSentence], settings: TagSettings) -> list[str]:
    """The note on a tag that has a name in the file and is none of `tag_names`, which has no effect on it."""
    if not settings.tag_names:
        return []
    names = {None, *comma_names(settings.tag_names)}
    others = [(row.place, tag) for row in rows for _, tags in row.annotations for tag in tags if tag not in names]
    note = "is none of tag_names, which are for tags that are numbers"
    return [f"{path}: {short(tag)} {note} (first {place})" for place, tag in others[:1]]


def _choice(path: str, setting: str, known: Sequence[str]) -> annotators.AnnotatorChoice:
    """The annotators that a setting keeps, all of which must be known."""
    choice = annotators.choice_of(setting)
    for name in sorted(choice.names - set(known)):
        raise InputError(f"{path}: no annotator {short(name)}; they are {listed(known)}; set annotators")
    return choice


def _in_iob2(path: str, rows: list[TaggedSentence], scheme: str, notes: list[str]) -> list[TaggedSentence]:
    letters = letters_of(rows)
    has_ends = not set(letters) <= set(LETTERS["iob2"])
    if scheme == "auto":
        if letters and not set(letters) & set(LETTERS["iob2"]):
            what = f"tags begin with {', '.join(letters)} alone"
            raise InputError(f"{path}: {what}, with neither B, I nor O; set scheme to plain, or name it (bioes)")
        fitting = (name for name, known in LETTERS.items() if set(letters) <= set(known))
        scheme = next(fitting, "bioes") if has_ends else detect_scheme(rows)
        if scheme == "iob1":
            notes.append(f"{path}: the scheme is IOB1 (entities begin with I); tags are turned into IOB2")
    if has_ends:
        notes.append(f"{path}: tags begin with {', '.join(letters)} ({scheme.upper()}); they are turned into IOB2")
    faults, first, mended = 0, "", []
    for row in rows:
        annotations = []
        for name, tags in row.annotations:
            tags, count = to_iob2(tags, scheme, letters)
            annotations.append((name, tags))
            first = first or row.place * bool(count)
            faults += count
        mended.append(row._replace(annotations=tuple(annotations)))
    if faults and scheme == "iob2":
        notes.append(f"{path}: {faults:,} tags I that continue no entity of their type became B (first {first})")
    elif faults:
        rule = "an entity begins at a tag that continues none of its type, and ends where the next does not continue it"
        notes.append(f"{path}: {faults:,} words break the scheme {scheme.upper()} (first {first}): {rule}")
    return mended
