"""Texts of others as a terminal shows them."""

import pytest

from bert.errors import printable


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
