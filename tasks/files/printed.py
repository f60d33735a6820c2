"""Parses lists and objects that are text in a cell: JSON, or as Python, NumPy, R and others print them.

It reads JSON, Python literals, and flat lists as NumPy, R (``c(1, 0)``), Postgres (``{0,1}``) and others print them. It
refuses other texts that look like lists or objects. "(other)", "(a, b)", "f(x)" and intervals ("(0, 5]") are names.
`looks_printed` detects lists in unknown notations, which callers refuse.
"""

import ast
import contextlib
import json
import re
import unicodedata
import warnings
from typing import Any

from tasks.files.cells import TableCell, short

MOST_LOOKED_AT = 1000  # characters of a name

_MAKERS = "|".join([
    r"(?:np\.|numpy\.|torch\.|tf\.)?(?:array|tensor|matrix)", "c|list|tuple|set|frozenset|dict|vector",
    r"Array\s*|List|Set|Map|Vector|ArrayBuffer|WrappedArray|Dict|Counter|OrderedDict|defaultdict|Tensor",
    r"(?:Any|Bool|String|Symbol|Int\d*|UInt\d*|Float\d*)(?=\[)",
])  # fmt: skip
_STRUCTURE = re.compile(rf"({_MAKERS})?(?=\[.*\]\Z|\(.*\)\Z|\{{.*\}}\Z)([\[({{])(.*).", re.DOTALL)
_OPTIONS = re.compile(r"(,\s*(dtype|device|grad_fn|requires_grad|shape)\s*=[^\[\]{}]*)+$|^<class [^>]*>,")
_SCALAR = re.compile(r"(?:(?:np|numpy)\.\w+|Decimal)\(([^()]*)\)|(?:np|numpy)\.(True|False)_")
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
# What Python takes for one text ('a' 'b') or for a number (2020_01, 0x1F) may be something else.
_NOT_PYTHON = re.compile(r"\0\s*\0|\d_\d|(?<![\d.])0[xob\d]|\dj\b", re.IGNORECASE)
_SHARE = re.compile(r"[^:=]*[^:=\s]\s*(?:[:=]|=>|->)\s*\"?\d*\.?\d+\"?")
_BETWEEN_PAIRS = re.compile(r"[,;|&]\s*|\s(?=[^\s:=]+[:=])")
_NUMBER = re.compile(r"[+-]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_PAIRED = {"[": "]", "(": ")", "{": "}"}
_INTERVAL = re.compile(r"[\[(][^\[\](){},;]+[,;][^\[\](){},;]+[\])]")
# Of a list without quotes: a number with a mark of its own (1L, 0.5f0, 50%), other commas, brackets and quotes.
_ODD = re.compile(r"[+-]?\.?\d.*\D.*|.*[|\\\"\x00-\x1f\uff0c\u3001\u060c\uff1b;].*|:\S+\s.*", re.DOTALL)
_ITEM = rf"(?:(?:{_QUOTED}|[\w.-]+)\s*(?:=>|->|[:=])\s*)?(?:{_QUOTED}|[+-]?\.?\d[\w.]*)|:\w+"
_ITEMS = rf"\|?\s*(?:{_ITEM})(?:[,;\s]+(?:{_ITEM}))+[,;\s]*\|?"
_LISTED = re.compile(
    rf"\[{_ITEMS}\]|\{{{_ITEMS}\}}|<{_ITEMS}>|\u3010{_ITEMS}\u3011|(?<=\w)\({_ITEMS}\)|\bdtype[:=]|<(\w+)>.*</\1>",
    re.DOTALL,
)
_WORDS = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "None", "NULL", "NA", "nil", "nothing"), None),
}  # fmt: skip
_CUT = re.compile(r"[\[({\s,](\.\.\.|\u2026)[\])}\s,]")
_MARKED = re.compile(r"^$|^['\"]|['\"]$|[\[\](){}:;=>]")  # of no name in a list
_FAULTS = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)  # of ast.literal_eval
# What JavaScript, Java, C# and Python print of an object whose content they leave out.
_LOST = re.compile(r"\[object \w+\]|\[L?[\w.]+;?@[0-9a-f]+|System\.[\w.`]+\[.*\]|<[\w. ]+ at 0x[0-9a-f]+>")


class _Unreadable(ValueError):
    """Why a text in brackets is neither a list, nor an object, nor a name."""


def structure(text: str, place: str) -> list[Any] | tuple[Any, ...] | dict[str, Any] | None:
    """The list or object that a text holds: plain values, lists, tuples (of round brackets) and dicts.

    Returns:
      None where it holds neither, and is a name.

    Raises:
      InputError: it begins and ends as a list or an object, but cannot be read as one.
    """
    text = text.strip().strip("\u200b\u2060\ufeff")
    if text[:1] in ("\uff3b", "\uff5b", "\uff08"):
        text = unicodedata.normalize("NFKC", text)  # brackets of full width
    if text[:1] == '"' and text[1:2] in ("[", "{"):  # JSON twice
        with contextlib.suppress(ValueError):
            text = json.loads(text)
    try:
        if _LOST.fullmatch(text):
            raise _Unreadable("its content was not written")
        return _value(text) if _STRUCTURE.fullmatch(text) else None
    except _Unreadable as error:
        way_out = "write it as JSON, or rename the label"
        raise TableCell(place, text).error(f"looks like a list or an object, but {error}; {way_out}") from None


def is_name_in_brackets(value: Any) -> bool:
    """Whether it is a text like "[other]": a list of one name, or a name itself."""
    return isinstance(value, str) and bool(re.fullmatch(r"[\[{]\s*[^\W\d][^\[\](){},;:=\"']*[\]}]", value.strip()))


def is_interval(value: Any) -> bool:
    """Whether it is a text like "(0, 5]" or "[0, 5]", as programs name ranges of numbers."""
    return isinstance(value, str) and bool(_INTERVAL.fullmatch(value.strip()))


def is_half_open(value: Any) -> bool:
    """Whether it is an interval that is no list: "(0, 5]", "[0, 5)"."""
    return is_interval(value) and _PAIRED[value.strip()[0]] != value.strip()[-1]


def looks_printed(text: str) -> bool:
    """Whether a text that `structure` takes for a name has several numbers, pairs or quoted words in brackets, as in
    "Seq(1, 0)", or is a series with its dtype or an XML element."""
    return bool(_LISTED.search(text[:MOST_LOOKED_AT]))


def is_unbracketed(text: str) -> bool:
    """Whether a text has two or more pairs of a name and a number, "a: 0.5, b: 0.5", or lines like YAML's "- a"."""
    lines = text.strip().splitlines()
    parts = _BETWEEN_PAIRS.split(text.strip()) if ":" in text or "=" in text else []
    pairs = list(map(_SHARE.fullmatch, parts))
    return (len(pairs) > 1 and all(pairs)) or (len(lines) > 1 and all(line.startswith("- ") for line in lines))


def pairs_as_dict(value: Any) -> Any:
    """The dict of a list of tuples (name, value), as OrderedDict and Arrow's maps have it; anything else as it is."""
    is_dict = isinstance(value, list) and value and all(isinstance(part, tuple) and len(part) == 2 for part in value)
    return {str(name): inner for name, inner in value} if is_dict and isinstance(value[0][0], str) else value


def _value(text: str) -> Any:
    """The value of a text that `_STRUCTURE` matches; None where it is a name."""
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    text = _SCALAR.sub(r"\1\2", text)
    maker, opening, inside = _STRUCTURE.fullmatch(text).groups()  # type: ignore[union-attr]
    if maker:
        inside = _OPTIONS.sub("", inside).strip()
        value = pairs_as_dict(_value(inside if _STRUCTURE.fullmatch(inside) else f"[{inside}]"))
        if value is None:
            raise _Unreadable("it is no flat list")
        return value
    if _CUT.search(text):
        raise _Unreadable("some of it was left out (...)")
    if opening == "[" and re.fullmatch(rf"\s*{_QUOTED}(\s+{_QUOTED})*\s*", inside):
        return [re.sub(r"\\(.)", r"\1", part[1:-1]) for part in re.findall(_QUOTED, inside)]  # as NumPy prints them
    with warnings.catch_warnings(), contextlib.suppress(*_FAULTS):
        warnings.simplefilter("ignore")  # of escapes that Python does not know
        value = ast.literal_eval(text)
        if not _NOT_PYTHON.search(re.sub(_QUOTED, "\0", text)):
            if isinstance(value, dict):
                return {str(name): part for name, part in value.items()}
            if not isinstance(value, set):
                return value if isinstance(value, list | tuple) else None
            if all(isinstance(part, str) for part in value):
                return sorted(value)
    if re.match(r"[^\[({]*[\])}]", inside):
        return None  # [a] and [b]
    return _flat(inside, is_tuple=opening == "(")


def _flat(inside: str, is_tuple: bool) -> list[Any] | tuple[Any, ...] | None:
    """Numbers and names without quotes, between commas or blanks."""
    parts = [part.strip() for part in inside.split(",")] if "," in inside else inside.split()
    is_bare = any(not _NUMBER.fullmatch(part) and part not in _WORDS for part in parts)
    if is_tuple and (is_bare or len(parts) == 1) and not re.search(r"(?<!\w)['\"]|[\[{]", inside):
        return None  # (other), (a, b): as people write names, and no language a list
    if "," not in inside and is_bare:
        parts = [inside.strip()]  # [very good] is one name
    for part in parts:
        if not _NUMBER.fullmatch(part) and (
            _MARKED.search(part) or _ODD.fullmatch(part) or (part.isdecimal() and not part.isascii())
        ):
            raise _Unreadable(f"{short(part)} is neither a number nor a name")
    values = [_WORDS[part] if part in _WORDS else _number_or_name(part) for part in parts]
    return tuple(values) if is_tuple else values


def _number_or_name(part: str) -> int | float | str:
    if not _NUMBER.fullmatch(part):
        return part
    return int(part) if part.lstrip("+-").isdecimal() else float(part)
