"""Texts as windows: every piece counts once, in its place, and nothing else does."""

import numpy as np
import pytest

from bert.data import passages, windows
from bert.errors import InputError

CLS, SEP = 2, 3


@pytest.fixture(scope="module")
def texts() -> list[list[int]]:
    """Ten texts of 0 to 60 pieces, one without any; each piece of all of them has its own id, from 1000 on."""
    length_N = [5, 0, 60, 1, 23, 22, 21, 44, 45, 31]
    starts = np.cumsum([1000, *length_N])
    return [list(range(a, a + n)) for a, n in zip(starts, length_N, strict=False)]


@pytest.fixture(scope="module")
def before() -> list[list[int]]:
    """[CLS], a question of 0 to 7 tokens, [SEP]."""
    return [[CLS, *[10 + n] * (n % 8), SEP] for n in range(10)]


def cut(texts, before, **changes):
    return passages.cut(texts, before, [SEP], **({"max_length": 24, "step": 9, "pair": True} | changes))


def test_every_piece_counts_once_in_its_place(texts, before):
    """The places are of different tokens, and what stands there is the piece, in the order of the texts."""
    found = cut(texts, before)
    flat = [piece for text in texts for piece in text]
    assert found.encoded.token_ids[found.place_K].tolist() == flat
    assert len(set(found.place_K.tolist())) == len(flat)
    assert [part.tolist() for part in passages.parts(found.encoded.token_ids[found.place_K], found.starts)] == texts
    assert len(found) == len(texts)


def test_a_piece_counts_in_the_window_with_the_most_context(texts, before):
    """As `windows.owners` has it, window by window of each text."""
    found = cut(texts, before)
    window_K = np.searchsorted(found.encoded.starts, found.place_K, side="right") - 1
    for n, own_K in enumerate(passages.parts(window_K, found.starts)):
        bounds_W2 = found.bounds_W2[found.text_W == n]
        want_K = windows.owners(len(texts[n]), bounds_W2.tolist())
        np.testing.assert_array_equal(own_K - np.flatnonzero(found.text_W == n)[0], want_K)


def test_windows_say_what_they_hold(texts, before):
    """[CLS] question [SEP] pieces [SEP], the pieces by bounds and places; segment B begins with the pieces."""
    found = cut(texts, before)
    assert found.text_W.tolist() == sorted(found.text_W.tolist())
    assert set(found.text_W.tolist()) == set(range(10)), "each text has a window, also the one without pieces"
    for w, (text, (first, stop), place) in enumerate(zip(found.text_W, found.bounds_W2, found.places_W, strict=True)):
        at = slice(found.encoded.starts[w], found.encoded.starts[w + 1])
        assert found.encoded.token_ids[at].tolist() == [*before[text], *texts[text][first:stop], SEP]
        assert place == at.start + len(before[text]) == at.start + found.encoded.a_length_N[w]
        assert at.stop - at.start <= 24


def test_targets_lie_on_the_pieces_and_nowhere_else(texts, before):
    """Question, [CLS], [SEP] and a piece's second window weigh nothing; all weights are there once."""
    found = cut(texts, before)
    rng = np.random.default_rng(0)
    pieces = len(found.place_K)
    target_K3, weight_K = rng.random((pieces, 3), np.float32), rng.random(pieces, np.float32) + 0.5
    encoded = found.with_targets(target_K3, weight_K)
    weights = encoded.of_token["target_weights"]
    assert (weights > 0).sum() == pieces < (encoded.token_ids >= 1000).sum(), "windows overlap"
    assert (encoded.token_ids[weights > 0] >= 1000).all()
    np.testing.assert_array_equal(weights[found.place_K], weight_K)
    np.testing.assert_array_equal(encoded.of_token["targets"][found.place_K], target_K3)
    assert not encoded.of_token["targets"][weights == 0].any()


def test_single_texts_are_one_segment(texts):
    """Without a question the pieces are of segment A, up to the [SEP]."""
    found = cut(texts, [[CLS]] * 10, pair=False)
    np.testing.assert_array_equal(found.encoded.a_length_N, found.encoded.length_N)


def test_texts_that_fit_have_one_window(texts, before):
    found = cut(texts, before, max_length=80)
    assert found.text_W.tolist() == list(range(10))
    assert found.bounds_W2.tolist() == [[0, len(text)] for text in texts]


def test_no_texts_are_no_windows():
    found = cut([], [])
    assert (len(found), len(found.encoded), len(found.place_K)) == (0, 0, 0)
    assert found.bounds_W2.shape == (0, 2)
    assert len(found.with_targets(np.zeros((0, 3), np.float32), np.zeros(0, np.float32))) == 0


def test_a_step_beyond_the_room_is_refused(texts, before):
    """Of 24 tokens the longest question leaves 14."""
    assert len(cut(texts, before, step=14).text_W) < len(cut(texts, before).text_W)
    with pytest.raises(InputError, match=r"step 15 .*1 to 14"):
        cut(texts, before, step=15)
