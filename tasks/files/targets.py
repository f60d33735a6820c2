"""Labels of a table -> the target of each row, by the labels that a model knows."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bert.errors import InputError, listed
from bert.target_kinds import Kind
from tasks.files import label_kinds, label_lists, label_numbers
from tasks.files import labels as cells
from tasks.files.label_kinds import ColumnSettings
from tasks.files.records import Table, cell, check_column, has_column, short

_OF_ANNOTATORS = "write annotators' labels into one column (no,yes,yes) and set votes to true"


def has_labels(table: Table, settings: ColumnSettings, labels: Sequence[str], labelled: str) -> bool:
    """Whether there are labels to read. Raises InputError where there are none but they are needed."""
    needed = labelled == "needed"
    if not settings.label:
        if needed:
            raise InputError(f"{table.path}: label is not set; name the column with the labels")
        return False
    present = [has_column(table, name) for name in settings.label]
    if needed or any(present):
        for name in settings.label:
            check_column(table, name, "label")
    if not any(present):
        return False
    if len(settings.label) > 1:
        return True
    values = [cell(row, settings.label[0]) for row in table.rows]
    unknown = "-1" not in labels and all(value in (-1, "-1", "-1.0") for value in values) and bool(labels)
    if unknown or all(value is None for value in values):
        if needed:
            what = "-1" if unknown else "empty"
            raise InputError(f"{table.path}: {settings.label[0]!r} is {what} in every row: these rows have no labels")
        return False
    return True


def read_targets(
    table: Table, settings: ColumnSettings, kind: Kind, labels: Sequence[str], notes: list[str]
) -> list[list[float] | None]:
    """The target of each row; None where its label is missing."""
    known = cells.Known(labels)
    if len(settings.label) > 1:
        targets = _column_targets(table, settings, kind, known)
    else:
        targets = _cell_targets(table, settings, kind, known, notes)
    if known.by_case:
        pairs = ", ".join(f"{given} as {name}" for given, name in list(known.by_case.items())[:5])
        notes.append(f"labels were matched whatever their case: {pairs}")
    if kind == "classes" and all(target is None or math.fsum(target) == 1 for target in targets):
        notes.append("every row has exactly one label; kind class would be the usual choice")
    if kind == "classes" and len(settings.label) == 1:
        whole = {cell(row, settings.label[0]) for row in table.rows if isinstance(cell(row, settings.label[0]), str)}
        for mark in ";|/":
            several = [name for name in labels if mark in name and name in whole]
            joined = [name for name in several if any(part.strip() in labels for part in name.split(mark))]
            if joined:
                notes.append(f"{short(joined[0])} is one label; set separator to {mark!r} if it is several")
    if kind == "class" and len(settings.label) == 1 and not settings.votes:
        inside = [name for name in labels if settings.separator in name]
        if inside and all(part.strip() in labels for name in inside for part in name.split(settings.separator)):
            notes.append(f"{short(inside[0])} is one label; set kind to classes if it is several")
    return targets


def _cell_targets(
    table: Table, settings: ColumnSettings, kind: Kind, known: cells.Known, notes: list[str]
) -> list[list[float] | None]:
    """Targets from one column."""
    column = settings.label[0]
    filled = dict(label_kinds.read_cells(table, column, settings, kind, known.labels))
    commas = kind == "number" and label_kinds.decimal_commas(list(filled.items()), settings)
    by_place = False
    if kind != "number" and not settings.votes:
        as_text = label_kinds.is_text(table, column)
        label_lists.check_objects(column, list(filled.items()), kind, settings.normalize, as_text, known.labels)
        by_place = _by_place(column, list(filled.items()), settings, kind, known.labels, notes)
    if any(isinstance(value, Mapping) for value in filled.values()) and kind != "number":
        what = "the votes" if settings.votes else "the names"
        notes.append(f"{column}: the labels are {what} in its objects: {listed(known.labels)}")
    targets: list[list[float] | None] = []
    for row, place in zip(table.rows, table.places, strict=True):
        where = f"{place}: {column}"
        if where in filled:
            targets.append(_target(filled[where], where, settings, kind, known, commas, by_place))
        else:  # in a set of labels blank text is the empty set
            targets.append([0.0] * len(known.labels) if kind == "classes" and cell(row, column) is not None else None)
    return targets


def _by_place(
    column: str,
    filled: label_lists.Filled,
    settings: ColumnSettings,
    kind: Kind,
    labels: tuple[str, ...],
    notes: list[str],
) -> bool:
    """Whether the cells are lists of numbers by place. Raises InputError where they do not fit the labels."""
    by_place = label_lists.places(filled, kind, settings.normalize, settings.separator)
    if not by_place:
        return False
    if labels == label_lists.place_names(by_place[1]):
        what = "shares of one label" if kind == "class" else "several labels"
        notes.append(
            f"{column}: lists of {by_place[1]} numbers are {what} by place, called {listed(labels)}; if "
            "annotators gave a label each, set votes to true"
        )
        return True
    if kind == "class" or labels == label_lists.place_names(len(labels)):
        raise InputError(
            f"{filled[0][0]}: lists of {by_place[1]} numbers are labels by place, but the labels are {listed(labels)}; "
            "write their names, or a column a class"
        )
    return False


def _target(
    value: Any, where: str, settings: ColumnSettings, kind: Kind, known: cells.Known, commas: bool, by_place: bool
) -> list[float] | None:
    if kind == "number":
        number = label_kinds.number_of(value, where, settings, commas)
        return None if number is None else [number]
    if by_place:
        target = [float(part) for part in cells.parts(value, settings.separator)]
        return target if kind == "classes" else cells.scaled(target, where, settings.normalize)
    target = [0.0] * len(known.labels)
    if kind == "classes":
        for name in cells.sets(value, where, settings.separator):
            target[known.index(name, where)] = 1.0
        return target
    if settings.votes:
        chosen = cells.votes(value, where, settings.separator)
        shares = cells.vote_shares(chosen)
        if not shares:
            return None
    elif label_lists.is_shares(value):
        shares = {name: float(share) for name, share in value.items()}
    else:
        target[known.index(cells.name(value, where), where)] = 1.0
        return target
    for name, share in shares.items():
        target[known.index(name, where)] += share
    return cells.scaled(target, where, settings.normalize, "set votes to true if the names are annotators', ")


def _column_targets(table: Table, settings: ColumnSettings, kind: Kind, known: cells.Known) -> list[list[float] | None]:
    """Targets from a column a class."""
    values = [{name: cell(row, name) for name in settings.label} for row in table.rows]
    commas = label_numbers.has_decimal_commas(value for row in values for value in row.values())
    names = dict(zip(settings.label, cells.column_names(settings.label), strict=True))
    targets: list[list[float] | None] = []
    for row, place in zip(values, table.places, strict=True):
        if all(cells.is_missing(value) for value in row.values()):
            targets.append(None)
            continue
        target = [0.0] * len(known.labels)
        for column, value in row.items():
            where = f"{place}: {column}"
            if kind == "classes":
                value = {"true": 1, "false": 0}.get(str(value).strip().casefold(), value)
            number = label_numbers.number(0 if cells.is_missing(value) else value, where, commas, _OF_ANNOTATORS)
            if kind == "classes" and number not in (0, 1):
                raise InputError(f"{where}: {short(value)} must be 0 or 1, for each column is one of several labels")
            target[known.index(names[column], where)] = number
        if kind != "classes":
            where = f"{place}: {settings.label[0]} to {settings.label[-1]}"
            target = cells.scaled(target, where, settings.normalize or settings.votes)
        targets.append(target)
    return targets
