"""Turns rows of a table into texts and targets, reports what was kept and dropped, and splits for validation.

Which rows are kept: for training, rows with a label and a text (at least one text of a pair); for scoring, rows with a
label; for prediction, all rows in their order. Dropped rows are counted by reason. A column of only -1 means "no
labels", as in GLUE's test files, unless -1 is a known label.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert import surrogates
from bert.errors import InputError
from bert.target_kinds import Kind
from tasks.files import splits
from tasks.files.cells import TableCell, short
from tasks.files.equal_texts import first_of_equal, key_of
from tasks.files.label_kinds import ColumnSettings
from tasks.files.label_numbers import is_number, is_number_otherwise
from tasks.files.records import Table, cell_of, check_column
from tasks.files.reports import ReadReport, check_labelled, kept_rows, none_left
from tasks.files.targets import has_labels, read_targets

NUMBERS_AS_TEXT = 10  # rows from which on a text column of numbers alone is taken for a mistake


class TextExamples(NamedTuple):
    """N examples.

    texts: one text, or two, each; of a picture its name.
    targets: float32 [N, C], or None without labels. class: shares that sum to 1 (one-hot for a single label); classes:
      0 or 1; number: the number, C = 1.
    rows, places: of the table.
    labels: C names; none for a number.
    pictures: float32 [N, rows, columns, channels], of examples that are pictures.
    """

    texts: list[tuple[str, ...]]
    targets: np.ndarray | None
    rows: list[dict[str, Any]]
    places: list[str]
    labels: tuple[str, ...]
    kind: Kind
    report: ReadReport
    pictures: np.ndarray | None = None

    def take(self, indices: Sequence[int]) -> "TextExamples":
        """Some of the examples, under the same report."""
        columns: dict[str, Any] = {
            name: [getattr(self, name)[i] for i in indices] for name in ("texts", "rows", "places")
        }
        arrays = {name: getattr(self, name) for name in ("targets", "pictures")}
        columns |= {name: None if array is None else array[indices] for name, array in arrays.items()}
        return self._replace(**columns)


def make_examples(
    table: Table,
    settings: ColumnSettings,
    kind: Kind,
    labels: Sequence[str],
    *,
    labelled: str = "needed",
    without_text: bool = False,
) -> TextExamples:
    """Examples with the labels of a model, whatever order the table has them in.

    Args:
      kind, labels: from find_labels on the training data, or from the model.
      labelled: "needed"; "if there": targets only where every row has a label; "no": labels are not read.
      without_text: whether rows without a text are kept where labels are needed, for official scores count them.

    Raises:
      InputError: a column that is not there, a text that is none, an unknown label (with those known), NaN, bad shares,
        or no row left.
    """
    check_labelled(labelled)
    needed = labelled == "needed"
    texts, text_notes = read_texts(table, settings.text, needed)
    notes = [*table.notes, *text_notes]
    targets: list[list[float] | None] = [None] * len(table.rows)
    if labelled != "no" and has_labels(table, settings, labels, labelled):
        targets = read_targets(table, settings, kind, labels, notes)
    reasons = {
        "no text": [not any(text.strip() for text in row) for row in texts],
        "no label": [target is None for target in targets],
    }
    if without_text:  # a row that is dropped for its label gets no note that it is kept
        reasons = dict(reversed(reasons.items()))
    drop = [reason for reason in reasons if needed and not (without_text and reason == "no text")]
    mention = ["no text"] if all(reasons["no label"]) else ["no text", "no label"]
    used, dropped = kept_rows("rows", table.places, reasons, drop, mention, notes)
    if not used:
        raise none_left(table.path, "rows", len(texts), dropped, "are text and label right?")
    used_targets = [target for target in (targets[i] for i in used) if target is not None]
    return TextExamples(
        [texts[i] for i in used],
        np.array(used_targets, np.float32) if len(used_targets) == len(used) else None,
        [table.rows[i] for i in used],
        [table.places[i] for i in used],
        tuple(labels),
        kind,
        ReadReport(table.path, len(table.rows), len(used), dropped, tuple(notes)),
    )


def split(
    examples: TextExamples, share: float, seed: int, *, equal_apart: bool = False
) -> tuple[TextExamples, TextExamples]:
    """(train, validation): a share of the rows split off, by class, in the order of the file.

    Rows with equal texts (see equal_texts.py) stay in one part, if some can be held out then. Classes are those with
    the largest share in the target; numbers and several labels are split at random. A pure function of its arguments.
    Each class keeps a row in train, so one with a single row is only there.

    Args:
      equal_apart: see `tasks.job.as_begun`; equal texts may be in both parts then.

    Raises:
      InputError: a share outside (0, 1), no labels, or too few rows for two parts.
    """
    splits.check_share(share)
    if examples.targets is None:
        raise InputError(f"{examples.report.source}: has no labels to split by; name the label column")
    count = len(examples.texts)
    by_class = examples.kind == "class"
    targets_N = examples.targets.argmax(1) if by_class else np.zeros(count, np.int64)
    classes, class_N = np.unique(targets_N, return_inverse=True)
    group_N = np.arange(count) if equal_apart else first_of_equal(map(key_of, examples.texts))
    take_C = splits.rows_by_class(np.bincount(class_N), share)
    is_validation = splits.draw(class_N, group_N, take_C, np.random.default_rng(seed))
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
    return divided(examples, is_validation, share, seed, notes)


def divided(
    examples: TextExamples, is_validation_N: np.ndarray, share: float, seed: int, notes: Sequence[str] = ()
) -> tuple[TextExamples, TextExamples]:
    """(train, validation); arguments as of `ReadReport.divided`."""
    train, validation = examples.report.divided(is_validation_N, share, seed, notes)
    return (
        examples.take(np.flatnonzero(~is_validation_N).tolist())._replace(report=train),
        examples.take(np.flatnonzero(is_validation_N).tolist())._replace(report=validation),
    )


def read_texts(table: Table, names: Sequence[str], strict: bool = False) -> tuple[list[tuple[str, ...]], list[str]]:
    """The texts of all rows in these columns ("" where there is none), and notes on them.

    ``strict``: columns of numbers alone are refused. Raises InputError as `make_examples`.
    """
    mended = 0
    columns = []
    for column in names:
        check_column(table, column, "text")
        texts = []
        for row, place in zip(table.rows, table.places, strict=True):
            text = _text(cell_of(row, place, column), column)
            if table.universal_newlines:
                text = text.replace("\r\n", "\n").replace("\r", "\n")
            texts.append(surrogates.join(text))
            mended += texts[-1] != text
        filled = [text for text in texts if text.strip()]
        numbers = strict and len(filled) >= NUMBERS_AS_TEXT
        if numbers and all(is_number(text) or is_number_otherwise(text) for text in filled):
            raise InputError(
                f"{table.path}: the text column {column!r} holds numbers only ({short(filled[0])}, ...); set text "
                "to the column with the texts"
            )
        columns.append(texts)
    notes = [f"{mended:,} texts held unpaired surrogates, which are now U+FFFD"] if mended else []
    rows = list(zip(*columns, strict=True))
    one_empty = sum(len({bool(text.strip()) for text in row}) == 2 for row in rows)
    if one_empty:
        notes.append(f"{one_empty:,} pairs have one empty text and are kept")
    return rows, notes


def _text(cell: TableCell, column: str) -> str:
    value = cell.value
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bytes):
        raise cell.error("is not UTF-8; write the texts as UTF-8")
    inner = f", such as {column}.{next(iter(value), '')}" if isinstance(value, Mapping) else ""
    names = {dict: "an object", list: "a list", int: "a number", float: "a number"}
    what = names.get(type(value), f"a {type(value).__name__}")
    raise cell.error(f"is {what}, not text; set text to a column of texts{inner}")
