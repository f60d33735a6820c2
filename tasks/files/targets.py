"""Turns labels of a table into the target of each row, given the names of the model's labels."""

import math
from collections.abc import Mapping, Sequence

from bert.errors import InputError, listed
from bert.target_kinds import Kind
from tasks.files import label_cells, label_kinds, label_lists, label_numbers
from tasks.files.cells import TableCell, short
from tasks.files.label_cells import KnownLabels
from tasks.files.label_kinds import ColumnSettings
from tasks.files.label_lists import Cells
from tasks.files.records import Table, has_column, value_of

_OF_ANNOTATORS = "write annotators' labels into one column (no,yes,yes) and set votes to true"


def has_labels(table: Table, settings: ColumnSettings, labels: Sequence[str], labelled: str) -> bool:
    """Whether there are labels to read. Raises InputError where there are none but they are needed."""
    needed = labelled == "needed"
    present = [has_column(table, name) for name in settings.label]
    if needed or any(present):
        label_kinds.check_label_columns(table, settings)
    if len(settings.label) != 1 or not any(present):
        return any(present)
    values = [value_of(row, settings.label[0]) for row in table.rows]
    unknown = "-1" not in labels and all(value in (-1, "-1", "-1.0") for value in values) and bool(labels)
    if unknown or all(value is None for value in values):
        if needed:
            what = "-1" if unknown else "empty"
            rule = "these rows have no labels; set label to another column, or use predict"
            raise InputError(f"{table.path}: {settings.label[0]!r} is {what} in every row: {rule}")
        return False
    return True


def read_targets(
    table: Table, settings: ColumnSettings, kind: Kind, labels: Sequence[str], notes: list[str]
) -> list[list[float] | None]:
    """The target of each row; None where its label is missing."""
    known = KnownLabels(labels)
    if len(settings.label) > 1:
        targets = _column_targets(table, settings, kind, known)
    else:
        targets = _cell_targets(table, settings, kind, known, notes)
    if known.by_case:
        pairs = ", ".join(f"{label} as {name}" for label, name in list(known.by_case.items())[:5])
        notes.append(f"labels were matched whatever their case: {pairs}")
    if kind == "classes" and all(target is None or math.fsum(target) == 1 for target in targets):
        notes.append("every row has exactly one label; kind class would be the usual choice")
    if len(settings.label) == 1:
        notes += _notes_on_separators(table, settings, kind, labels)
    return targets


def _notes_on_separators(table: Table, settings: ColumnSettings, kind: Kind, labels: Sequence[str]) -> list[str]:
    """Notes on labels that may be several with a separator between them."""
    notes = []
    if kind == "classes":
        values = (value_of(row, settings.label[0]) for row in table.rows)
        whole = {value for value in values if isinstance(value, str)}
        for mark in ";|/":
            several = [name for name in labels if mark in name and name in whole]
            joined = [name for name in several if any(part.strip() in labels for part in name.split(mark))]
            if joined:
                notes.append(f"{short(joined[0])} is one label; set separator to {mark!r} if it is several")
    if kind == "class" and not settings.votes:
        inside = [name for name in labels if settings.separator in name]
        if inside and all(part.strip() in labels for name in inside for part in name.split(settings.separator)):
            notes.append(f"{short(inside[0])} is one label; set kind to classes if it is several")
    return notes


def _cell_targets(
    table: Table, settings: ColumnSettings, kind: Kind, known: KnownLabels, notes: list[str]
) -> list[list[float] | None]:
    """Targets from one column."""
    column = settings.label[0]
    cells = label_kinds.read_cells(table, column, settings, kind, known.names)
    commas = kind == "number" and label_kinds.decimal_commas(cells, settings)
    places = label_kinds.check_structures(table, column, cells, settings, kind, known.names)
    by_place = places is not None and _by_place(column, cells, places, kind, known.names, notes)
    if any(isinstance(cell.value, Mapping) for cell in cells) and kind != "number":
        what = "the votes" if settings.votes else "the names"
        notes.append(f"{column}: the labels are {what} in its objects: {listed(known.names)}")
    of_place = {cell.place: cell for cell in cells}
    targets: list[list[float] | None] = []
    for row, place in zip(table.rows, table.places, strict=True):
        cell = of_place.get(f"{place}: {column}")
        if cell:
            targets.append(_target(cell, settings, kind, known, commas, by_place))
        else:  # in a set of labels blank text is the empty set
            is_empty_set = kind == "classes" and value_of(row, column) is not None
            targets.append([0.0] * len(known.names) if is_empty_set else None)
    return targets


def _by_place(
    column: str, cells: Cells, places: tuple[Kind, int], kind: Kind, labels: tuple[str, ...], notes: list[str]
) -> bool:
    """Whether the cells are lists of numbers by place. Raises InputError where they do not fit the labels."""
    lists = f"lists of {places[1]} numbers"
    if labels == label_lists.place_names(places[1]):
        what = "shares of one label" if kind == "class" else "several labels"
        notes.append(
            f"{column}: {lists} are {what} by place, called {listed(labels)}; if annotators gave a label each, set "
            "votes to true"
        )
        return True
    if kind == "class" or labels == label_lists.place_names(len(labels)):
        raise InputError(
            f"{cells[0].place}: {lists} are labels by place, but the labels are {listed(labels)}; write their names, "
            "or a column a class"
        )
    return False


def _target(
    cell: TableCell, settings: ColumnSettings, kind: Kind, known: KnownLabels, commas: bool, by_place: bool
) -> list[float] | None:
    if kind == "number":
        number = label_kinds.number_of(cell, settings, commas)
        return None if number is None else [number]
    if by_place:
        target = [float(part) for part in label_cells.parts(cell.value, settings.separator)]
        return target if kind == "classes" else label_cells.scaled(target, cell.place, settings.normalize)
    if kind == "classes":
        shares = dict.fromkeys(label_cells.names_in_set(cell, settings.separator), 1.0)
    elif settings.votes:
        shares = label_cells.vote_shares(label_cells.votes(cell, settings.separator))
        if not shares:
            return None
    elif label_lists.is_shares(cell.value):
        shares = {name: float(share) for name, share in cell.value.items()}
    else:
        shares = {label_cells.name_of(cell): 1.0}
    target = [0.0] * len(known.names)
    for name, share in shares.items():
        target[known.index(name, cell.place)] += share
    if kind == "classes":
        return [min(share, 1.0) for share in target]
    way_out = "set votes to true if the names are annotators', "
    return label_cells.scaled(target, cell.place, settings.normalize, way_out)


def _column_targets(table: Table, settings: ColumnSettings, kind: Kind, known: KnownLabels) -> list[list[float] | None]:
    """Targets from a column a class."""
    rows = [{name: value_of(row, name) for name in settings.label} for row in table.rows]
    commas = label_numbers.has_decimal_commas(value for row in rows for value in row.values())
    names = dict(zip(settings.label, label_cells.column_names(settings.label), strict=True))
    targets: list[list[float] | None] = []
    for row, place in zip(rows, table.places, strict=True):
        if all(map(label_cells.is_missing, row.values())):
            targets.append(None)
            continue
        target = [0.0] * len(known.names)
        for column, value in row.items():
            if kind == "classes":
                value = {"true": 1, "false": 0}.get(str(value).strip().casefold(), value)
            cell = TableCell(f"{place}: {column}", 0 if label_cells.is_missing(value) else value)
            number = label_numbers.number(cell, commas, _OF_ANNOTATORS)
            if kind == "classes" and number not in (0, 1):
                raise cell.error("must be 0 or 1, for each column is one of several labels")
            target[known.index(names[column], cell.place)] = number
        if kind != "classes":
            where = f"{place}: {settings.label[0]} to {settings.label[-1]}"
            target = label_cells.scaled(target, where, settings.normalize or settings.votes)
        targets.append(target)
    return targets
