"""Reads label cells: a name, several names, votes of annotators, or shares. Numbers are in label_numbers.py.

A label is missing if its cell is absent, null or blank; in a cell of several labels, blank text is the empty set. A
missing vote may also be "?". NaN and infinity are refused as labels.
"""

import decimal
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert.errors import InputError, listed
from tasks.files import printed
from tasks.files.cells import TableCell, check_characters, short
from tasks.files.label_numbers import is_number
from tasks.files.look_alikes import apart

# Rounded thirds (0.333) pass, and are scaled; 0.33 three times does not.
SHARE_TOLERANCE = 2e-3
NO_VOTE = "?"
CHOICES = ("label", "labels", "vote", "value", "choice", "answer", "annotation", "rating", "class", "category")
WEIGHTS = ("score", "probability", "confidence", "weight", "count")
_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def is_missing(value: Any) -> bool:
    """Whether there is no label at all: the cell is absent, null or blank."""
    return value is None or (isinstance(value, str) and not value.strip())


def parsed(cell: TableCell) -> TableCell:
    """The cell with its value read: lists and objects that stand in it as text (see printed.py) become such.

    Tuples become lists; parts of an object that are null are left out, and an object without any part is no label.
    """
    value = cell.value
    if isinstance(value, str):
        structure = printed.structure(value, cell.place)
        value = value if structure is None else structure
    value = printed.pairs_as_dict(value)
    if isinstance(value, Mapping):
        return cell.part({str(name): part for name, part in value.items() if part is not None} or None)
    return cell.part(list(value) if isinstance(value, tuple) else value)


def parts(value: Any, separator: str) -> Sequence[Any]:
    """The parts of a parsed value: those of a list, or of a text with a separator; else the value alone."""
    if isinstance(value, list):
        return value
    return value.split(separator) if isinstance(value, str) else [value]


def name_of(cell: TableCell) -> str:
    """The label that a cell names: text without blanks around it; whole numbers without a decimal point."""
    value = cell.value
    if isinstance(value, str):
        text = value.strip()
        check_characters(text, cell.place)
        if text.casefold() == "nan":
            raise _not_finite(cell)
        return _without_point(text)
    if isinstance(value, decimal.Decimal) and value.is_finite() and value == value.to_integral_value():
        return str(int(value))
    if isinstance(value, (float, decimal.Decimal)):
        number = float(value)
        if not math.isfinite(number):
            raise _not_finite(cell.part(number))
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, list):
        raise cell.error(
            f"holds {len(value)} labels where one is expected; set kind to classes if a row has several, votes to true "
            "if annotators gave one each"
        )
    votes = ", or set votes to true if it is an annotator's vote" * isinstance(value, Mapping)
    raise cell.error(f"is no label; write a name or a number, or name an inner column (a.b){votes}")


def _not_finite(cell: TableCell) -> InputError:
    return cell.error("is no label; leave the cell empty where there is none")


def _without_point(label: str) -> str:
    whole = _WHOLE.fullmatch(label)
    return whole[1] if whole else label


def names_in_set(cell: TableCell, separator: str) -> list[str]:
    """The labels of a cell that may hold several: a list, names with a separator, or an object name -> 0 or 1."""
    value = cell.value
    if isinstance(value, Mapping):
        for label, holds in value.items():
            if holds not in (0, 1):
                raise cell.part(label).error(f"is {short(holds)}; of several labels each must be 0 or 1")
        value = [label for label, holds in value.items() if holds]
    if isinstance(value, list) and any(isinstance(part, list) for part in value):
        raise cell.part(value).error("holds lists; write a list of names, or a column a class")
    return list(dict.fromkeys(name_of(cell.part(p)) for p in parts(value, separator) if not is_missing(p)))


def votes(cell: TableCell, separator: str) -> list[list[str]]:
    """What each annotator chose, one entry an annotator; those who did not vote are left out.

    A cell is a list, or names with a separator; or an object annotator -> choice, whose choice may be several names
    (VariErrNLI: ``{"Ann1": "neutral", "Ann2": "entailment,neutral"}``); or a list of objects with a field of `CHOICES`.
    """
    if isinstance(cell.value, Mapping):
        choices = [parts(_choice(cell.part(vote)), separator) for vote in cell.value.values()]
    else:
        if isinstance(cell.value, list) and any(isinstance(part, list) for part in cell.value):
            raise cell.error("holds lists; write an object annotator: label")
        alone = [_choice(cell.part(part)) for part in parts(cell.value, separator)]
        choices = [choice if isinstance(choice, list) else [choice] for choice in alone]
    names = [[name_of(cell.part(part)) for part in choice if not is_missing(part)] for choice in choices]
    return [choice for choice in names if choice and choice != [NO_VOTE]]


def _choice(vote: TableCell) -> Any:
    """The vote in an object like {"annotator": "ann", "label": "yes"}; any other vote as it is."""
    if not isinstance(vote.value, Mapping):
        return vote.value
    fields = [name for name in vote.value if name.casefold() in CHOICES]
    weighted = [name for name in vote.value if name.casefold() in WEIGHTS]
    if len(fields) != 1 or weighted:
        what = f"has {weighted[0]!r}, and votes have no weight" if weighted else "must have one field for the vote"
        raise vote.error(f"{what}; write an object annotator: label, or label: share")
    return vote.value[fields[0]]


def vote_shares(choices: list[list[str]]) -> dict[str, float]:
    """Label -> share; an annotator who chose k labels gives 1/k to each. The order of annotators changes nothing."""
    shares: dict[str, float] = {}
    for choice in choices:
        for label in choice:
            shares[label] = shares.get(label, 0.0) + 1.0 / len(choice) / len(choices)
    return shares


def scaled(shares: Sequence[float], place: str, normalize: bool, way_out: str = "") -> list[float]:
    """Shares that sum to 1 exactly.

    Args:
      normalize: whether other sums are scaled; else they must be 1 within SHARE_TOLERANCE.
      way_out: another way out of a wrong sum, for the message.
    """
    if min(shares) < 0:
        raise InputError(f"{place}: the share {min(shares):g} is below 0; shares are probabilities or counts of votes")
    total = math.fsum(shares)
    if total == 0:
        raise InputError(f"{place}: the shares are all 0; leave the cells empty where there is no label")
    if not normalize and abs(total - 1) > SHARE_TOLERANCE:
        shown = short([float(f"{share:g}") for share in shares])
        raise InputError(f"{place}: the shares {shown} sum to {total:g}, not 1; mend them, {way_out}or set normalize")
    return [share / total for share in shares]


def column_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Names of the classes that columns stand for: theirs, without the outer and inner parts that all share.

    ("soft_label.0", "soft_label.1") are "0" and "1"; ("s.a.1", "s.b.1") are "a" and "b".
    """
    paths = [column.split(".") for column in columns]
    while min(map(len, paths)) > 1 and len({path[0] for path in paths}) == 1:
        paths = [path[1:] for path in paths]
    while min(map(len, paths)) > 1 and len({path[-1] for path in paths}) == 1:
        paths = [path[:-1] for path in paths]
    return tuple(".".join(path) for path in paths)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names sorted; numbers by size, before all that are none."""

    def key(label: str) -> tuple[bool, float, str]:
        return (False, float(label), label) if is_number(label) else (True, 0.0, label)

    return tuple(sorted(names, key=key))


class KnownLabels:
    """The labels of a model, by name: exactly, else as a whole number, else whatever the letters' case."""

    def __init__(self, labels: Sequence[str]):
        self.names = tuple(labels)
        self.exact = {label: i for i, label in enumerate(labels)}
        folded: dict[str, list[int]] = {}
        for i, label in enumerate(labels):
            self.exact.setdefault(_without_point(label), i)  # a model that calls its classes 1.0 and 2.0
            folded.setdefault(label.casefold(), []).append(i)
        self.folded = {label: positions[0] for label, positions in folded.items() if len(positions) == 1}
        self.by_case: dict[str, str] = {}  # names that were matched whatever their case -> those of the model

    def index(self, label: str, place: str) -> int:
        """Number of a label. Raises InputError with the known ones where it is none of them."""
        if label in self.exact:
            return self.exact[label]
        position = self.folded.get(label.casefold())
        if position is None:
            twins = apart(label, self.names)
            known = f"{listed(self.names)}{twins}"
            raise InputError(f"{place}: unknown label {short(label)}; known: {known}; mend it, or train with it")
        self.by_case[label] = self.names[position]
        return position
