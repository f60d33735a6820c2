"""Lists and objects that stand in a cell as text, as JSON has them or as another language prints them.

Read are JSON; Python's lists, tuples, sets and dicts; arrays of NumPy, torch, MATLAB, Julia, R (``c(1, 0)``), Java,
Scala and Postgres (``{0,1}``); maps with ``:``, ``=``, ``=>`` or ``->``. Texts in other forms are names: so are a word
in round brackets, "(other)", "f(x)" of a function that makes no list, and intervals, "(0, 5]". What looks like a list
of a language that is not known here (`looks_printed`) is for the caller to refuse.
"""

import contextlib
import json
import re
import unicodedata
from typing import Any

from bert.errors import InputError
from tasks.reading.records import short

MOST_DEEP = 8  # lists inside of lists; no label is that deep
MOST_LOOKED_AT = 1000  # characters of a name

_MAKERS = "|".join([
    r"(?:np\.|numpy\.|torch\.|tf\.)?(?:array|tensor|matrix)", "c|list|tuple|set|frozenset|dict|vector",
    r"Array\s*|List|Set|Map|Vector|ArrayBuffer|WrappedArray|Dict|Counter|OrderedDict|defaultdict|Tensor",
    r"(?:Any|Bool|String|Symbol|Int\d*|UInt\d*|Float\d*)(?=\[)",
])  # fmt: skip
_STRUCTURE = re.compile(rf"(?P<maker>{_MAKERS})?(?P<opened>[\[({{])(?P<inside>.*)[\])}}]", re.DOTALL)
_SCALAR = re.compile(r"(?:(?:np\.|numpy\.)(?:float|int|uint|bool|str)\d*_?|Decimal)\((.*)\)", re.DOTALL)
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
# A quote inside of a word ("don't") opens nothing.
_TOKEN = re.compile(rf"(?P<quoted>(?<![^\s\[({{,;:=>]){_QUOTED})|(?P<open>[\[({{])|(?P<close>[\])}}])|.", re.DOTALL)
_PAIR = re.compile(rf"\s*({_QUOTED}|:?[^\"'\[({{:=>]+?)\s*(?::|=>|->|=)\s*(.*)", re.DOTALL)
_OPTION = re.compile(r"(dtype|device|grad_fn|requires_grad|shape)\s*=|<class ")  # of arrays, and defaultdict
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
    **dict.fromkeys(("true", "True", "TRUE", "np.True_"), True),
    **dict.fromkeys(("false", "False", "FALSE", "np.False_"), False),
    **dict.fromkeys(("null", "None", "NULL", "NA", "nil", "nothing"), None),
}  # fmt: skip
_CUT = ("...", "\u2026")
# What JavaScript, Java, C# and Python print of an object whose content they leave out.
_LOST = re.compile(r"\[object \w+\]|\[L?[\w.]+;?@[0-9a-f]+|System\.[\w.`]+\[.*\]|<[\w. ]+ at 0x[0-9a-f]+>")


class _Unreadable(ValueError):
    """Brackets or quotes that do not fit together, a list that was cut, or one that is too deep."""


class _Name(ValueError):
    """No structure after all."""


def structure(text: str, where: str) -> list[Any] | tuple[Any, ...] | dict[str, Any] | None:
    """What a text says that holds a list or an object: plain values, lists, tuples (of round brackets) and dicts.

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
    found = _STRUCTURE.fullmatch(text)
    if not (found and _PAIRED[found["opened"]] == text[-1]) and not _LOST.fullmatch(text):
        return None
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(text)
    try:
        if _LOST.fullmatch(text):
            raise _Unreadable("its content was not written")
        return _value(text, 0)
    except _Name:
        return None
    except _Unreadable as error:
        raise InputError(
            f"{where}: {short(text)} looks like a list or an object, but {error}; write it as JSON, or rename the label"
        ) from None


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
    pairs = (
        [_SHARE.fullmatch(part) for part in _BETWEEN_PAIRS.split(text.strip())] if ":" in text or "=" in text else []
    )
    return (len(pairs) > 1 and all(pairs)) or (len(lines) > 1 and all(line.startswith("- ") for line in lines))


def _value(text: str, depth: int) -> Any:
    if depth > MOST_DEEP:
        raise _Unreadable(f"is deeper than {MOST_DEEP} lists")
    scalar = _SCALAR.fullmatch(text)
    if scalar:
        return _value(scalar[1].strip(), depth + 1)
    found = _STRUCTURE.fullmatch(text)
    if found is None:
        return _plain(text)
    is_tuple = found["opened"] == "(" and not found["maker"]
    parts = [part for part in _parts(found["inside"], depth) if not _OPTION.match(part)]
    if any(part in _CUT for part in parts):
        raise _Unreadable("some of it was left out (...)")
    if found["maker"] and found["opened"] == "(" and len(parts) == 1 and _STRUCTURE.fullmatch(parts[0]):
        return pairs_as_dict(_value(parts[0], depth + 1))
    pairs = [_PAIR.fullmatch(part) for part in parts]
    if len(parts) > is_tuple and all(pairs):
        return {str(_plain(pair[1])): _value(pair[2], depth + 1) for pair in pairs if pair}
    if is_tuple and (len(text.split(",")) == 1 == len(parts) or any(map(_is_bare, parts))):
        raise _Name  # (other), (1), (a, b): as people write names, and no language a list
    values = [_value(part, depth + 1) for part in parts]
    return tuple(values) if is_tuple else values


def pairs_as_dict(value: Any) -> Any:
    """The dict of a list of tuples (name, value), as OrderedDict and Arrow's maps have it; anything else as it is."""
    is_dict = isinstance(value, list) and value and all(isinstance(part, tuple) and len(part) == 2 for part in value)
    return {str(name): inner for name, inner in value} if is_dict and isinstance(value[0][0], str) else value


def _parts(text: str, depth: int) -> list[str]:
    """The parts between commas; where there is none between semicolons; else between blanks."""
    inner, marks = 0, []
    for token in _TOKEN.finditer(text):
        if token["open"]:
            inner += 1
        elif token["close"]:
            inner -= 1
            if inner < 0 and not depth:
                raise _Name  # [a] and [b]
        elif not token["quoted"] and inner == 0 and (token[0] in ",;" or token[0].isspace()):
            marks.append((token.start(), " " if token[0].isspace() else token[0]))
    if inner:
        raise _Unreadable("its brackets do not fit together")
    chosen = next((mark for mark in ",; " if any(mark == other for _, other in marks)), "")
    parts, begin = [], 0
    for end in [position for position, mark in marks if mark == chosen] + [len(text)]:
        parts.append(text[begin:end].strip())
        begin = end + 1
    if chosen == " ":
        parts = [part for part in parts if part]
        # [very good] is one name, {'a': 1} one pair.
        return [text.strip()] if any(map(_is_bare, parts)) or _PAIR.fullmatch(text) else parts
    if not parts[-1]:
        parts.pop()  # nothing in the brackets, or a comma behind the last, as in (1,)
    if not all(parts):
        raise _Unreadable("a part of it is empty")
    return parts


def _is_bare(part: str) -> bool:
    """Whether a part is a word without quotes, and no number."""
    return not (_NUMBER.fullmatch(part) or part in (*_WORDS, *_CUT) or re.search(r"[\"'\[({:=>]", part[:1] + part[-1:]))


def _plain(text: str) -> Any:
    if text[:1] in ("'", '"'):
        if not re.fullmatch(_QUOTED, text, re.DOTALL):
            raise _Unreadable("its quotes do not fit together")
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    if _ODD.fullmatch(text) or (text.isdecimal() and not text.isascii()):
        raise _Unreadable(f"{short(text)} in it is neither a number nor a word")
    return text.removeprefix(":")  # a symbol of Julia or Ruby
