"""Tags of spans: B begins one, I continues it, O is outside; with a type (B-PER) or without (B).

In IOB2, each span begins with B. In IOB1, it begins with I, or with B if it directly follows a span of the same type.
So one rule (`repaired`) converts IOB1 to IOB2 and repairs an I that continues nothing.

Source: Ramshaw and Marcus 1995; Tjong Kim Sang and Veenstra 1999.
"""

import itertools
import re
from collections.abc import Sequence

_TAG = re.compile(r"O|[BI](-\S.*)?")


def is_tag(text: str) -> bool:
    """Whether a text is one of O, B, I, B-TYPE, I-TYPE."""
    return _TAG.fullmatch(text) is not None


def are_bio(labels: Sequence[str]) -> bool:
    """Whether a model's labels are B, I and O, with or without types; O must be among them."""
    return "O" in labels and all(map(is_tag, labels))


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


def repaired(tags: Sequence[str | None]) -> list[str | None]:
    """The tags with each I that begins a span made a B; one after None stays, for its B may be what is not there."""
    return [
        "B" + tag[1:] if tag is not None and tag[0] == "I" and begins(before, tag) else tag
        for before, tag in itertools.pairwise(["O", *tags])
    ]


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
