"""Reads numbers in cells: with a decimal point, or with decimal commas in a whole column.

"1,250" alone is refused, because it may be 1250 or 1.25. In a column with "0,25", it is 1.25, because a column uses
commas in one way only.
"""

import decimal
import math
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from tasks.files.cells import TableCell

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")  # a decimal comma, or one between thousands
_GROUPED = "|".join([r"\d{1,3}(,\d{2,3})*,\d{3}(\.\d+)?", r"\d{1,3}(\.\d{3})+,\d+", r"\d{1,3}(\.\d{3}){2,}",
                     r"\d{1,3}([ \u00a0\u2009\u202f'\u2019]\d{3})+([.,]\d+)?"])  # fmt: skip
_OTHERWISE = re.compile(
    rf"[+\u2212-]?[$\u20ac\xa3]?\s?({_GROUPED}|\d*,\d+|\u2212?\d+\.\d+|\u2212\d+)\s?[%$\u20ac\xa3]?"
)
_MARKS = str.maketrans({"\u066b": ".", "\u00b7": ".", "\u066c": ",", "\u060c": ","})  # Arabic marks, and 0\u00b75
_BETWEEN = re.compile(r"[,;|\s]+")


def is_number(value: Any) -> bool:
    """A number, or a text that is one. NaN and infinity are not."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float, decimal.Decimal)):
        return False
    try:
        return (not isinstance(value, str) or bool(_NUMBER.fullmatch(value.strip()))) and math.isfinite(float(value))
    except (OverflowError, ValueError):  # a whole number beyond float64; a signalling NaN
        return False


def is_number_otherwise(value: Any) -> bool:
    """A text that people read as a number, but that is none here: "0,25", "1,250.5", "1 250", "12,5 %".

    In any digits and marks: "\u0660\u066b\u0662\u0665" is 0.25 in Arabic."""
    if not isinstance(value, str) or is_number(value):
        return False
    plain = unicodedata.normalize("NFKC", value.translate(_MARKS)).strip()
    return bool(_OTHERWISE.fullmatch(plain)) or (plain != value.strip() and is_number(plain))


def are_several(value: Any) -> bool:
    """A text of several numbers with marks between them: "0,1,0", "0 1 1", "1|?|0"."""
    if not isinstance(value, str) or not _BETWEEN.search(value.strip()):
        return False
    parts = [part for part in _BETWEEN.split(value.strip().removeprefix("[1] ")) if part]  # [1]: as R prints
    return all(is_number(part) or part == "?" for part in parts)


def has_decimal_commas(values: Iterable[Any]) -> bool:
    """Whether the texts of a column are numbers with decimal commas: at least one beyond doubt, none otherwise."""
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    commas = [text for text in texts if "," in text]
    return (
        any(not _EITHER.fullmatch(text) for text in commas)
        and all(_COMMA.fullmatch(text) for text in commas)
        and not any("." in text for text in texts)
    )


def number(cell: TableCell, commas: bool = False, names: str = "set kind to class if labels are names") -> float:
    """The number in a cell.

    Args:
      commas: whether the column has decimal commas (`has_decimal_commas`).
      names: the way out where the cell holds a name.

    Raises:
      InputError: anything else, NaN and infinity among it.
    """
    value = cell.value
    if commas and isinstance(value, str) and _COMMA.fullmatch(value.strip()):
        return float(value.replace(",", "."))
    if is_number(value):
        return float(value)
    if isinstance(value, str) and _EITHER.fullmatch(value.strip()):
        plain = value.strip()
        way_out = f"write {plain.replace(',', '.')} or {plain.replace(',', '')}, for the comma may mean either"
    elif is_number_otherwise(value):
        way_out = "write a decimal point and no other marks, or decimal commas in the whole column"
    elif isinstance(value, (dict, list)):
        way_out = "set votes to true if annotators gave a number each, or name an inner column (a.b)"
    else:
        way_out = names
    raise cell.error(f"is no number (nor are NaN and infinity); mend it, or {way_out}")
