"""Reads lists and objects in label cells: several labels by position, shares by position or name, or votes.

Without votes, and with kind "auto":

- lists of 0 and 1 (or true and false), equally long: several labels by position, called "0", "1", ...;
- lists of numbers with fractions, equally long: shares of one label by position (also 0 and 1, with kind class);
- other lists: the names of several labels;
- objects name -> number: shares of one label by name (kind classes: name -> 0 or 1).

Objects with the names of annotators are refused, because these names would become classes; votes=True reads them.
Ambiguous columns are also refused, in the functions below.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bert.errors import listed
from bert.target_kinds import Kind
from tasks.files import label_cells, printed
from tasks.files.cells import TableCell, short
from tasks.files.label_numbers import is_number, is_number_otherwise

_ANNOTATOR = re.compile(
    r"(ann|anno|annot|annotator|rater|coder|worker|user|judge|expert|turker|participant|labell?er|reviewer|crowd|person)"
    r"s?[ _.:#-]*(id)?[ _.:#-]*(\d+|[a-z]|[a-z]\d+)|(?=.*\d)A[0-9A-Z]{11,14}",  # the latter: of Mechanical Turk
    re.IGNORECASE,
)
Cells = Sequence[TableCell]  # those of a column that have a label, parsed by `label_cells.parsed`


def look_like_annotators(names: Sequence[str]) -> bool:
    """Whether most names are like "Ann1", "annotator_b" or "worker 7"."""
    return len(names) > 0 and 2 * sum(bool(_ANNOTATOR.fullmatch(name.strip())) for name in names) > len(names)


def is_shares(value: Any) -> bool:
    """Whether it is an object label -> share."""
    return isinstance(value, Mapping) and bool(value) and all(map(is_number, value.values()))


def check_objects(
    column: str, cells: Cells, kind: str, normalize: bool, as_text: bool, known: Sequence[str] = ()
) -> None:
    """Refuses objects that are no shares of labels, or whose names may be annotators'.

    Args:
      kind: as the settings say.
      as_text: whether the objects stand in the table as text, so that no setting can name what is inside.
      known: labels of a model; objects with these names alone are shares.
    """
    objects = [cell for cell in cells if isinstance(cell.value, Mapping)]
    fields = [name for name in label_cells.CHOICES if objects and all(name in cell.value for cell in objects)]
    if len(fields) == 1 and not known:
        inside = f"write its {fields[0]} alone" if as_text else f"set label to what is inside, {column}.{fields[0]}"
        raise objects[0].error(f"is no label; {inside}")
    names = list(dict.fromkeys(name for cell in objects for name in cell.value))
    if not objects or (known and set(names) <= set(known)):
        return
    annotators = f"set votes to true if {listed(map(short, names), 3)} are annotators"
    inner = f"name them in label ({listed((f'{column}.{name}' for name in names), 3)})"
    if as_text:
        inner = "write a column for each"
    classes = "give them other names" if look_like_annotators(names) else inner
    votes = f"is no label; it looks like votes: {annotators}, or {classes} if they are classes"
    first = objects[0]
    for cell in objects:
        if not all(map(_is_numeric, cell.value.values())):
            raise cell.error(votes)
    whole = all(isinstance(s, str) and float(s).is_integer() for cell in objects for s in cell.value.values())
    zeros = {frozenset(cell.value) for cell in objects if 0 in cell.value.values()}
    # An object that names labels with a share of 0 names all of them; annotators come and go.
    if look_like_annotators(names) or whole or (len(zeros) > 1 and not set(names) & set(known)):
        raise first.error(votes)
    for cell in objects:
        shares = cell.value.values()
        if kind == "auto" and not normalize and all(share in (0, 1) for share in shares) and sum(shares) != 1:
            raise cell.error(
                f"has {sum(shares):g} names with 1; set kind to classes if these are labels of the row, votes to true "
                "if the names are annotators', or normalize to true if they are counts"
            )


def check_votes(cells: Cells, names: Sequence[str]) -> None:
    """Refuses votes that would make classes of annotators' names, or of the numbers of votes."""
    if look_like_annotators(names):
        raise cells[0].part(names[:5]).error("are votes that look like annotators; write an object annotator: label")
    counts = [tuple(map(str, cell.value.values())) for cell in cells if isinstance(cell.value, Mapping)]
    numbers = len(set(counts)) > 2 and all(is_number(count) for row in counts for count in row)
    if numbers and len({sum(map(float, row)) for row in counts}) == 1 and sum(map(float, counts[0])) > len(counts[0]):
        raise cells[0].error(
            "looks like numbers of votes: all rows have one sum; set votes to false, normalize to true"
        )


def refuse_decimals(cells: Cells) -> None:
    """Refuses votes like "0,25" and "3,75" in all cells, which may be numbers with decimal commas."""
    texts = [cell for cell in cells if isinstance(cell.value, str)]
    split = [cell.value.strip().split(",") for cell in texts]
    pairs = [pair for pair in split if len(pair) == 2 and pair[0].strip("+-").isdecimal() and pair[1].isdecimal()]
    whole = [alone for alone in split if len(alone) == 1 and is_number(alone[0])]
    if not pairs or len(pairs) + len(whole) < len(cells):
        return
    longest = max(len(pair[0]) for pair in pairs)
    for cell, numbers in zip(texts, split, strict=True):
        if len(numbers) > 1 and len(numbers[-1]) > longest:
            raise cell.error(
                "may be a number with a decimal comma; set votes to false and kind to number, or write votes as lists "
                "[1, 25]"
            )


def refuse_mixture(cells: Cells) -> None:
    """Refuses lists of numbers beside names, which is mostly a fault."""
    each = [cell.part(p) for cell in cells for p in (cell.value if isinstance(cell.value, list) else [cell.value])]
    for cell in each:
        if is_number_otherwise(cell.value):
            raise cell.error(
                "in a list may be a number or a name; write numbers with a decimal point, or set kind to classes if it "
                "is a name"
            )
    numbers = [cell for cell in each if is_number(cell.value)]
    others = [cell for cell in each if not is_number(cell.value) and not isinstance(cell.value, bool | None)]
    refuse_names_beside_numbers(numbers, others, "classes")


def refuse_names_beside_numbers(numbers: Cells, others: Cells, kind: str) -> None:
    """Refuses labels of which some are numbers and others are not; ``kind``: the setting that takes all as names."""
    if numbers and others:
        label_cells.name_of(others[0])  # NaN has a message of its own
        raise others[0].error(
            f"is a name, but {numbers[0].place} has the number {short(numbers[0].value)}; mend one, or set kind to "
            f"{kind} if all are names"
        )


def refuse_texts(cells: Cells, is_list: Callable[[str], bool]) -> None:
    """Refuses texts that look like lists or objects, but are in no form that is read."""
    for cell in cells:
        if isinstance(cell.value, str) and is_list(cell.value):
            raise cell.error("looks like a list or an object; write it as JSON, or set kind to class if it is a name")


def refuse_unbracketed(cells: Cells, separator: str) -> None:
    """Refuses texts that are lists or objects without brackets, and lists of votes."""
    refuse_texts(cells, printed.is_unbracketed)
    lists = [[name.strip() for name in cell.value.split(separator)] for cell in cells if isinstance(cell.value, str)]
    if len(lists) < len(cells) or len(set(map(len, lists))) > 1:
        return
    for cell, names in zip(cells, lists, strict=True):
        if len(set(names)) < len(names):
            raise cell.error("has a name twice; set votes to true if annotators voted, kind to class if it is one name")


def places(cells: Cells, kind: str, normalize: bool, separator: str) -> tuple[Kind, int] | None:
    """(kind, length of the lists) of a column of lists of numbers by place; None where they are names, or no lists.

    Args:
      kind: as the settings say; of kind classes a cell may also be numbers with a separator.
    """
    lists = [cell for cell in cells if isinstance(cell.value, list)]
    if not lists and (kind != "classes" or not cells):
        return None
    for cell in lists:
        if None in cell.value and any(map(_is_numeric, cell.value)):
            raise cell.error("has a place without a number; write one, or leave the cell empty")
    values = [label_cells.parts(cell.value, separator) if kind == "classes" else cell.value for cell in cells]
    if not all(isinstance(value, list) and all(map(_is_numeric, value)) for value in values):
        return None
    rows = [[float(part) for part in value] for value in values]
    lengths = {len(row): cell.place for cell, row in reversed(list(zip(cells, rows, strict=True)))}  # the first of each
    by_place = min(lengths) > 1 and len(lengths) == 1
    numbers = [part for row in rows for part in row]
    binary, fractions = all(part in (0, 1) for part in numbers), not all(part.is_integer() for part in numbers)
    if by_place and (kind == "class" or (kind == "auto" and (fractions or normalize))):
        return "class", min(lengths)
    if by_place and binary:
        return "classes", min(lengths)
    # Sets of numbers as long as each other and with one sum are counts of votes; of 0 and 1 beside empty ones, places.
    are_counts = by_place and len({tuple(row) for row in rows}) > 2 and len({sum(row) for row in rows}) == 1
    are_places = binary and len(lengths) == 2 and min(lengths) == 0 and max(lengths) > 1
    for cell, row in zip(cells, rows, strict=True):
        if fractions or are_counts or are_places or len(set(row)) < len(row):
            long = ", ".join(f"{length} in {place}" for length, place in sorted(lengths.items())[:2])
            raise cell.part([int(part) if part.is_integer() else part for part in row]).error(
                f"is no set of labels, and by place it must be 0 and 1, equally many in each row ({long}); write a "
                "column a class, or, if these are shares or counts, set kind to class and normalize to true"
            )
    return None


def place_names(count: int) -> tuple[str, ...]:
    """Names of labels by place."""
    return tuple(map(str, range(count)))


def _is_numeric(part: Any) -> bool:
    return isinstance(part, bool) or is_number(part)
