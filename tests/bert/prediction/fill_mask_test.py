"""Masks of a text: found, ranked and filled, from scores written by hand."""

import pathlib

import numpy as np
import pytest

from bert.errors import InputError
from bert.prediction.fill_mask import FilledMasks, find_masks
from bert.tokenizer.wordpiece import WordPiece

VOCAB = pathlib.Path(__file__).resolve().parents[2] / "golden" / "tiny_bert" / "vocab.txt"


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece.from_vocab(VOCAB, lower_case=True)


def scored(text, tokenizer, rows=128, **scores) -> FilledMasks:
    """The masks of a text, each with these scores by token, 0 for all others."""
    encoding = tokenizer.encode(text, special_in_text=True)
    places = find_masks(encoding, tokenizer, 64)
    logits_PV = np.zeros((len(places), rows), np.float32)
    for token, score in scores.items():
        logits_PV[:, tokenizer.vocab.index(token)] = score
    return FilledMasks(text, [encoding.offsets[i] for i in places], logits_PV, tokenizer)


def test_the_filled_text_keeps_everything_but_the_masks(tokenizer):
    """Blanks, letter case, accents and lines stay; no [CLS], [SEP] or [unused]; a piece loses its ##."""
    text = "  Héllo   [MASK] 中国\n play[MASK]! "
    masks = scored(text, tokenizer, **{"[SEP]": 900, "[unused3]": 800, "##ing": 700})
    assert masks.ranked(1) == [[("[SEP]", 1.0)]] * 2
    assert masks.filled() == "  Héllo   ing 中国\n playing! "


def test_probabilities_are_over_all_rows(tokenizer):
    """Three of 128 rows are e times as likely as the others; 128 asked for or more gives all, the likeliest first."""
    (ranked,) = scored("[MASK]", tokenizer, the=1, cat=1, mat=1).ranked(1000)
    assert sorted(token for token, _ in ranked) == sorted(tokenizer.vocab)
    assert [share for _, share in ranked[:3]] == pytest.approx([np.e / (3 * np.e + 125)] * 3)
    assert [share for _, share in ranked[3:]] == pytest.approx([1 / (3 * np.e + 125)] * 125)


def test_rows_beyond_the_vocabulary_are_never_returned(tokenizer):
    """A model with two rows more than its vocabulary, both very likely: they appear in no answer."""
    masks = scored("the [MASK]", tokenizer, rows=130)
    masks.logits_PV[:, 128:] = 50
    (ranked,) = masks.ranked(1000)
    assert sorted(token for token, _ in ranked) == sorted(tokenizer.vocab)
    assert sum(share for _, share in ranked) < 1e-9, "the rest of the probability lies on the unused rows"
    assert masks.filled().split()[1] in {entry.removeprefix("##") for entry in tokenizer.vocab}


def test_what_cannot_be_filled_is_refused(tokenizer):
    """No mask; one beyond the positions, which count from [CLS] at 0 and end with [SEP]; no answers asked for."""
    for text in ("hello world", "hello [mask] world", ""):
        with pytest.raises(InputError, match=r"no \[MASK\]; write \[MASK\]"):
            scored(text, tokenizer)
    with pytest.raises(InputError, match="mask at 690, limit 64; shorten"):
        scored("cat " * 689 + "[MASK]" + " cat" * 10, tokenizer)
    with pytest.raises(InputError, match="mask at 63, limit 64"):
        scored("[MASK] " + "cat " * 61 + "[MASK]", tokenizer)
    assert len(scored("cat " * 61 + "[MASK]" + " cat" * 600, tokenizer).offsets) == 1
    with pytest.raises(InputError, match="top is 0; it must be at least 1"):
        scored("[MASK]", tokenizer).ranked(0)
