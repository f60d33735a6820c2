"""Tags of spans: B begins one, I continues it, O is outside; with a type (B-PER) or without (B).

In IOB2, each span begins with B. In IOB1, it begins with I, or with B if it directly follows a span of the same type.
Other schemes also mark the last word of a span, and a span of one word; `in_iob2` reads all of them by one rule.

begin inside end single
B     I      E   S       BIOES, IOBES
B     I      L   U       BILOU, BIOLU
B     M      E   S or W  BMES, BMEWO

Source: Ramshaw and Marcus 1995; Tjong Kim Sang and Veenstra 1999; Ratinov and Roth 2009.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

_TAG = re.compile(r"O|[BI](-\S.*)?")
ROLES = {"B": "B", "I": "I", "M": "I", "E": "E", "L": "E", "S": "S", "U": "S", "W": "S"}  # letter -> as BIOES has it
_ANY_TAG = re.compile(rf"O|[{''.join(ROLES)}](-\S.*)?")

Tag = TypeVar("Tag", str, str | None)

_NO_TAG = re.compile(r"X|PAD|LABEL_[0-9]+|\[\w+\]|<\w+>", re.IGNORECASE)  # of some models: [PAD], and X inside of words


def is_tag(text: str) -> bool:
    """Whether a text is one of O, B, I, B-TYPE, I-TYPE."""
    return _TAG.fullmatch(text) is not None


def is_tag_of_any_scheme(text: str) -> bool:
    """Whether a text is O, or one of the letters of `ROLES` alone or with a type."""
    return _ANY_TAG.fullmatch(text) is not None


def are_bio(labels: Sequence[str]) -> bool:
    """Whether a model's labels are B, I and O, with or without types; O must be among them."""
    return "O" in labels and all(map(is_tag, labels))


def are_entities(labels: Sequence[str]) -> bool:
    """Whether a model's labels mark spans in any scheme; what others call padding and the like may be beside them."""
    tags = [label for label in labels if not _NO_TAG.fullmatch(label)]
    begun = any(parse(label)[0] in ("B", "I") for label in tags)
    return all(map(is_tag_of_any_scheme, tags)) and (begun or are_bio(tags))


def parse(tag: str) -> tuple[str, str]:
    """("B", "PER") of "B-PER"; ("O", "") of "O"; ("B", "") of a bare "B"."""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def begins(before: str | None, tag: str) -> bool:
    """Whether a B or I begins a span by the tag before it, whichever of the two it is.

    Args:
      before: "O" for the first word; None: the word before has no tag, so nothing is known.
    """
    return before is not None and (before == "O" or parse(before)[1] != parse(tag)[1])


def in_iob2(tags: Sequence[str | None], marked: Collection[str] = "B") -> tuple[list[str | None], int]:
    """(the tags of any scheme in IOB2, how many words are at fault). What is no tag of a span becomes O.

    A span begins at B and S, and at any other tag that continues no span of its type. It ends at E and S, and where the
    next tag does not continue it. I and E after None stay I, for the B may be what is not there.

    Args:
      marked: which of B, E and S the scheme writes wherever it can. A span that begins or ends without is a fault.
    """
    if set(tags) == {"O"}:  # as in most sentences
        return list(tags), 0
    mended: list[str | None] = []
    faults = length = 0  # of the span that may go on
    open_kind: str | None = None
    unknown = False  # whether the word before has no tag
    for tag in (*tags, "O"):
        if tag is None:
            mended.append(None)
            open_kind, unknown = None, True
            continue
        prefix, kind = parse(tag)
        role = ROLES.get(prefix, "O")
        goes_on = role in ("I", "E") and (unknown or kind == open_kind)
        unclosed = open_kind is not None and not goes_on and ("S" if length == 1 else "E") in marked
        stray = role in ("I", "E") and not goes_on and "B" in marked
        faults += unclosed or stray
        letter = "O" if role == "O" else "I" if goes_on else "B"
        mended.append(f"{letter}-{kind}" if kind and role != "O" else letter)
        length = length + 1 + unknown if goes_on else 1
        open_kind, unknown = kind if role in ("B", "I") else None, False
    return mended[:-1], faults


def merged_labels(labels: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """(the labels in IOB2 that stand for a model's labels of any scheme, the index among them of each of its own)."""
    parsed = [parse(label) for label in labels]
    kinds = dict.fromkeys(kind for prefix, kind in parsed if prefix in ROLES)
    merged = ("O", *(f"{letter}-{kind}" if kind else letter for kind in kinds for letter in "BI"))
    letters = [ROLES.get(prefix, "O").replace("S", "B").replace("E", "I") for prefix, _ in parsed]
    renamed = [f"{x}-{kind}" if kind and x != "O" else x for x, (_, kind) in zip(letters, parsed, strict=True)]
    return merged, [merged.index(label) for label in renamed]


def repaired(tags: Sequence[Tag]) -> list[Tag]:
    """The tags of any scheme in IOB2; in tags B, I and O, each I that begins a span becomes B. See `in_iob2`."""
    mended: list[Any] = in_iob2(tags)[0]  # None only where the tag is None
    return mended


def spans(tags: Sequence[str], *, strict: bool = False) -> list[tuple[str, int, int]]:
    """(type, first, last + 1) of each span.

    Args:
      strict: an I that continues no span belongs to none; else it begins one.
    """
    ranges: list[tuple[str, int, int]] = []
    open_kind: str | None = None  # of the span that the word before belongs to
    for place, (prefix, kind) in enumerate(map(parse, tags)):
        if prefix == "I" and kind == open_kind:
            ranges[-1] = (kind, ranges[-1][1], place + 1)
        elif prefix == "B" or (prefix == "I" and not strict):
            ranges.append((kind, place, place + 1))
            open_kind = kind
        else:
            open_kind = None
    return ranges
