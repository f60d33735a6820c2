"""What a message for bad input must hold: place, value and a keyword, in one line."""

import contextlib
from collections.abc import Iterator

import pytest

from bert.errors import InputError


@contextlib.contextmanager
def refused(*words: str, error: type[Exception] = InputError) -> Iterator[None]:
    """The block raises this exception, in one line that holds each of the words."""
    with pytest.raises(error) as caught:
        yield
    line = str(caught.value)
    assert line.isprintable(), repr(line)
    for word in words:
        assert word in line, line
