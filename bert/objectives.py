"""The registry of objectives: which words of a text pretraining predicts, and from which others.

A new objective is a line here, the places that it predicts (bert/data/assembly.py), and encoders that offer it
(`architectures.Encoder.objectives`).
"""

from typing import NamedTuple

from bert.errors import InputError, check_choice


class Objective(NamedTuple):
    """What an objective asks of batches and encoders."""

    meaning: str
    pairs: bool = False  # whether examples may be pairs of segments, whose relation is a second loss
    masked: bool = False  # whether only a share of the words is predicted, which are replaced in the text


OBJECTIVES: dict[str, Objective] = {
    "mlm": Objective("masked words, each from all others", pairs=True, masked=True),
    "blank": Objective("each word from all others, which the encoder reads from both sides"),
    "causal": Objective("each word from those before it"),
}


def pairs_of(name: str, pairs: str | None) -> str:
    """The objective of pairs (nsp, sop, none) beside this one; None: not set.

    Raises InputError for an unknown objective, and for pairs where it takes none.
    """
    check_choice("objective", name, tuple(OBJECTIVES))
    if OBJECTIVES[name].pairs:
        return pairs or "nsp"
    if pairs not in (None, "none"):
        raise InputError(f"examples.objective is {pairs!r}, but objective={name} has no pairs; set it to none")
    return "none"
