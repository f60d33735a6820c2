"""What a model is to predict from a table: one label, several labels, or a number; and the names of the labels.

With kind "auto": several label columns are shares of one label; votes are one label; a column with lists is several
labels; numbers of which one has a fraction (3.5) are numbers to predict; whole numbers and names are one label. Whole
numbers beside names are refused, for that is mostly a fault; kind "class" takes both as names.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal

from bert.errors import InputError
from bert.prediction.classification import KINDS, Kind
from tasks.reading import labels as cells
from tasks.reading.records import Table, cell, check_column, listed, short

MOST_CLASSES = 1000


@dataclasses.dataclass(frozen=True)
class ColumnSettings:
    """What the columns of a table mean. A name "a.b" finds b inside the object a.

    text: one column, or the two of a pair.
    label: one column; or one a class, with its probability or number of votes (kind class) or 0 and 1 (classes).
    kind: "class", "classes" (several labels a row), "number", or "auto" (see the head of this file).
    votes: a cell holds the labels of several annotators (one column), or columns hold numbers of votes. The target is
      the share of each label; for numbers, the mean.
    separator: between labels inside a cell, where it is no list.
    normalize: a row of shares that does not sum to 1 is scaled; else it is refused.
    """

    text: tuple[str, ...]
    label: tuple[str, ...] = ()
    kind: Kind | Literal["auto"] = "auto"
    votes: bool = False
    separator: str = ","
    normalize: bool = False

    def __post_init__(self):
        for field in ("text", "label"):
            value = getattr(self, field)
            object.__setattr__(self, field, (value,) if isinstance(value, str) else tuple(value))
        if not 1 <= len(self.text) <= 2:
            raise InputError(
                f"text names {len(self.text)} columns ({', '.join(self.text)}); name one, or the two of a pair"
            )
        if self.kind not in ("auto", *KINDS):
            raise InputError(f"kind {self.kind!r} must be one of auto, {', '.join(KINDS)}")
        twice = [name for name in self.label if self.label.count(name) > 1 or name in self.text]
        if twice:
            raise InputError(
                f"label names {twice[0]!r}, which is named before, as label or text; name each column once"
            )
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
    if not settings.label:
        raise InputError(f"{table.path}: label is not set; name the column with the labels")
    for name in settings.label:
        check_column(table, name, "label")
    if len(settings.label) > 1:
        return ("class" if settings.kind == "auto" else settings.kind), cells.column_names(settings.label)
    column = settings.label[0]
    filled = [(f"{place}: {column}", cell(row, column)) for row, place in zip(table.rows, table.places, strict=True)]
    filled = [(where, value) for where, value in filled if not cells.is_missing(value)]
    if not filled:
        raise InputError(f"{table.path}: no row has a label in {column!r}; is it the right column?")
    kind = settings.kind if settings.kind != "auto" else _guess(filled, settings)
    if kind == "number":
        for where, value in filled:
            number_of(value, where, settings)
        return kind, ()
    counts: dict[str, int] = {}
    for where, value in filled:
        for name in names_of(value, where, kind, settings):
            counts[name] = counts.get(name, 0) + 1
    _check(table, column, counts, kind)
    given = table.names.get(column, ())
    return kind, given if set(counts) <= set(given) else cells.ordered(set(counts))


def names_of(value: Any, where: str, kind: Kind, settings: ColumnSettings) -> list[str]:
    """The label names in a cell of kind class or classes."""
    if settings.votes:
        return [name for choice in cells.votes(value, where, settings.separator) for name in choice]
    if kind == "classes":
        return cells.sets(value, where, settings.separator)
    return list(value) if is_shares(value) else [cells.one(value, where)]


def is_shares(value: Any) -> bool:
    """An object label -> share."""
    return isinstance(value, Mapping) and bool(value) and all(cells.is_number(share) for share in value.values())


def number_of(value: Any, where: str, settings: ColumnSettings) -> float | None:
    """The number in a cell; with votes the mean of the annotators' numbers, None where nobody voted."""
    if not settings.votes:
        return cells.number(value, where)
    chosen = [cells.number(name, where) for choice in cells.votes(value, where, settings.separator) for name in choice]
    return sum(chosen) / len(chosen) if chosen else None


def _guess(filled: list[tuple[str, Any]], settings: ColumnSettings) -> Kind:
    if settings.votes or any(is_shares(value) for _, value in filled):
        return "class"
    if any(cells.is_listed(value) for _, value in filled):
        return "classes"
    numbers = [(where, value) for where, value in filled if cells.is_number(value)]
    others = [(where, value) for where, value in filled if not cells.is_number(value)]
    if numbers and others:
        where, value = others[0]
        cells.name(value, where)  # NaN has a message of its own
        raise InputError(
            f"{where}: the label {short(value)} is a name, but {numbers[0][0]} is the number {short(numbers[0][1])}; "
            "mend one, or set kind to class if all are names"
        )
    if numbers and not others:
        return "class" if all(float(value).is_integer() for _, value in numbers) else "number"
    return "class"


def _check(table: Table, column: str, counts: Mapping[str, int], kind: Kind) -> None:
    if len(counts) > MOST_CLASSES:
        examples = listed((short(name) for name in counts), 3)
        numbers = " or set kind to number to predict numbers" * all(map(cells.is_number, counts))
        raise InputError(
            f"{table.path}: {column!r} holds {len(counts):,} labels ({examples}), more than {MOST_CLASSES:,}; is it "
            f"the right column? Name another,{numbers or ' or set separator if a cell holds several'}"
        )
    if len(counts) < 2 and kind == "class":
        found = listed(short(name) for name in counts) or "none"
        raise InputError(
            f"{table.path}: {column!r} holds one label in all rows ({found}); a model needs two to tell apart, so name "
            "another column or add rows"
        )
    if not counts:
        raise InputError(f"{table.path}: no row has a label in {column!r}; is it the right column?")
