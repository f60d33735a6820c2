"""Decides what is predicted from a table: one label, several labels, or a number; finds the names of the labels.

With kind "auto": several label columns are shares of one label; votes are one label; label_lists.py decides about lists
and objects; numbers are numbers to predict if at least one has a fraction (3.5); whole numbers and names are one label.
A mixture of whole numbers and names is refused, because it is usually a mistake; kind "class" reads both as names.
Texts that may be numbers or lists of numbers ("0,25", "0,1,1") and names in brackets ("[other]") are refused unless
kind is set.
"""

import collections
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bert.errors import InputError, check_choice, listed
from bert.target_kinds import KINDS, Kind
from tasks.files import label_cells, label_lists, look_alikes, printed
from tasks.files.cells import TableCell, short
from tasks.files.label_lists import Cells
from tasks.files.label_numbers import are_several, has_decimal_commas, is_number, is_number_otherwise, number
from tasks.files.records import Table, cell_of, check_column, value_of

MOST_CLASSES = 1000
# As R, pandas, databases, and Excel in English and German write a cell without a value.
_OF_EMPTY_CELLS = ("na", "n/a", "<na>", "null", "#n/a", "#nv")


@dataclasses.dataclass(frozen=True)
class ColumnSettings:
    """What the columns of a table mean. A name "a.b" finds b inside the object a."""

    text: tuple[str, ...]  # one column, or the two of a pair
    # One column; or one a class, with its probability or number of votes (kind class) or 0 and 1 (classes).
    label: tuple[str, ...] = ()
    kind: Kind | Literal["auto"] = "auto"  # class (one label), classes (several labels a row), number; auto: by values
    # A cell holds the labels of several annotators (one column), or columns hold numbers of votes. The target is the
    # share of each label; for numbers, the mean.
    votes: bool = False
    separator: str = ","  # between the labels of a cell that is not a list
    normalize: bool = False  # scale shares that do not sum to 1, instead of refusing them

    def __post_init__(self) -> None:
        for field in ("text", "label"):
            value = getattr(self, field)
            object.__setattr__(self, field, (value,) if isinstance(value, str) else tuple(value))
        check_choice("kind", self.kind, ("auto", *KINDS))
        if not 1 <= len(self.text) <= 2:
            raise InputError(f"text names {len(self.text)} columns ({', '.join(self.text)}); name one or two")
        twice = [name for name in self.label if self.label.count(name) > 1 or name in self.text]
        if twice:
            raise InputError(f"label names {twice[0]!r}, which label or text names before; name each column once")
        if not self.separator:
            raise InputError("separator is empty; set it to what stands between labels, such as ','")
        if self.kind == "classes" and self.votes:
            raise InputError("votes are shares of one label; set kind to class, or votes to false")
        if self.kind == "number" and len(self.label) > 1:
            raise InputError(f"label names {len(self.label)} columns; a number to predict is in one")


def find_labels(table: Table, settings: ColumnSettings) -> tuple[Kind, tuple[str, ...]]:
    """(kind, names of the labels) from training data; a number has no names.

    Names are sorted, numbers by size; those that the file itself has in an order (ClassLabel) and those of several
    columns keep that.

    Raises:
      InputError: no label column, no labels in it, NaN, names beside numbers, only one label, or over MOST_CLASSES.
    """
    check_label_columns(table, settings)
    if len(settings.label) > 1:
        names = label_cells.column_names(settings.label)
        if label_lists.look_like_annotators(names):
            raise InputError(
                f"{table.path}: label names the columns {listed(settings.label, 5)}, whose names would be the classes; "
                "if they hold annotators' labels, write these into one column (0,1,1), and set votes to true; if they "
                "are classes, give them other names"
            )
        return ("class" if settings.kind == "auto" else settings.kind), names
    column = settings.label[0]
    cells = read_cells(table, column, settings, settings.kind)
    if not cells:
        raise _no_label(table, column)
    by_place = check_structures(table, column, cells, settings, settings.kind)
    if by_place:
        return by_place[0], label_lists.place_names(by_place[1])
    kind = settings.kind if settings.kind != "auto" else _guess(cells, settings)
    if settings.votes and settings.separator == ",":
        label_lists.refuse_decimals(cells)
    if kind == "number":
        commas = decimal_commas(cells, settings)
        for cell in cells:
            number_of(cell, settings, commas)
        return kind, ()
    counts = _counts(cells, kind, settings)
    if settings.votes:
        label_lists.check_votes(cells, list(counts))
    _check(table, column, counts, kind)
    ordered = table.names.get(column, ())
    return kind, ordered if set(counts) <= set(ordered) else label_cells.in_order(counts)


def check_label_columns(table: Table, settings: ColumnSettings) -> None:
    """Refuses settings without a label column, and columns that the table lacks."""
    if not settings.label:
        raise InputError(f"{table.path}: label is not set; name the column with the labels")
    for name in settings.label:
        check_column(table, name, "label")


def check_structures(
    table: Table, column: str, cells: Cells, settings: ColumnSettings, kind: str, known: Sequence[str] = ()
) -> tuple[Kind, int] | None:
    """Refuses objects that may be votes; returns what `label_lists.places` says of the column's lists."""
    if settings.votes or kind == "number":
        return None
    as_text = not any(isinstance(value_of(row, column), Mapping) for row in table.rows)
    label_lists.check_objects(column, cells, kind, settings.normalize, as_text, known)
    return label_lists.places(cells, kind, settings.normalize, settings.separator)


def _counts(cells: Cells, kind: Kind, settings: ColumnSettings) -> Mapping[str, int]:
    """Name of a label -> number of cells, or of votes, with it."""
    counts: collections.Counter[str] = collections.Counter()
    for cell in cells:
        counts.update(_names(cell, kind, settings))
        if (settings.votes or kind == "classes") and isinstance(cell.value, str):
            several = next(filter(are_several, label_cells.parts(cell.value, settings.separator)), None)
            if several:
                raise cell.part(several).error("holds several numbers; set separator to what is between them")
    return counts


def label_notes(labels: Sequence[str]) -> list[str]:
    """Notes on names of labels that look alike, have quotes around them, or may mean "none"."""
    alike = [" and ".join(map(ascii, group)) for group in look_alikes.groups(labels)]
    quoted = [ascii(label) for label in labels if look_alikes.in_quotes(label)]
    absent = [ascii(label) for label in labels if label.casefold() in _OF_EMPTY_CELLS]
    notes = [
        (alike, "labels that look alike are different classes: {}; write them alike if they are one"),
        (quoted, "labels with quotes around them: {}; set quoting if these do not belong"),
        (absent, "labels that may stand for no label: {}; leave these cells empty if they do"),
    ]
    return [note.format(listed(names, 5)) for names, note in notes if names]


def read_cells(
    table: Table, column: str, settings: ColumnSettings, kind: str, known: Sequence[str] = ()
) -> list[TableCell]:
    """The cells of a label column that are not blank, as `label_cells.parsed` gives them.

    Args:
      known: labels of a model; a text that is one of them is no list.
    """
    cells = [cell_of(row, place, column) for row, place in zip(table.rows, table.places, strict=True)]
    cells = [cell for cell in cells if not label_cells.is_missing(cell.value)]
    bracketed = [] if settings.votes else [cell for cell in cells if printed.is_name_in_brackets(cell.value)]
    are_intervals = any(printed.is_half_open(cell.value) for cell in cells)  # "[0, 5]" is one beside "(5, 10]"

    def is_name(value: Any) -> bool:
        return (
            (isinstance(value, str) and value.strip() in known)
            or (kind == "class" and printed.is_name_in_brackets(value))
            or (are_intervals and printed.is_interval(value))
        )

    cells = [cell if is_name(cell.value) else label_cells.parsed(cell) for cell in cells]
    if not are_intervals and (kind != "class" or settings.votes):
        label_lists.refuse_texts(cells, printed.looks_printed)
    if kind == "auto" and bracketed and not any(isinstance(c.value, list) and len(c.value) > 1 for c in cells):
        raise bracketed[0].error("is a name in brackets, or a list of one; set kind to class, or to classes")
    return [cell for cell in cells if cell.value is not None]


def _names(cell: TableCell, kind: Kind, settings: ColumnSettings) -> list[str]:
    """The label names in a parsed cell of kind class or classes."""
    if settings.votes:
        return _votes(cell, settings)
    if kind == "classes":
        is_object = isinstance(cell.value, Mapping)
        return list(cell.value) if is_object else label_cells.names_in_set(cell, settings.separator)
    return list(cell.value) if label_lists.is_shares(cell.value) else [label_cells.name_of(cell)]


def decimal_commas(cells: Cells, settings: ColumnSettings) -> bool:
    """Whether the numbers in a column have decimal commas."""
    if not settings.votes:
        return has_decimal_commas(cell.value for cell in cells)
    return has_decimal_commas(part for cell in cells for part in _votes(cell, settings))


def number_of(cell: TableCell, settings: ColumnSettings, commas: bool) -> float | None:
    """The number in a cell; with votes the mean of the annotators' numbers, None where nobody voted."""
    if not settings.votes:
        return number(cell, commas)
    numbers = [number(cell.part(name), commas) for name in _votes(cell, settings)]
    return sum(numbers) / len(numbers) if numbers else None


def _votes(cell: TableCell, settings: ColumnSettings) -> list[str]:
    return [name for choice in label_cells.votes(cell, settings.separator) for name in choice]


def _guess(cells: Cells, settings: ColumnSettings) -> Kind:
    if settings.votes or any(isinstance(cell.value, Mapping) for cell in cells):
        return "class"
    if any(isinstance(cell.value, list) for cell in cells):
        label_lists.refuse_mixture(cells)
        return "classes"
    numbers: list[TableCell] = []
    others: list[TableCell] = []
    for cell in cells:
        is_numeric = is_number(cell.value) or is_number_otherwise(cell.value) or are_several(cell.value)
        (numbers if is_numeric else others).append(cell)
    unclear = [cell for cell in numbers if not is_number(cell.value)]
    if unclear and not others:
        raise unclear[0].error(
            "may be a number, several, or a name; set kind to number (decimal commas are read), to classes if a row "
            "has several labels (see separator), votes to true if annotators gave one each, or kind to class if it is "
            "a name"
        )
    label_lists.refuse_names_beside_numbers(numbers, others, "class")
    if numbers:
        return "class" if all(float(cell.value).is_integer() for cell in numbers) else "number"
    label_lists.refuse_unbracketed(cells, settings.separator)
    return "class"


def _check(table: Table, column: str, counts: Mapping[str, int], kind: Kind) -> None:
    if len(counts) > MOST_CLASSES:
        examples = listed((short(name) for name in counts), 3)
        numbers = " or set kind to number to predict numbers" * all(map(is_number, counts))
        raise InputError(
            f"{table.path}: {column!r} holds {len(counts):,} labels ({examples}), more than {MOST_CLASSES:,}; is it "
            f"the right column? Name another,{numbers or ' or set separator if a cell holds several'}"
        )
    if len(counts) < 2 and kind == "class":
        names = listed(short(name) for name in counts) or "none"
        raise InputError(
            f"{table.path}: {column!r} holds one label in all rows ({names}); a model needs two to tell apart, so name "
            "another column or add rows"
        )
    if not counts:
        raise _no_label(table, column)


def _no_label(table: Table, column: str) -> InputError:
    return InputError(f"{table.path}: no row has a label in {column!r}; is it the right column?")
