"""Messages for people: what tests of them share."""

import pytest

from bert.errors import InputError


def says(message, pieces):
    """Whether a message has these pieces in their order ("a.csv:3 ... 'x' ... no label"); the test fails otherwise."""
    place = 0
    for piece in pieces.split(" ... "):
        place = message.find(piece, place) + len(piece)
        if place < len(piece):
            pytest.fail(f"{message!r} lacks {piece!r}")
    return True


def message_of(call, *arguments):
    """The message of the InputError that a call must raise: a single line."""
    with pytest.raises(InputError) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return str(caught.value)
