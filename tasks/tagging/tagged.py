"""Tagged sentences of any kind that is read: columns (CoNLL, one or many annotators), json lines, folders of workers.

Which sentences are kept. Where tags are needed, to train or to score: those with a word and with a tag; the others are
counted by reason. Else all of them, in their order, for each must get its prediction.

Not here: what a tag is, and the types (tag_schemes.py); the formats (conll_columns.py, tag_files.py).
"""

from collections.abc import Hashable, Sequence

import numpy as np

from bert.errors import InputError, listed
from tasks.files import annotators
from tasks.files.annotators import Kept
from tasks.files.equal_texts import first_of_equal, key_of
from tasks.files.examples import ReadReport, check_labelled, check_share, parts_of
from tasks.files.records import check_path, ending_of, short
from tasks.files.tables import OTHER_FORMATS
from tasks.tagging.conll_columns import read_columns
from tasks.tagging.tag_files import read_tag_lines, read_workers
from tasks.tagging.tag_schemes import Tagged, TaggedRows, TagSettings, check_types, detect_scheme, to_iob2

READERS = {"columns": read_columns, "lines": read_tag_lines, "workers": read_workers}


def read_tagged(path: str, settings: TagSettings | None = None, *, labelled: str) -> TaggedRows:
    """The sentences of a file or of a folder of workers, with tags in IOB2 (as they are, if the scheme is plain).

    Args:
      labelled: "needed"; "if there"; "no": tags are not looked at.

    Raises:
      InputError: what the readers raise, an annotator that is not there, tags with and without types, or no row left.
    """
    settings = settings or TagSettings()
    check_labelled(labelled)
    path = str(path)
    kind = _format(path, settings)
    try:
        found = READERS[kind](path, settings, labelled)
    except PermissionError:
        raise InputError(f"{path}: may not be read by this user; change its permissions") from None
    if not found.rows:
        raise InputError(f"{path}: no sentences; is it the right file?")
    rows, notes = found.rows, list(found.notes)
    if labelled != "no":
        if settings.scheme != "plain":  # of the whole file, whoever of its annotators is kept
            check_types(rows)
            rows = _in_iob2(path, rows, settings.scheme, notes)
        if found.annotators and settings.annotators:
            kept = _chosen(path, settings.annotators, found.annotators)
            rows = [row._replace(annotations=tuple(a for a in row.annotations if a[0] in kept)) for row in rows]
        elif settings.annotators:
            notes.append(
                f"{path}: its tags have no annotators to choose from; annotators {settings.annotators} is unused"
            )
    return _kept(path, rows, labelled, notes)


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
    notes = [f"{same:,} of {before:,} documents or sentences equal an earlier one; equal ones stay in one part"] * bool(
        same
    )
    train, validation = parts_of(rows.report, np.isin(document_N, order[:count]), share, seed, notes)
    return (
        TaggedRows([rows.rows[i] for i in train.rows], train.report),
        TaggedRows([rows.rows[i] for i in validation.rows], validation.report),
    )


def _first_of_equal(documents: Sequence[str], rows: Sequence[Tagged]) -> list[str]:
    """For each sentence the name of its document, or of the first one that holds the same sentences."""
    sentences: dict[str, list[Hashable]] = {}
    for name, row in zip(documents, rows, strict=True):
        sentences.setdefault(name, []).append(key_of([" ".join(row.words)]))
    names = list(sentences)
    first = first_of_equal(map(tuple, sentences.values()))
    same = {name: names[i] for name, i in zip(names, first, strict=True)}
    return [same[name] for name in documents]


def _format(path: str, settings: TagSettings) -> str:
    found = check_path(path)
    if found.is_dir() or settings.format == "workers":
        if not found.is_dir() or settings.format not in ("auto", "workers"):
            kind = "a folder" if found.is_dir() else "no folder"
            raise InputError(
                f"{path}: is {kind}, but format is {settings.format}; name another path, or set format to auto"
            )
        return "workers"
    if settings.format != "auto":
        return settings.format
    ending = ending_of(found)
    if ending in (".parquet", ".arrow"):
        raise InputError(f"{path}: {ending} files are not read as tagged sentences; write it as jsonl first")
    if ending in OTHER_FORMATS:
        raise InputError(f"{path}: {ending} files are not read; {OTHER_FORMATS[ending]}")
    return "lines" if ending in (".jsonl", ".ndjson", ".json") else "columns"


def _chosen(path: str, setting: str, known: Sequence[str]) -> Kept:
    """The annotators that a setting keeps, all of which must be known."""
    chosen = annotators.kept(setting)
    for name in sorted(chosen.names - set(known)):
        raise InputError(
            f"{path}: no annotator {short(name)}; they are {listed(known)}; set annotators to some of them"
        )
    return chosen


def _in_iob2(path: str, rows: list[Tagged], scheme: str, notes: list[str]) -> list[Tagged]:
    scheme_found = detect_scheme(rows) if scheme == "auto" else scheme
    strays, first, mended = 0, "", []
    for row in rows:
        annotations = []
        for name, tags in row.annotations:
            tags, count = to_iob2(tags, scheme_found)
            annotations.append((name, tags))
            first = first or row.place * bool(count)
            strays += count
        mended.append(row._replace(annotations=tuple(annotations)))
    if scheme == "auto" and scheme_found == "iob1":
        notes.append(f"{path}: the scheme is IOB1 (entities begin with I); tags are turned into IOB2")
    if strays:
        notes.append(f"{path}: {strays:,} tags I that continue no entity of their type became B (first {first})")
    return mended


def _kept(path: str, rows: list[Tagged], labelled: str, notes: list[str]) -> TaggedRows:
    """The rows to use, with the report."""
    reasons = {"no words": [not row.words for row in rows], "no tags": [not row.annotations for row in rows]}
    keep = [True] * len(rows)
    dropped = {}
    for reason, is_so in reasons.items():
        found = [i for i in range(len(rows)) if keep[i] and is_so[i]]
        if not found:
            continue
        if labelled == "needed":
            dropped[reason] = (len(found), rows[found[0]].place)
            for i in found:
                keep[i] = False
        elif reason == "no words" or (labelled == "if there" and len(found) < len(rows)):
            notes.append(f"{len(found):,} sentences have {reason} and are kept (first {rows[found[0]].place})")
    kept = [row for row, is_kept in zip(rows, keep, strict=True) if is_kept]
    if not kept:
        why = ", ".join(f"{count:,} have {reason}" for reason, (count, _) in dropped.items())
        raise InputError(f"{path}: none of {len(rows):,} sentences can be used ({why}); are words and tags right?")
    return TaggedRows(kept, ReadReport(path, len(rows), len(kept), dropped, tuple(notes)))
