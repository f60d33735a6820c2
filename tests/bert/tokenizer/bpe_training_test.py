"""A byte-level BPE that is learnt from texts: it writes back what it has read, and loads as any other."""

import pytest

from bert.errors import InputError
from bert.tokenizer import bpe_training
from bert.tokenizer.backends import load_tokenizer

TEXTS = [
    "Two young, white males are outside.",
    "Zwei junge weiße Männer sind im Freien.",
    "the old men, the young men",
] * 3
OTHERS = ["  blanks  at both ends ", "naïve 漢字 🙂 don't", "</s> is a text here", "", "Ünïcode\tand a tab", *TEXTS]


@pytest.fixture(scope="module")
def tokenizer():
    return bpe_training.train(TEXTS, 320)


def test_every_text_comes_back(tokenizer):
    for text, ids in zip(OTHERS, tokenizer.encode_ids(OTHERS), strict=True):
        assert tokenizer.decode(ids, skip_special=True) == text
        assert not set(ids) & set(tokenizer.special_ids)


def test_words_are_cased_and_the_first_is_as_any_other(tokenizer):
    first, second = tokenizer.encode_ids(["men", "the men"])
    assert second[-len(first) :] == first
    assert not tokenizer.lower_case
    assert tokenizer.encode_ids(["Men"]) != tokenizer.encode_ids(["men"])


def test_the_start_and_the_end_of_a_target_have_tokens_of_their_own(tokenizer, tmp_path):
    ids, _ = tokenizer.template.join([300, 301])
    assert ids == [300, 301, tokenizer.sep_id]
    assert len({tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id}) == 3
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert (again.fingerprint, again.cls_id, again.sep_id) == (
        tokenizer.fingerprint,
        tokenizer.cls_id,
        tokenizer.sep_id,
    )


def test_a_vocabulary_without_room_for_the_bytes_is_refused():
    with pytest.raises(InputError, match=r"vocab_size is 258; .*259"):
        bpe_training.train(TEXTS, 258)
