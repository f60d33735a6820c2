"""Checks of settings, and texts of others as a terminal shows them."""

import numpy as np
import pytest

from bert.errors import InputError, check_choice, check_range, printable

SHARE = {"at_least": 0, "below": 1}
COUNT = {"at_least": 1, "at_most": 2**32, "whole": True}


@pytest.mark.parametrize(
    ("value", "bounds"), [(0, SHARE), (np.float32(0.5), SHARE), (1, COUNT), (np.int64(2**32), COUNT)]
)
def test_numbers_within_the_bounds_pass(value, bounds):
    check_range("rate", value, **bounds)


@pytest.mark.parametrize(
    ("value", "bounds", "rule"),
    [
        (1, SHARE, "at least 0 and below 1"),
        (-0.1, SHARE, "below 1"),
        (float("nan"), SHARE, "below 1"),
        ("0.5", SHARE, "a number"),
        (True, COUNT, "a whole number"),
        (1.0, COUNT, "a whole number"),
        (0, COUNT, "at least 1 and at most 4,294,967,296"),
        (0, {"above": 0}, "above 0"),
    ],
)
def test_other_values_are_refused_with_the_rule(value, bounds, rule):
    with pytest.raises(InputError) as caught:
        check_range("rate", value, **bounds, hint="; BERT uses 0.15")
    message = str(caught.value)
    assert message.startswith(f"rate is {value!r}; it must be ")
    assert rule in message
    assert message.endswith("; BERT uses 0.15")


def test_a_choice_is_suggested_by_its_spelling():
    check_choice("loop", "scan", ("scan", "unroll"))
    with pytest.raises(InputError, match=r"'unrol';.*did you mean 'unroll'"):
        check_choice("loop", "unrol", ("scan", "unroll"))
    with pytest.raises(InputError, match=r"None; .*one of scan, unroll$"):
        check_choice("loop", None, ("scan", "unroll"))


@pytest.mark.parametrize("text", ["Größe 大 \\n", "می\u200cخواهم", "👩\u200d🔬", "全角\u3000の空白", "\u00a0"])
def test_what_can_be_shown_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x9b31m\x7f\x00", r"\x9b31m\x7f\x00"),
        ("\u202egpj\u2066", r"\u202egpj\u2066"),
        ("a\u2028b\x85", r"a\u2028b\x85"),
        ("\udcff", r"\udcff"),
        ("\r", r"\r"),
    ],
)
def test_what_steers_a_terminal_is_spelled_out(text, shown):
    assert printable(text) == printable(text, lines=True) == shown


def test_line_ends_stay_in_what_has_lines():
    assert printable("a\tb\nc") == r"a\tb\nc"
    assert printable("a\tb\nc", lines=True) == "a\tb\nc"
