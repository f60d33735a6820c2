"""What a label cell holds: a name, several names, the votes of annotators, shares, or a number.

A label is missing where its cell is absent, null or blank; in a cell of several labels, blank text is the empty set. A
vote may also be "?". NaN and infinity are never labels: they come from a fault somewhere, and are refused.
"""

import decimal
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert.errors import InputError, listed
from tasks.files import printed
from tasks.files.label_numbers import is_number
from tasks.files.look_alikes import apart
from tasks.files.records import check_name, short

# Rounded thirds (0.333) pass, and are scaled; 0.33 three times does not.
SHARE_TOLERANCE = 2e-3
NO_VOTE = "?"
CHOICES = ("label", "labels", "vote", "value", "choice", "answer", "annotation", "rating", "class", "category")
WEIGHTS = ("score", "probability", "confidence", "weight", "count")
_WHOLE = re.compile(r"([+-]?\d+)\.0*")


def is_missing(value: Any) -> bool:
    """No label at all: absent, null or blank. In a set of labels, only None is (`sets`)."""
    return value is None or (isinstance(value, str) and not value.strip())


def read(value: Any, where: str) -> Any:
    """The value of a label cell: lists and objects that stand in it as text are read (printed.py).

    Tuples become lists; parts of an object that are null are left out, and an object without any part is no label.
    """
    if isinstance(value, str):
        inner = printed.structure(value, where)
        value = value if inner is None else inner
    value = printed.pairs_as_dict(value)
    if isinstance(value, Mapping):
        return {str(name): part for name, part in value.items() if part is not None} or None
    return list(value) if isinstance(value, tuple) else value


def name(value: Any, where: str) -> str:
    """The label that a cell names: text without blanks around it; whole numbers without a decimal point.

    Raises:
      InputError: NaN, infinity, a list or an object.
    """
    if isinstance(value, str):
        text = value.strip()
        check_name(text, where)
        whole = _WHOLE.fullmatch(text)
        if text.casefold() == "nan":
            raise _not_finite(value, where)
        return whole[1] if whole else text
    if isinstance(value, decimal.Decimal) and value.is_finite() and value == value.to_integral_value():
        return str(int(value))
    if isinstance(value, (float, decimal.Decimal)):
        value = float(value)
        if not math.isfinite(value):
            raise _not_finite(value, where)
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, list):
        raise InputError(
            f"{where}: {short(value)} holds {len(value)} labels where one is expected; set kind to classes if a row "
            "has several, votes to true if annotators gave one each"
        )
    votes = ", or set votes to true if it is an annotator's vote" * isinstance(value, Mapping)
    raise InputError(
        f"{where}: {short(value)} is no label; write a name or a number, or name an inner column (a.b){votes}"
    )


def _not_finite(value: Any, where: str) -> InputError:
    return InputError(f"{where}: {short(value)} is no label; leave the cell empty where there is none")


def sets(value: Any, where: str, separator: str) -> list[str]:
    """The labels of a cell that may hold several: a list, names with a separator, or an object name -> 0 or 1."""
    if isinstance(value, Mapping):
        for label, holds in value.items():
            if holds not in (0, 1):
                raise InputError(f"{where}: {short(label)} is {short(holds)}; of several labels each must be 0 or 1")
        value = [label for label, holds in value.items() if holds]
    if isinstance(value, list) and any(isinstance(part, list) for part in value):
        raise InputError(f"{where}: {short(value)} holds lists; write a list of names, or a column a class")
    return list(dict.fromkeys(name(part, where) for part in parts(value, separator) if not is_missing(part)))


def votes(value: Any, where: str, separator: str) -> list[list[str]]:
    """What each annotator chose, one entry an annotator; those who did not vote are left out.

    A cell is a list, or names with a separator; or an object annotator -> choice, whose choice may be several names
    (VariErrNLI: ``{"Ann1": "neutral", "Ann2": "entailment,neutral"}``); or a list of objects with a field of `CHOICES`.
    """
    if not isinstance(value, Mapping):
        if isinstance(value, list) and any(isinstance(part, list) for part in value):
            raise InputError(f"{where}: {short(value)} holds lists; write an object annotator: label")
        cast: Sequence[Any] = [_choice(part, where) for part in parts(value, separator)]
        cast = [part if isinstance(part, list) else [part] for part in cast]
    else:
        cast = [parts(_choice(choice, where), separator) for choice in value.values()]
    chosen = [[name(part, where) for part in choice if not is_missing(part)] for choice in cast]
    return [choice for choice in chosen if choice and choice != [NO_VOTE]]


def _choice(vote: Any, where: str) -> Any:
    """The vote in an object like {"annotator": "ann", "label": "yes"}; any other vote as it is."""
    if not isinstance(vote, Mapping):
        return vote
    fields = [name for name in vote if name.casefold() in CHOICES]
    weighted = [name for name in vote if name.casefold() in WEIGHTS]
    if len(fields) != 1 or weighted:
        what = f"has {weighted[0]!r}, and votes have no weight" if weighted else "must have one field for the vote"
        raise InputError(f"{where}: {short(vote)} {what}; write an object annotator: label, or label: share")
    return vote[fields[0]]


def vote_shares(chosen: list[list[str]]) -> dict[str, float]:
    """Label -> share; an annotator who chose k labels gives 1/k to each. The order of annotators changes nothing."""
    shares: dict[str, float] = {}
    for choice in chosen:
        for label in choice:
            shares[label] = shares.get(label, 0.0) + 1.0 / len(choice) / len(chosen)
    return shares


def scaled(shares: Sequence[float], where: str, normalize: bool, other: str = "") -> list[float]:
    """Shares that sum to 1 exactly.

    Args:
      normalize: whether other sums are scaled; else they must be 1 within SHARE_TOLERANCE.
      other: another way out of a wrong sum, for the message.

    Raises:
      InputError: a share below 0, or a sum that is not 1 (or is 0).
    """
    if min(shares) < 0:
        raise InputError(f"{where}: the share {min(shares):g} is below 0; shares are probabilities or counts of votes")
    total = math.fsum(shares)
    shown = short([float(f"{share:g}") for share in shares])
    if total == 0:
        raise InputError(f"{where}: the shares are all 0; leave the cells empty where there is no label")
    if not normalize and abs(total - 1) > SHARE_TOLERANCE:
        raise InputError(
            f"{where}: the shares {shown} sum to {total:g}, not 1; mend them, {other}or set normalize to true"
        )
    return [share / total for share in shares]


def column_names(columns: Sequence[str]) -> tuple[str, ...]:
    """Names of the classes that columns stand for: theirs, without the outer and inner parts that all share.

    ("soft_label.0", "soft_label.1") are "0" and "1"; ("s.a.1", "s.b.1") are "a" and "b".
    """
    parts = [column.split(".") for column in columns]
    while min(map(len, parts)) > 1 and len({part[0] for part in parts}) == 1:
        parts = [part[1:] for part in parts]
    while min(map(len, parts)) > 1 and len({part[-1] for part in parts}) == 1:
        parts = [part[:-1] for part in parts]
    return tuple(".".join(part) for part in parts)


def ordered(names: Iterator[str] | set[str]) -> tuple[str, ...]:
    """Names sorted; numbers by size, before all that are none."""

    def key(label: str) -> tuple[bool, float, str]:
        return (False, float(label), label) if is_number(label) else (True, 0.0, label)

    return tuple(sorted(names, key=key))


class Known:
    """The known labels of a model, by name: exactly, else as a whole number, else whatever the letters' case."""

    def __init__(self, labels: Sequence[str]):
        self.labels = tuple(labels)
        self.exact = {label: i for i, label in enumerate(labels)}
        for i, label in enumerate(labels):  # a model that calls its classes 1.0 and 2.0
            whole = _WHOLE.fullmatch(label)
            self.exact.setdefault(whole[1] if whole else label, i)
        folded: dict[str, list[int]] = {}
        for i, label in enumerate(labels):
            folded.setdefault(label.casefold(), []).append(i)
        self.folded = {label: positions[0] for label, positions in folded.items() if len(positions) == 1}
        self.by_case: dict[str, str] = {}  # names that were matched whatever their case -> the known ones

    def index(self, label: str, where: str) -> int:
        """Number of a label. Raises InputError with the known ones where it is none of them."""
        if label in self.exact:
            return self.exact[label]
        position = self.folded.get(label.casefold())
        if position is None:
            twins = apart(label, self.labels)
            raise InputError(
                f"{where}: unknown label {short(label)}; known: {listed(self.labels)}{twins}; mend it, or train with it"
            )
        self.by_case[label] = self.labels[position]
        return position


def parts(value: Any, separator: str) -> Sequence[Any]:
    """The parts of a cell that `read` gave: those of a list, or of a text with a separator; else the value alone."""
    if isinstance(value, list):
        return value
    return value.split(separator) if isinstance(value, str) else [value]
