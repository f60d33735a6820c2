"""Unpaired surrogates are found, replaced one for one, or joined where two form a character."""

import pytest

from bert import surrogates


@pytest.mark.parametrize(
    ("text", "replaced", "joined"),
    [
        ("", "", ""),
        ("plain", "plain", "plain"),
        ("é \U0001f600 \ue000", "é \U0001f600 \ue000", "é \U0001f600 \ue000"),
        ("a\ud800b", "a\ufffdb", "a\ufffdb"),
        ("\udfff\ud800", "\ufffd\ufffd", "\ufffd\ufffd"),
        ("\ud83d\ude00 \ud83d", "\ufffd\ufffd \ufffd", "\U0001f600 \ufffd"),
    ],
    ids=ascii,
)
def test_each_surrogate_is_found_and_replaced(text, replaced, joined):
    assert surrogates.contains(text) == (replaced != text)
    assert surrogates.replace(text) == replaced
    assert surrogates.join(text) == joined
    assert len(replaced) == len(text)
