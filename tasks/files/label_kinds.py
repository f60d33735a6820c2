"""What a model is to predict from a table: one label, several labels, or a number; and the names of the labels.

With kind "auto": several label columns are shares of one label; votes are one label; lists and objects are what
label_lists.py says; numbers of which one has a fraction (3.5) are numbers to predict; whole numbers and names are one
label. Whole numbers beside names are refused, for that is mostly a fault; kind "class" takes both as names. Texts that
may be numbers or lists of numbers ("0,25", "0,1,1") and names in brackets ("[other]") are refused until kind is set.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from bert.errors import InputError, listed
from bert.target_kinds import KINDS, Kind
from tasks.files import label_lists, look_alikes, printed
from tasks.files import labels as cells
from tasks.files.label_numbers import are_several, has_decimal_commas, is_number, is_number_otherwise, number
from tasks.files.records import Table, cell, check_column, short

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
    separator: str = ","  # between the labels of a cell, where it is no list
    normalize: bool = False  # scale shares that do not sum to 1, instead of refusing them

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
        names = cells.column_names(settings.label)
        if label_lists.look_like_annotators(names):
            raise InputError(
                f"{table.path}: label names the columns {listed(settings.label, 5)}, whose names would be the classes; "
                "if they hold annotators' labels, write these into one column (0,1,1), and set votes to true; if they "
                "are classes, give them other names"
            )
        return ("class" if settings.kind == "auto" else settings.kind), names
    column = settings.label[0]
    filled = read_cells(table, column, settings, settings.kind)
    if not filled:
        raise InputError(f"{table.path}: no row has a label in {column!r}; is it the right column?")
    by_place = None
    if not settings.votes and settings.kind != "number":
        label_lists.check_objects(column, filled, settings.kind, settings.normalize, is_text(table, column))
        by_place = label_lists.places(filled, settings.kind, settings.normalize, settings.separator)
    if by_place:
        return by_place[0], label_lists.place_names(by_place[1])
    kind = settings.kind if settings.kind != "auto" else _guess(filled, settings)
    if settings.votes and settings.separator == ",":
        label_lists.refuse_decimals(filled)
    if kind == "number":
        commas = decimal_commas(filled, settings)
        for where, value in filled:
            number_of(value, where, settings, commas)
        return kind, ()
    counts = _counts(filled, kind, settings)
    if settings.votes:
        label_lists.check_votes(column, filled, list(counts))
    _check(table, column, counts, kind)
    ordered = table.names.get(column, ())
    return kind, ordered if set(counts) <= set(ordered) else cells.ordered(set(counts))


def _counts(filled: label_lists.Filled, kind: Kind, settings: ColumnSettings) -> dict[str, int]:
    """Name of a label -> number of cells, or of votes, with it."""
    counts: dict[str, int] = {}
    for where, value in filled:
        for name in names_of(value, where, kind, settings):
            counts[name] = counts.get(name, 0) + 1
        if (settings.votes or kind == "classes") and isinstance(value, str):
            several = next(filter(are_several, cells.parts(value, settings.separator)), None)
            if several:
                raise InputError(
                    f"{where}: {short(several)} holds several numbers; set separator to what is between them"
                )
    return counts


def label_notes(labels: Sequence[str]) -> list[str]:
    """What a person should know of names of labels: which look alike, have quotes around them, or may mean "none"."""
    groups = [" and ".join(map(ascii, group)) for group in look_alikes.groups(labels)]
    quoted = [label for label in labels if look_alikes.in_quotes(label)]
    notes = []
    if groups:
        notes.append(
            f"labels that look alike are different classes: {listed(groups, 5)}; write them alike if they are one"
        )
    if quoted:
        notes.append(
            f"labels with quotes around them: {listed(map(ascii, quoted), 5)}; set quoting if these do not belong"
        )
    absent = [label for label in labels if label.casefold() in _OF_EMPTY_CELLS]
    if absent:
        notes.append(
            f"labels that may stand for no label: {listed(map(ascii, absent), 5)}; leave these cells empty if they do"
        )
    return notes


def is_text(table: Table, column: str) -> bool:
    """Whether no cell of a column is an object itself, but at most a text that holds one."""
    return not any(isinstance(cell(row, column), Mapping) for row in table.rows)


def read_cells(
    table: Table, column: str, settings: ColumnSettings, kind: str, known: Sequence[str] = ()
) -> label_lists.Filled:
    """(place, value) of each cell of a label column that is not blank; see `labels.read`.

    Args:
      known: labels of a model; a text that is one of them is no list.
    """
    filled = [(f"{place}: {column}", cell(row, column)) for row, place in zip(table.rows, table.places, strict=True)]
    filled = [(where, value) for where, value in filled if not cells.is_missing(value)]
    bracketed = [] if settings.votes else [each for each in filled if printed.is_name_in_brackets(each[1])]
    are_intervals = any(printed.is_half_open(value) for _, value in filled)  # "[0, 5]" is one beside "(5, 10]"

    def is_name(value: Any) -> bool:
        if isinstance(value, str) and value.strip() in known:
            return True
        return (kind == "class" and printed.is_name_in_brackets(value)) or (
            are_intervals and printed.is_interval(value)
        )

    filled = [(where, value if is_name(value) else cells.read(value, where)) for where, value in filled]
    if not are_intervals and (kind != "class" or settings.votes):
        label_lists.refuse_printed(filled)
    if kind == "auto" and bracketed and not any(isinstance(v, list) and len(v) > 1 for _, v in filled):
        where, value = bracketed[0]
        raise InputError(
            f"{where}: {short(value)} is a name in brackets, or a list of one; set kind to class, or to classes"
        )
    return [(where, value) for where, value in filled if value is not None]


def names_of(value: Any, where: str, kind: Kind, settings: ColumnSettings) -> list[str]:
    """The label names in what `read_cells` gives of a cell of kind class or classes."""
    if settings.votes:
        return _votes(value, where, settings)
    if kind == "classes":
        return list(value) if isinstance(value, Mapping) else cells.sets(value, where, settings.separator)
    return list(value) if label_lists.is_shares(value) else [cells.name(value, where)]


def decimal_commas(filled: label_lists.Filled, settings: ColumnSettings) -> bool:
    """Whether the numbers in a column have decimal commas."""
    if not settings.votes:
        return has_decimal_commas(value for _, value in filled)
    return has_decimal_commas(part for where, value in filled for part in _votes(value, where, settings))


def number_of(value: Any, where: str, settings: ColumnSettings, commas: bool) -> float | None:
    """The number in a cell; with votes the mean of the annotators' numbers, None where nobody voted."""
    if not settings.votes:
        return number(value, where, commas)
    chosen = [number(name, where, commas) for name in _votes(value, where, settings)]
    return sum(chosen) / len(chosen) if chosen else None


def _votes(value: Any, where: str, settings: ColumnSettings) -> list[str]:
    return [name for choice in cells.votes(value, where, settings.separator) for name in choice]


def _guess(filled: label_lists.Filled, settings: ColumnSettings) -> Kind:
    if settings.votes or any(isinstance(value, Mapping) for _, value in filled):
        return "class"
    if any(isinstance(value, list) for _, value in filled):
        label_lists.refuse_mixture(filled)
        return "classes"
    numeric = [is_number(value) or is_number_otherwise(value) or are_several(value) for _, value in filled]
    numbers = [each for each, is_numeric in zip(filled, numeric, strict=True) if is_numeric]
    others = [each for each, is_numeric in zip(filled, numeric, strict=True) if not is_numeric]
    unclear = next((each for each in numbers if not is_number(each[1])), None)
    if unclear and not others:
        where, value = unclear
        raise InputError(
            f"{where}: {short(value)} may be a number, several, or a name; set kind to number (decimal commas are "
            "read), to classes if a row has several labels (see separator), votes to true if annotators gave one each, "
            "or kind to class if it is a name"
        )
    label_lists.refuse_names_beside_numbers(numbers, others, "class")
    if numbers:
        return "class" if all(float(value).is_integer() for _, value in numbers) else "number"
    label_lists.refuse_unbracketed(filled, settings.separator)
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
        raise InputError(f"{table.path}: no row has a label in {column!r}; is it the right column?")
