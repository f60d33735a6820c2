import logging
import random

import pytest

from bert.tokenizer.wordpiece import WordPiece

RNG = random.Random(0)
IDEOGRAPHS = [chr(0x4E00 + i) for i in range(700)]


def unknown_share(texts, vocab_size):
    """Share of the characters that become unknown tokens, and the tokenizer that was learnt."""
    tokenizer = WordPiece.train(texts, vocab_size=vocab_size)
    lost = size = 0
    for text, found in zip(texts, tokenizer.encode_batch(texts), strict=True):
        size += len(text.replace(" ", ""))
        lost += sum(
            end - start for i, (start, end) in zip(found.ids, found.offsets, strict=True) if i == tokenizer.unk_id
        )
    return lost / size, tokenizer


def chinese(count=400):
    """Texts in which half of the characters are rare; each is there at least twice."""
    weights = [1 / (rank + 1) for rank in range(len(IDEOGRAPHS))]
    return ["".join(RNG.choices(IDEOGRAPHS, weights, k=30)) for _ in range(count)] + ["".join(IDEOGRAPHS)] * 2


@pytest.mark.parametrize("vocab_size", [1000, 4000])
def test_no_character_is_lost_while_the_vocabulary_has_room(vocab_size, caplog):
    """An eighth of 1,000 entries would leave most of 700 characters to [UNK]."""
    assert unknown_share(chinese(), vocab_size)[0] == 0
    assert not caplog.records


def test_letters_take_two_entries_and_leave_room_for_pieces(caplog):
    """Letters of an alphabet stand at the beginning of words and inside them; a quarter of the entries are pieces."""
    letters = [chr(0x1200 + i) for i in range(400) if chr(0x1200 + i).isalpha()]
    words = ["".join(RNG.choices(letters, k=4)) for _ in range(600)]
    texts = [" ".join(RNG.choices(words, k=20)) for _ in range(600)]
    share, tokenizer = unknown_share(texts, 1200)
    assert share == 0
    assert sum(len(entry.removeprefix("##")) > 1 for entry in tokenizer.vocab[5:]) > 200
    assert unknown_share(texts, 500)[0] > 0.01
    assert "500" in caplog.text


def test_the_way_out_of_lost_characters_works(caplog):
    """What cannot be held is told with its share, and with the size that can."""
    with caplog.at_level(logging.WARNING):
        share, _ = unknown_share(chinese(), 500)
    assert share > 0.01
    (record,) = caplog.records
    assert f"{100 * share:.2f} %" in record.getMessage()
    enough = int(record.getMessage().split("vocab_size ")[-1].split()[0])
    assert unknown_share(chinese(), enough)[0] == 0


def test_rare_characters_beside_plain_text_do_not_fill_the_vocabulary(caplog):
    """Where not all have room, those that cover 99.95 % of the text are enough."""
    text = ["the keeper climbed the stairs and found his lamp where nobody had left it " * 3] * 1000
    share, tokenizer = unknown_share([*text, "".join(IDEOGRAPHS[:99])], 120)
    assert 0 < share < 0.0005
    assert sum(entry in IDEOGRAPHS for entry in tokenizer.vocab) < 60
    assert not caplog.records


def test_texts_that_can_be_read_only_once():
    assert WordPiece.train(iter(chinese(9)), vocab_size=2000).encode(IDEOGRAPHS[-1]).ids != [1]


def test_the_same_texts_give_the_same_vocabulary_in_any_order():
    """Most pairs are tied where all words are as frequent; a second training in a process draws other hash seeds."""
    words = ["".join(RNG.choices("abcdefghij", k=6)) for _ in range(300)] * 3
    learnt = [WordPiece.train(texts, vocab_size=150).vocab for texts in (words, words, words[::-1])]
    assert learnt[0] == learnt[1] == learnt[2]
    assert set("abcdefghij") | {f"##{letter}" for letter in "abcdefghij"} <= set(learnt[0])
