"""The meaning of lists and objects in label cells: several labels by place, shares by place or by name, or votes.

Without votes, and with kind "auto":

- lists of 0 and 1 (or true and false), equally long: several labels by place, called "0", "1", ...;
- lists of numbers with fractions, equally long: shares of one label by place (so are lists of 0 and 1 with kind class);
- other lists: the names of several labels;
- objects name -> number: shares of one label by name (kind classes: name -> 0 or 1).

Objects with the names of annotators are refused, for these names would become classes; votes=True reads them.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bert.errors import InputError, listed
from bert.target_kinds import Kind
from tasks.files import labels as cells
from tasks.files import printed
from tasks.files.label_numbers import is_number, is_number_otherwise
from tasks.files.records import short

_ANNOTATOR = re.compile(
    r"(ann|anno|annot|annotator|rater|coder|worker|user|judge|expert|turker|participant|labell?er|reviewer|crowd|person)"
    r"s?[ _.:#-]*(id)?[ _.:#-]*(\d+|[a-z]|[a-z]\d+)|(?=.*\d)A[0-9A-Z]{11,14}",  # the latter: of Mechanical Turk
    re.IGNORECASE,
)
Filled = Sequence[tuple[str, Any]]  # (place and column, what labels.read gives) of each cell with a label


def look_like_annotators(names: Sequence[str]) -> bool:
    """Whether most names are like "Ann1", "annotator_b" or "worker 7"."""
    return len(names) > 0 and 2 * sum(bool(_ANNOTATOR.fullmatch(name.strip())) for name in names) > len(names)


def is_shares(value: Any) -> bool:
    """An object label -> share."""
    return isinstance(value, Mapping) and bool(value) and all(is_number(share) for share in value.values())


def check_objects(
    column: str, filled: Filled, kind: str, normalize: bool, as_text: bool, known: Sequence[str] = ()
) -> None:
    """Refuses objects that are no shares of labels, or whose names may be annotators'.

    Args:
      kind: as the settings say.
      as_text: whether the objects stand in the table as text, so that no setting can name what is inside.
      known: labels of a model; objects with these names alone are shares.
    """
    objects = [(where, value) for where, value in filled if isinstance(value, Mapping)]
    fields = [name for name in cells.CHOICES if objects and all(name in value for _, value in objects)]
    if len(fields) == 1 and not known:
        inside = f"write its {fields[0]} alone" if as_text else f"set label to what is inside, {column}.{fields[0]}"
        raise InputError(f"{objects[0][0]}: {short(objects[0][1])} is no label; {inside}")
    names = list(dict.fromkeys(name for _, value in objects for name in value))
    if not objects or (known and set(names) <= set(known)):
        return
    where, value = objects[0]
    annotators = f"set votes to true if {listed(map(short, names), 3)} are annotators"
    inner = f"name them in label ({listed((f'{column}.{name}' for name in names), 3)})"
    if as_text:
        inner = "write a column for each"
    classes = "give them other names" if look_like_annotators(names) else inner
    votes = f"{short(value)} is no label; it looks like votes: {annotators}, or {classes} if they are classes"
    zeros = {frozenset(value) for _, value in objects if 0 in value.values()}
    for where, value in objects:
        strange = next(
            (share for share in value.values() if not isinstance(share, bool) and not is_number(share)), None
        )
        if isinstance(strange, (Mapping, list)) or strange is not None:
            raise InputError(f"{where}: {votes}")
    whole = all(
        isinstance(share, str) and float(share).is_integer() for _, value in objects for share in value.values()
    )
    # An object that names labels with a share of 0 names all of them; annotators come and go.
    if look_like_annotators(names) or whole or (len(zeros) > 1 and not set(names) & set(known)):
        raise InputError(f"{objects[0][0]}: {votes}")
    for where, value in objects:
        binary = all(share in (0, 1) for share in value.values())
        if kind == "auto" and not normalize and binary and sum(value.values()) != 1:
            raise InputError(
                f"{where}: {short(value)} has {sum(value.values()):g} names with 1; set kind to classes if these are "
                "labels of the row, votes to true if the names are annotators', or normalize to true if they are counts"
            )


def check_votes(column: str, filled: Filled, names: Sequence[str]) -> None:
    """Refuses votes that would make classes of annotators' names, or of the numbers of votes."""
    if look_like_annotators(names):
        raise InputError(
            f"{filled[0][0]}: the votes are {listed(map(short, names), 5)}, which look like annotators; write an "
            "object annotator: label"
        )
    counts = [tuple(map(str, value.values())) for _, value in filled if isinstance(value, Mapping)]
    numbers = len(set(counts)) > 2 and all(is_number(count) for row in counts for count in row)
    if numbers and len({sum(map(float, row)) for row in counts}) == 1 and sum(map(float, counts[0])) > len(counts[0]):
        raise InputError(
            f"{filled[0][0]}: {short(filled[0][1])} looks like numbers of votes, for they have one sum in all rows; "
            "set votes to false and normalize to true"
        )


def refuse_decimals(filled: Filled) -> None:
    """Refuses votes like "0,25" and "3,75" in all cells, which may be numbers with decimal commas."""
    split = [value.strip().split(",") for _, value in filled if isinstance(value, str)]
    pairs = [pair for pair in split if len(pair) == 2 and pair[0].strip("+-").isdecimal() and pair[1].isdecimal()]
    whole = [alone for alone in split if len(alone) == 1 and is_number(alone[0])]
    if not pairs or len(pairs) + len(whole) < len(filled):
        return
    longest = max(len(pair[0]) for pair in pairs)
    for where, value in filled:
        if isinstance(value, str) and len(value.strip().rpartition(",")[2]) > longest and "," in value:
            raise InputError(
                f"{where}: {short(value)} may be a number with a decimal comma; set votes to false and kind to number, "
                "or write votes as lists [1, 25]"
            )


def refuse_mixture(filled: Filled) -> None:
    """Refuses lists of numbers beside names, which is mostly a fault."""
    parts = [(where, part) for where, value in filled for part in (value if isinstance(value, list) else [value])]
    for where, part in parts:
        if is_number_otherwise(part):
            raise InputError(
                f"{where}: {short(part)} in a list may be a number or a name; write numbers with a decimal point, or "
                "set kind to classes if it is a name"
            )
    numbers = [each for each in parts if is_number(each[1])]
    others = [each for each in parts if not is_number(each[1]) and not isinstance(each[1], bool | None)]
    refuse_names_beside_numbers(numbers, others, "classes")


def refuse_names_beside_numbers(numbers: Filled, others: Filled, kind: str) -> None:
    """Refuses labels of which some are numbers and others are not; ``kind``: the setting that takes all as names."""
    if numbers and others:
        where, value = others[0]
        cells.name(value, where)  # NaN has a message of its own
        raise InputError(
            f"{where}: the label {short(value)} is a name, but {numbers[0][0]} has the number {short(numbers[0][1])}; "
            f"mend one, or set kind to {kind} if all are names"
        )


def refuse_printed(filled: Filled) -> None:
    """Refuses texts that look like lists of a language that is not read."""
    for where, value in filled:
        if isinstance(value, str) and printed.looks_printed(value):
            raise _looks_like_a_list(where, value)


def _looks_like_a_list(where: str, text: str) -> InputError:
    return InputError(
        f"{where}: {short(text)} looks like a list or an object; write it as JSON, or set kind to class if it is a name"
    )


def refuse_unbracketed(filled: Filled, separator: str) -> None:
    """Refuses texts that are lists or objects without brackets, and lists of votes."""
    for where, value in filled:
        if isinstance(value, str) and printed.is_unbracketed(value):
            raise _looks_like_a_list(where, value)
    parts = [value.split(separator) for _, value in filled if isinstance(value, str)]
    if len(parts) == len(filled) and len(set(map(len, parts))) == 1:
        twice = next((i for i, names in enumerate(parts) if len({n.strip() for n in names}) < len(names)), None)
        if twice is not None:
            where, value = filled[twice]
            raise InputError(
                f"{where}: {short(value)} has a name twice; set votes to true if annotators gave a label each, or kind "
                "to class if it is one name"
            )


def places(filled: Filled, kind: str, normalize: bool, separator: str) -> tuple[Kind, int] | None:
    """(kind, length of the lists) of a column of lists of numbers by place; None where they are names, or no lists.

    Args:
      kind: as the settings say; of kind classes a cell may also be numbers with a separator.
    """
    lists = [(where, value) for where, value in filled if isinstance(value, list)]
    if not lists and kind != "classes":
        return None
    split = [(where, cells.parts(value, separator) if kind == "classes" else value) for where, value in filled]
    for where, value in lists:
        if None in value and any(map(_is_numeric, value)):
            raise InputError(
                f"{where}: {short(value)} has a place without a number; write one, or leave the cell empty"
            )
    if not all(isinstance(value, list) and all(map(_is_numeric, value)) for _, value in split):
        return None
    rows = [(where, [float(part) for part in value]) for where, value in split]
    lengths = {len(row): where for where, row in reversed(rows)}  # the first place of each
    by_place = min(lengths) > 1 and len(lengths) == 1
    flat = [part for _, row in rows for part in row]
    binary, fractions = all(part in (0, 1) for part in flat), not all(part.is_integer() for part in flat)
    if by_place and (kind == "class" or (kind == "auto" and (fractions or normalize))):
        return "class", min(lengths)
    if by_place and binary:
        return "classes", min(lengths)
    # Sets of numbers as long as each other and with one sum are counts of votes; of 0 and 1 beside empty ones, places.
    are_counts = by_place and len({tuple(row) for _, row in rows}) > 2 and len({sum(row) for _, row in rows}) == 1
    are_places = binary and len(lengths) == 2 and min(lengths) == 0 and max(lengths) > 1
    for where, row in rows:
        if fractions or are_counts or are_places or len(set(row)) < len(row):
            long = ", ".join(f"{length} in {place}" for length, place in sorted(lengths.items())[:2])
            shown = short([int(part) if part.is_integer() else part for part in row])
            raise InputError(
                f"{where}: {shown} is no set of labels, and by place it must be 0 and 1, equally many in each row "
                f"({long}); write a column a class, or, if these are shares or counts, set kind to class and "
                "normalize to true"
            )
    return None


def place_names(count: int) -> tuple[str, ...]:
    """Names of labels by place."""
    return tuple(map(str, range(count)))


def _is_numeric(part: Any) -> bool:
    return isinstance(part, bool) or is_number(part)
