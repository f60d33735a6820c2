import pytest

from bert.tokenizer.added_words import AddedWord
from bert.tokenizer.differences import differences
from bert.tokenizer.wordpiece import WordPiece
from tests.bert.builders import SPECIAL

WORDS = [*SPECIAL, "a", "b"]
PLAIN = WordPiece.from_vocab(WORDS)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"vocab": [*WORDS, "c"]}, "vocabulary (8 entries, not 7; different from id 7 on)"),
        ({"vocab": [*SPECIAL, "b", "a"]}, "vocabulary (7 entries, not 7; different from id 5 on)"),
        ({"strip_accents": False}, "strip_accents (False, not True)"),
        ({"max_word_chars": 200}, "max_word_chars (200, not 100)"),
        (
            {"special_tokens": {"mask": "a"}},
            "special_tokens ([PAD] [UNK] [CLS] [SEP] a, not [PAD] [UNK] [CLS] [SEP] [MASK])",
        ),
        ({"added": [AddedWord("b", lstrip=True)]}, "added (b normalized lstrip, not none)"),
    ],
)
def test_each_difference_is_named_with_both_values(changes, told):
    other = WordPiece.from_vocab(**{"vocab": WORDS, **changes})
    assert differences(other, PLAIN) == [told]
    assert other.fingerprint != PLAIN.fingerprint


def test_rules_of_words_are_told_as_well():
    """Two tokenizers with the same words under other rules differ, and are said to."""
    one, other = (
        WordPiece.from_vocab(WORDS, added=[AddedWord("b", **rule)]) for rule in ({"lstrip": True}, {"rstrip": True})
    )
    assert differences(one, other) == ["added (b normalized lstrip, not b normalized rstrip)"]
    assert differences(one, one) == []
    assert differences(PLAIN, WordPiece.from_vocab(WORDS, model_max_length=7)) == []
