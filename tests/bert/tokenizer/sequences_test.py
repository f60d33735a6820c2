"""Special tokens around texts, and what is cut where they are too long."""

import pathlib

import pytest

from bert.tokenizer import sequences
from bert.tokenizer.wordpiece import WordPiece

VOCAB = pathlib.Path(__file__).resolve().parents[2] / "golden" / "tiny_bert" / "vocab.txt"


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece.from_vocab(VOCAB, lower_case=True)  # [CLS] is 2, [SEP] is 3


def test_single_texts_are_cut_at_the_end(tokenizer, caplog):
    """Five positions hold three tokens; an empty text is [CLS] [SEP]; one warning for all."""
    assert sequences.singles([[7, 8, 9], [], [7] * 9], tokenizer, 5) == [[2, 7, 8, 9, 3], [2, 3], [2, 7, 7, 7, 3]]
    assert caplog.messages[0].startswith("1 of 3 texts are longer than the model's 5 positions")


@pytest.mark.parametrize(
    ("lengths", "kept"),
    [((4, 4), (4, 4)), ((1, 7), (1, 7)), ((1, 30), (1, 7)), ((30, 1), (7, 1)), ((5, 5), (4, 4)), ((30, 30), (4, 4))],
)
def test_of_a_pair_the_longer_text_is_cut(tokenizer, caplog, lengths, kept):
    """Eleven positions hold eight tokens beside [CLS] and two [SEP]; the second segment has type 1."""
    a, b = ([7] * lengths[0], [8] * lengths[1])
    ids, type_ids = sequences.pair(a, b, tokenizer, 11)
    assert ids == [2, *[7] * kept[0], 3, *[8] * kept[1], 3]
    assert type_ids == [0] * (kept[0] + 2) + [1] * (kept[1] + 1)
    assert len(caplog.messages) == (lengths != kept)
