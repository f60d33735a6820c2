"""Labels of a table -> the target of each row, by the labels that a model knows."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bert.errors import InputError
from bert.prediction.classification import Kind
from tasks.reading import labels as cells
from tasks.reading.label_kinds import ColumnSettings, is_shares, number_of
from tasks.reading.records import Table, cell, check_column, has_column, short


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
    read = _column_target if len(settings.label) > 1 else _cell_target
    targets = [read(row, place, settings, kind, known) for row, place in zip(table.rows, table.places, strict=True)]
    if known.by_case:
        pairs = ", ".join(f"{given} as {name}" for given, name in list(known.by_case.items())[:5])
        notes.append(f"labels were matched whatever their case: {pairs}")
    if kind == "classes" and all(target is None or math.fsum(target) == 1 for target in targets):
        notes.append("every row has exactly one label; kind class would be the usual choice")
    if kind == "class" and len(settings.label) == 1 and not settings.votes:
        inside = [name for name in labels if settings.separator in name]
        if inside and all(part.strip() in labels for name in inside for part in name.split(settings.separator)):
            notes.append(f"{short(inside[0])} is one label; set kind to classes if it is several")
    return targets


def _cell_target(row: Mapping[str, Any], place: str, settings: ColumnSettings, kind: Kind, known: cells.Known):
    column = settings.label[0]
    value, where = cell(row, column), f"{place}: {column}"
    if value is None or (kind != "classes" and cells.is_missing(value)):
        return None
    if kind == "number":
        number = number_of(value, where, settings)
        return None if number is None else [number]
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
    elif is_shares(value):
        shares = {name: cells.number(share, where) for name, share in value.items()}
    else:
        target[known.index(cells.one(value, where), where)] = 1.0
        return target
    for name, share in shares.items():
        target[known.index(name, where)] += share
    return cells.scaled(target, where, settings.normalize)


def _column_target(row: Mapping[str, Any], place: str, settings: ColumnSettings, kind: Kind, known: cells.Known):
    target = [0.0] * len(known.labels)
    values = {name: cell(row, name) for name in settings.label}
    if all(cells.is_missing(value) for value in values.values()):
        return None
    for (column, value), name in zip(values.items(), cells.column_names(settings.label), strict=True):
        where = f"{place}: {column}"
        if kind == "classes":
            value = {"true": 1, "false": 0}.get(str(value).strip().casefold(), value)
        number = cells.number(0 if cells.is_missing(value) else value, where)
        if kind == "classes" and number not in (0, 1):
            raise InputError(f"{where}: {short(value)} must be 0 or 1, for each column is one of several labels")
        target[known.index(name, where)] = number
    if kind == "classes":
        return target
    return cells.scaled(
        target, f"{place}: {settings.label[0]} to {settings.label[-1]}", settings.normalize or settings.votes
    )
