"""Numbers as people write them: a comma is a decimal mark only where a column leaves no doubt."""

import pytest

from tasks.files.cells import TableCell
from tasks.files.label_numbers import are_several, has_decimal_commas, is_number, is_number_otherwise, number
from tests.tasks.one_line import message_of, says


def read(text, commas=False):
    return number(TableCell("here", text), commas)


@pytest.mark.parametrize(
    ("column", "commas"),
    [
        (["0,25", "1,250", "4"], True),
        (["12,5", None, " "], True),
        (["0,250"], True),
        (["1250,500"], True),
        (["1,250", "2,500"], False),
        (["0,25", "1.5"], False),
        (["0,25", "1,250.5"], False),
        (["1,000,000", "2,5"], False),
        (["1.5", 2], False),
        (["a,b"], False),
    ],
)
def test_a_column_has_decimal_commas_or_not(column, commas):
    assert has_decimal_commas(column) is commas


def test_thousands_are_never_decimals():
    assert read("1,250", commas=True) == 1.25
    for text in ("1,250", "-1,250"):
        plain = text.replace(",", ".")
        assert says(message_of(read, text), f"here: '{text}' ... {plain} ... {text.replace(',', '')}")
    for text in ("1,250.5", "1.250,5", "1 250", "1'250", "1,000,000", "12,5 %", "\u22125,0"):
        assert is_number_otherwise(text)
        for commas in (False, True):
            assert says(message_of(read, text, commas), "here: ... decimal point")


@pytest.mark.parametrize("text", ["\u0660\u066b\u0662\u0665", "0\u00b725", "0\uff0c25", "\uff10.\uff12%", "1\u066c250"])
def test_numbers_in_other_digits_and_marks_are_no_names(text):
    assert is_number_otherwise(text)
    assert says(message_of(read, text), "here: ... decimal point")


def test_what_float64_cannot_hold_is_no_number():
    assert not any(map(is_number, ["1e999", 10**400, float("inf"), float("nan"), True, None, "1_0"]))
    assert all(map(is_number, ["1e5", ".5", "-3.", 10**300, 0.5]))


def test_several_numbers_in_a_text():
    assert all(map(are_several, ["0,1,0", "0 1 1", "1|?|0", "[1] 1 0 0", "1;0"]))
    assert not any(map(are_several, ["1", "1.5", "a,b", "", "1-2", "a 1", None, 3]))
