"""Rows of a table -> texts and targets, with a report of what was read, kept and dropped; and the split for validation.

Not here: reading files (tables.py), what a cell of labels means (labels.py), which labels there are (label_kinds.py),
labels -> targets (targets.py).

Which rows are kept. Where labels are needed: those with a label and, to train, with a text (of a pair, at least one);
the others are counted by reason. Else all of them, in their order, for each must get its prediction.
A whole column of -1 where -1 is no known label means "no labels" (as in the tests of GLUE).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert import surrogates
from bert.errors import InputError, printable
from bert.target_kinds import Kind
from tasks.files import held_out
from tasks.files.equal_texts import first_of_equal, key_of
from tasks.files.label_kinds import ColumnSettings
from tasks.files.label_numbers import is_number, is_number_otherwise
from tasks.files.records import Table, cell, check_column, short
from tasks.files.targets import has_labels, read_targets

LABELLED = ("needed", "if there", "no")
NUMBERS_AS_TEXT = 10  # rows from which on a text column of numbers alone is taken for a mistake


@dataclasses.dataclass(frozen=True)
class ReadReport:
    """Rows read = kept + all elsewhere + all dropped.

    dropped: reason -> (rows, place of the first). elsewhere: what became of the rows that a split gave to another part,
      such as "split off for validation (share 0.1, seed 0)" -> rows.
    """

    source: str
    read: int
    kept: int
    dropped: Mapping[str, tuple[int, str]] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    elsewhere: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        kept = "".join(f", {count:,} {what}" for what, count in {"kept": self.kept, **self.elsewhere}.items())
        lost = "".join(f"; dropped {count:,}: {why} (first {place})" for why, (count, place) in self.dropped.items())
        return "\n".join(map(printable, [f"{self.source}: {self.read:,} rows read{kept}{lost}", *self.notes]))

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        dropped = {why: {"rows": count, "first": place} for why, (count, place) in self.dropped.items()}
        return {"read": self.read, "kept": self.kept, "dropped": dropped, "notes": list(self.notes)}


class Part(NamedTuple):
    """One part of a split: the index of each of its rows, in their order, and its report."""

    rows: list[int]
    report: ReadReport


class Examples(NamedTuple):
    """N examples.

    texts: one text, or two, each.
    targets: float32 [N, C], or None without labels. class: shares that sum to 1 (one-hot for a single label); classes:
      0 or 1; number: the number, C = 1.
    rows, places: of the table. kept: int, the index of each in the table's rows.
    labels: C names; none for a number.
    """

    texts: list[tuple[str, ...]]
    targets: np.ndarray | None
    rows: list[dict[str, Any]]
    places: list[str]
    kept: list[int]
    labels: tuple[str, ...]
    kind: Kind
    report: ReadReport


def make_examples(
    table: Table,
    settings: ColumnSettings,
    kind: Kind,
    labels: Sequence[str],
    *,
    labelled: str = "needed",
    without_text: bool = False,
) -> Examples:
    """Examples with the labels of a model, whatever order the table has them in.

    Args:
      kind, labels: from find_labels on the training data, or from the model.
      labelled: "needed"; "if there": targets only where every row has a label; "no": labels are not looked at.
      without_text: whether rows without a text are kept where labels are needed, for official scores count them.

    Raises:
      InputError: a column that is not there, a text that is none, an unknown label (with those known), NaN, bad shares,
        or no row left.
    """
    check_labelled(labelled)
    texts, notes = _texts(table, settings, labelled == "needed")
    notes = [*table.notes, *notes]
    targets: list[Any] = [None] * len(table.rows)
    if labelled != "no" and has_labels(table, settings, labels, labelled):
        targets = read_targets(table, settings, kind, labels, notes)
    has_target = np.array([target is not None for target in targets])
    reasons = {
        "no text": ~np.array([any(text.strip() for text in row) for row in texts]),
        "no label": ~has_target,
    }
    keep = np.ones(len(texts), bool)
    dropped = {}
    for reason in sorted(reasons, reverse=not without_text):  # a row that is dropped for its label is not told as kept
        rows = np.flatnonzero(keep & reasons[reason])
        if labelled == "needed" and len(rows) and not (without_text and reason == "no text"):
            dropped[reason] = (len(rows), table.places[rows[0]])
            keep[rows] = False
        elif len(rows) and (reason == "no text" or has_target.any()):
            notes.append(f"{len(rows):,} rows have {reason} and are kept (first {table.places[rows[0]]})")
    kept = np.flatnonzero(keep).tolist()
    if not kept:
        why = ", ".join(f"{count:,} have {reason}" for reason, (count, _) in dropped.items())
        raise InputError(f"{table.path}: none of {len(texts):,} rows can be used ({why}); are text and label right?")
    with_targets = all(has_target[kept])
    return Examples(
        [texts[i] for i in kept],
        np.array([targets[i] for i in kept], np.float32) if with_targets else None,
        [table.rows[i] for i in kept],
        [table.places[i] for i in kept],
        kept,
        tuple(labels),
        kind,
        ReadReport(table.path, len(table.rows), len(kept), dropped, tuple(notes)),
    )


def split(examples: Examples, share: float, seed: int, *, equal_apart: bool = False) -> tuple[Examples, Examples]:
    """(train, validation): a share of the rows split off, by class, in the order of the file.

    Rows with equal texts (see equal_texts.py) stay in one part, if some can be held out then. Classes are those with
    the largest share in the target; numbers and several labels are split at random. A pure function of its arguments.
    Each class keeps a row in train, so one with a single row is only there.

    Args:
      equal_apart: see `tasks.job.as_begun`; equal texts may be in both parts then.

    Raises:
      InputError: a share outside (0, 1), no labels, or too few rows for two parts.
    """
    check_share(share)
    if examples.targets is None:
        raise InputError(f"{examples.report.source}: has no labels to split by; name the label column")
    count = len(examples.texts)
    by_class = examples.kind == "class"
    targets_N = examples.targets.argmax(1) if by_class else np.zeros(count, np.int64)
    classes, class_N = np.unique(targets_N, return_inverse=True)
    group_N = np.arange(count) if equal_apart else first_of_equal(map(key_of, examples.texts))
    take_C = held_out.rows_by_class(np.bincount(class_N), share)
    is_validation = held_out.draw(class_N, group_N, take_C, np.random.default_rng(seed))
    if not is_validation.any():
        if len(np.unique(group_N)) < count:  # too few texts; how many are in both parts is in the job's report
            return split(examples, share, seed, equal_apart=True)
        if len(classes) == count > 1:
            raise InputError(
                f"{examples.report.source}: each of its {count} rows has a label of its own, so none can be held out; "
                "if they are numbers, set kind to number, else name another label column, or a validation file"
            )
        raise InputError(
            f"{examples.report.source}: {count} rows are too few to split off {share:g} of them; name a validation "
            f"file, or set validation_share to {1 / count if count > 1 else 0:.2g}"
        )
    notes = []
    if len(np.unique(group_N)) < count:
        repeated_N = np.bincount(group_N)[group_N] > 1
        texts = len(np.unique(group_N[repeated_N]))
        notes.append(f"{repeated_N.sum():,} rows share {texts:,} texts; rows with equal texts stay in one part")
        held_C = np.bincount(class_N[is_validation], minlength=len(classes))
        for c in np.flatnonzero((take_C > 0) & (held_C == 0)) if by_class else ():
            name, rows = examples.labels[classes[c]], int((class_N == c).sum())
            notes.append(f"none of the {rows:,} rows of {name} is held out, for rows with equal texts stay in one part")
    train, validation = parts_of(examples.report, is_validation, share, seed, notes)
    return _part(examples, train), _part(examples, validation)


def check_labelled(labelled: str) -> None:
    """Refuses what is none of `LABELLED`."""
    if labelled not in LABELLED:
        raise InputError(f"labelled {labelled!r} must be one of {', '.join(LABELLED)}")


def check_share(share: float) -> None:
    """Refuses a share of rows that is not between 0 and 1."""
    if not 0 < share < 1:
        raise InputError(f"validation share {share} must be above 0 and below 1")


def parts_of(
    report: ReadReport, is_validation_N: np.ndarray, share: float, seed: int, notes: Sequence[str] = ()
) -> tuple[Part, Part]:
    """(train, validation) of N rows that were kept; each report says how many went to the other part, and why.

    Args:
      notes: on the split, for the report of the training part.
    """
    train, validation = np.flatnonzero(~is_validation_N).tolist(), np.flatnonzero(is_validation_N).tolist()

    def part(rows: list[int], others: list[int], what: str, notes: Sequence[str] = ()) -> Part:
        elsewhere = {**report.elsewhere, what: report.elsewhere.get(what, 0) + len(others)}
        notes = (*report.notes, *notes)
        return Part(rows, dataclasses.replace(report, kept=len(rows), elsewhere=elsewhere, notes=notes))

    return (
        part(train, validation, f"split off for validation (share {share:g}, seed {seed})", notes),
        part(validation, train, f"left in the training part (share {1 - share:g}, seed {seed})"),
    )


def _part(examples: Examples, part: Part) -> Examples:
    assert examples.targets is not None
    return examples._replace(
        texts=[examples.texts[i] for i in part.rows],
        targets=examples.targets[part.rows],
        rows=[examples.rows[i] for i in part.rows],
        places=[examples.places[i] for i in part.rows],
        kept=[examples.kept[i] for i in part.rows],
        report=part.report,
    )


def _texts(table: Table, settings: ColumnSettings, strict: bool) -> tuple[list[tuple[str, ...]], list[str]]:
    """The texts of all rows ("" where there is none), and notes on them."""
    mended = 0
    columns = []
    for column in settings.text:
        check_column(table, column, "text")
        texts = []
        for row, place in zip(table.rows, table.places, strict=True):
            value = cell(row, column)
            text = _text(value, f"{place}: {column}", column)
            if table.universal_newlines:
                text = text.replace("\r\n", "\n").replace("\r", "\n")
            whole = surrogates.join(text)
            mended += whole != text
            texts.append(whole)
        filled = [text for text in texts if text.strip()]
        if (
            strict
            and len(filled) >= NUMBERS_AS_TEXT
            and all(is_number(text) or is_number_otherwise(text) for text in filled)
        ):
            raise InputError(
                f"{table.path}: the text column {column!r} holds numbers only ({short(filled[0])}, ...); set text "
                "to the column with the texts"
            )
        columns.append(texts)
    notes = [f"{mended:,} texts held unpaired surrogates, which are now U+FFFD"] if mended else []
    one_empty = sum(len({bool(text.strip()) for text in row}) == 2 for row in zip(*columns, strict=True))
    if one_empty:
        notes.append(f"{one_empty:,} pairs have one empty text and are kept")
    return list(zip(*columns, strict=True)), notes


def _text(value: Any, where: str, column: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        raise InputError(f"{where}: {short(value)} is not UTF-8; write the texts as UTF-8")
    inner = f", such as {column}.{next(iter(value), '')}" if isinstance(value, Mapping) else ""
    kind = {"dict": "an object", "list": "a list", "int": "a number", "float": "a number"}.get(type(value).__name__)
    raise InputError(
        f"{where}: {short(value)} is {kind or 'a ' + type(value).__name__}, not text; set text to a column of texts"
        f"{inner}"
    )
