"""`ReadReport`: how many rows of a file were read, kept and dropped, and why. `ReadRows`: the rows and their report."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from bert.errors import InputError, check_choice, printable

LABELLED = ("needed", "if there", "no")
Row = TypeVar("Row")


@dataclasses.dataclass(frozen=True)
class ReadReport:
    """Rows read = kept + all elsewhere + all dropped.

    dropped: reason -> (rows, place of the first). elsewhere: what became of the rows that a split gave to another part,
      such as "split off for validation (share 0.1, seed 0)" -> rows. beside: files that were read with the source.
    """

    source: str
    read: int
    kept: int
    dropped: Mapping[str, tuple[int, str]] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    elsewhere: Mapping[str, int] = dataclasses.field(default_factory=dict)
    beside: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = "".join(f", {count:,} {what}" for what, count in {"kept": self.kept, **self.elsewhere}.items())
        lost = "".join(f"; dropped {count:,}: {why} (first {place})" for why, (count, place) in self.dropped.items())
        return "\n".join(map(printable, [f"{self.source}: {self.read:,} rows read{parts}{lost}", *self.notes]))

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        dropped = {why: {"rows": count, "first": place} for why, (count, place) in self.dropped.items()}
        return {"read": self.read, "kept": self.kept, "dropped": dropped, "notes": list(self.notes)}

    def with_notes(self, notes: Sequence[str]) -> "ReadReport":
        return dataclasses.replace(self, notes=(*self.notes, *notes))

    def divided(
        self, is_validation_N: np.ndarray, share: float, seed: int, notes: Sequence[str] = ()
    ) -> tuple["ReadReport", "ReadReport"]:
        """The reports of the training and the validation part of N rows; each says how many went to the other part.

        Args:
          notes: on the split, for the training part.
        """
        held = int(is_validation_N.sum())

        def part(others: int, what: str) -> ReadReport:
            elsewhere = {**self.elsewhere, what: self.elsewhere.get(what, 0) + others}
            return dataclasses.replace(self, kept=len(is_validation_N) - others, elsewhere=elsewhere)

        train = part(held, f"split off for validation (share {share:g}, seed {seed})")
        left = f"left in the training part (share {1 - share:g}, seed {seed})"
        return train.with_notes(notes), part(len(is_validation_N) - held, left)


class ReadRows(NamedTuple, Generic[Row]):
    """Rows in the order of their file, and their report."""

    rows: list[Row]
    report: ReadReport

    def take(self, indices: Sequence[int]) -> "ReadRows[Row]":
        """Some of the rows, under the same report."""
        return self._replace(rows=[self.rows[i] for i in indices])

    def divided(
        self, is_validation_N: np.ndarray, share: float, seed: int, notes: Sequence[str] = ()
    ) -> tuple["ReadRows[Row]", "ReadRows[Row]"]:
        """The training and the validation part; arguments as of `ReadReport.divided`."""
        reports = self.report.divided(is_validation_N, share, seed, notes)
        parts = ([self.rows[i] for i in np.flatnonzero(chosen)] for chosen in (~is_validation_N, is_validation_N))
        train, validation = (ReadRows(rows, report) for rows, report in zip(parts, reports, strict=True))
        return train, validation


class Tally:
    """What readers count: each kind of fault with its number and its first place."""

    def __init__(self, counts: Mapping[str, tuple[int, str]] | None = None) -> None:
        self.counts: dict[str, tuple[int, str]] = dict(counts or {})

    def add(self, what: str, place: str, count: int = 1) -> None:
        before, first = self.counts.get(what, (0, place))
        self.counts[what] = (before + count, first)

    def notes(self) -> list[str]:
        return [f"{what}: {count:,} (first {place})" for what, (count, place) in self.counts.items()]


def check_labelled(labelled: str) -> None:
    """Refuses what is none of `LABELLED`."""
    check_choice("labelled", labelled, LABELLED)


def kept_rows(
    rows: str, places: Sequence[str], reasons: Mapping[str, Sequence[bool]], drop: Collection[str],
    mention: Collection[str], notes: list[str],
) -> tuple[list[int], dict[str, tuple[int, str]]]:  # fmt: skip
    """(indices of the rows that are kept, dropped ones by reason).

    Args:
      rows: what they are called, "rows".
      reasons: reason ("no text") -> of each row, whether it has it; the first reason of a row counts.
      drop, mention: the reasons for which rows are dropped; those that get a note where rows are kept in spite of them.
    """
    left = list(range(len(places)))
    dropped = {}
    for reason, has_it in reasons.items():
        those = [i for i in left if has_it[i]]
        if those and reason in drop:
            dropped[reason] = (len(those), places[those[0]])
            left = [i for i in left if not has_it[i]]
        elif those and reason in mention:
            notes.append(f"{len(those):,} {rows} have {reason} and are kept (first {places[those[0]]})")
    return left, dropped


def none_left(path: str, rows: str, read: int, dropped: Mapping[str, tuple[int, str]], question: str) -> InputError:
    """The error of a file of which no row can be used; ``question``: what may be wrong, ending in "?"."""
    why = ", ".join(f"{reason}: {count:,}" for reason, (count, _) in dropped.items())
    return InputError(f"{path}: none of {read:,} {rows} can be used ({why}); {question}")
