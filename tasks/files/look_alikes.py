"""Finds names that look alike but differ: "Pos" and "pos", composed and decomposed accents."""

import re
import unicodedata
from collections.abc import Iterable

# Letters of Cyrillic and Greek that look like a Latin one; marks that look like - and '
_TWINS = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425"
    "\u0391\u0392\u0395\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7\u03bf\u2010\u2011\u2012\u2013\u2014\u2212\u2019\u02bc",
    "aeopcyxisjABEKMHOPCTXABEHIKMNOPTXo------''",
)  # fmt: skip
_QUOTES = "\"'`=\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb"


def folded(name: str) -> str:
    """The name without differences in case, width, accent composition, invisible characters and surrounding quotes."""
    plain = unicodedata.normalize("NFKC", name.translate(_TWINS)).casefold()
    plain = unicodedata.normalize("NFKC", plain)
    plain = "".join(c for c in plain if unicodedata.category(c) not in ("Cf", "Cc") and not "\ufe00" <= c <= "\ufe0f")
    plain = re.sub(r"(?<=[^\W_])[-_]+(?=[^\W_])", " ", plain)
    words = " ".join(plain.split()).strip(_QUOTES).strip()
    return words or name


def groups(names: Iterable[str]) -> list[list[str]]:
    """The groups of two or more different names that look alike."""
    alike: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        alike.setdefault(folded(name), []).append(name)
    return [group for group in alike.values() if len(group) > 1]


def in_quotes(name: str) -> bool:
    """Whether a name has quotes around it, or a double quote at one end, which may come from the file's format."""
    return len(name) > 1 and ((name[0] in _QUOTES and name[-1] in _QUOTES) or '"' in (name[0], name[-1]))


def apart(name: str, known: Iterable[str]) -> str:
    """How a name differs from the known ones that it looks like, for a message; "" where it looks like none."""
    twins = [other for other in known if folded(other) == folded(name)]
    return f" ({name!a} looks like {' and '.join(map(ascii, twins))}, but differs)" if twins else ""
