"""Masked words: how many, which, and what stands there."""

import numpy as np
import pytest

from bert.data import masking

SIZES = {"mask_id": 4, "replacement_ids": np.arange(10, 60, dtype=np.int32), "mask_share": 0.8, "random_share": 0.1}


def one_example_a_row(
    rows, tokens, *, seed=0, epoch=0, examples=None, maskable=None, limit=10**6, rate=0.15, words=None
):
    """`choose` for rows of one example each, of so many tokens between [CLS] and [SEP]."""
    examples = np.arange(rows) if examples is None else examples
    position_BT = np.tile(np.arange(tokens + 2), (rows, 1))
    text_BT = (position_BT > 0) & (position_BT <= tokens)
    return masking.choose(
        masking.example_keys(seed, epoch, examples),
        np.arange(rows) * (tokens + 2),
        np.zeros(rows, int),
        position_BT,
        text_BT if maskable is None else maskable & text_BT,
        rate=rate,
        limit_N=np.full(rows, limit),
        words_BT=words,
    )


def chosen_rows(places, rows, width):
    chosen = np.zeros(rows * width, bool)
    chosen[places] = True
    return chosen.reshape(rows, width)


def test_random_numbers_are_splitmix64():
    """The first outputs of the published generator for seed 0 and for seed 1234567."""
    weyl = 0x9E3779B97F4A7C15
    states = np.array([(seed + n * weyl) % 2**64 for seed, n in ((0, 1), (1234567, 1), (1234567, 2))], np.uint64)
    expected = [0xE220A8397B1DCDAF, 6457827717110365317, 3203168211198807973]
    assert masking.scramble(states).tolist() == expected


def test_statistics_over_100_000_tokens():
    """15 % chosen; of these 80 % [MASK], 10 % random, 10 % kept; random tokens only from the list, all of it."""
    ids = np.full(1000 * 102, 5, np.int32)
    places, choice, bits = one_example_a_row(1000, 100)
    assert 0.145 < len(places) / 100_000 < 0.155
    new = masking.replace(ids[places], choice, bits, **SIZES)
    assert 0.785 < (new == 4).mean() < 0.815
    assert 0.09 < (new == 5).mean() < 0.11
    random = new[(new != 4) & (new != 5)]
    assert 0.09 < len(random) / len(new) < 0.11
    assert set(random.tolist()) == set(range(10, 60))


def test_shares_are_settings():
    """All [MASK], all random, or all kept."""
    places, choice, bits = one_example_a_row(50, 40)
    ids = np.full(len(places), 5, np.int32)
    for mask, random, expected in ((1, 0, {4}), (0, 0, {5}), (0, 1, set(range(10, 60)))):
        new = masking.replace(ids, choice, bits, **{**SIZES, "mask_share": mask, "random_share": random})
        assert set(new.tolist()) <= expected
        assert len(set(new.tolist())) > 1 or len(expected) == 1


def test_the_number_is_exact_and_at_least_one():
    """The rounded share of the maskable tokens of each example; 1 of a single token, none of none."""
    for tokens, wanted in ((1, 1), (3, 1), (10, 2), (17, 3), (125, 19)):
        chosen = chosen_rows(one_example_a_row(40, tokens)[0], 40, tokens + 2)
        assert (chosen.sum(axis=1) == wanted).all()
    nothing = one_example_a_row(3, 5, maskable=np.zeros((3, 7), bool))
    assert [len(array) for array in nothing] == [0, 0, 0]


def test_what_is_not_maskable_is_never_chosen():
    """Specials and unknown tokens in the middle of the text: 0 of 10,000 rows; the number follows the rest."""
    maskable = np.random.default_rng(0).random((10_000, 22)) < 0.7
    chosen = chosen_rows(one_example_a_row(10_000, 20, maskable=maskable)[0], 10_000, 22)
    assert not (chosen & ~maskable).any()
    assert not chosen[:, [0, 21]].any()
    np.testing.assert_array_equal(chosen.sum(axis=1), masking.count_masks(maskable[:, 1:21].sum(axis=1), 0.15))


def test_each_place_is_as_likely_as_any_other():
    """Also under a limit: what is left out of the number drawn is at random places, not always the last ones."""
    for limit in (10**6, 2):
        chosen = chosen_rows(one_example_a_row(20_000, 20, limit=limit)[0], 20_000, 22)
        share = chosen[:, 1:21].mean(axis=0)
        assert (chosen.sum(axis=1) == min(3, limit)).all()
        assert abs(share - min(3, limit) / 20).max() < 5 * np.sqrt(0.15 / 20_000)


def test_epochs_seeds_and_examples_have_their_own_masks():
    """Another epoch, seed or example: other places in over 95 % of the rows; the same again: the same."""
    rows, tokens = 400, 100
    base = chosen_rows(one_example_a_row(rows, tokens)[0], rows, tokens + 2)
    same = chosen_rows(one_example_a_row(rows, tokens)[0], rows, tokens + 2)
    np.testing.assert_array_equal(base, same)
    others = ({"epoch": 1}, {"seed": 1}, {"examples": np.arange(rows) + rows}, {"seed": 1, "epoch": 1})
    for other in others:
        masks = chosen_rows(one_example_a_row(rows, tokens, **other)[0], rows, tokens + 2)
        assert (masks != base).any(axis=1).mean() > 0.95
    assert len({row.tobytes() for row in base}) > 0.95 * rows


def test_a_row_of_several_examples_masks_each_as_if_alone():
    """Three examples in one row have the places and the random bits that each has in a row of its own."""
    lengths = np.array([7, 20, 12])
    keys, bases = masking.example_keys(5, 2, np.array([11, 12, 13])), np.cumsum(lengths) - lengths
    position = np.concatenate([np.arange(length) for length in lengths] + [np.zeros(5, int)])[None]
    maskable = (position > 0) & (np.arange(44) < 39)
    together = masking.choose(keys, bases, np.arange(3), position, maskable, rate=0.3, limit_N=np.full(3, 99))
    alone = []
    for n in range(3):
        part = slice(bases[n], bases[n] + lengths[n])
        found = masking.choose(
            keys[n : n + 1], np.zeros(1, int), np.zeros(1, int), position[:, part], maskable[:, part],
            rate=0.3, limit_N=np.full(1, 99),
        )  # fmt: skip
        alone.append((found[0] + bases[n], *found[1:]))
    for array, parts in zip(together, zip(*alone, strict=True), strict=True):
        np.testing.assert_array_equal(array, np.concatenate(parts))


def random_words(rng, rows, tokens):
    """uint8 [rows, tokens + 2], text of words of 1 to 4 pieces."""
    words = np.where(rng.random((rows, tokens + 2)) < 0.5, masking.STARTS, masking.CONTINUES)
    words[:, 1] = masking.STARTS
    words[:, [0, tokens + 1]] = 0
    return words.astype(np.uint8)


def test_whole_words_are_chosen_whole():
    """Over 10,000 words of 2 pieces or more: none chosen in part, none treated in two ways."""
    rows, tokens = 1000, 60
    words = random_words(np.random.default_rng(0), rows, tokens)
    maskable = np.random.default_rng(1).random(words.shape) < 0.97
    places, choice, _ = one_example_a_row(rows, tokens, words=words, maskable=maskable)
    chosen = chosen_rows(places, rows, tokens + 2)
    assert not (chosen & ~maskable).any()
    starts = np.flatnonzero(words.reshape(-1) == masking.STARTS)
    sizes, taken = (np.add.reduceat(array.reshape(-1).astype(int), starts) for array in (words > 0, chosen))
    assert (sizes > 1).sum() > 10_000
    assert np.isin(taken, [0]).sum() + (taken == sizes).sum() == len(sizes)
    bits = dict(zip(places.tolist(), choice.tolist(), strict=True))
    for start, size in zip(starts[taken > 0], sizes[taken > 0], strict=True):
        assert len({bits[start + piece] for piece in range(size)}) == 1
    wanted = masking.count_masks((maskable & (words > 0)).sum(axis=1), 0.15)
    short = wanted - chosen.sum(axis=1)
    assert short.min() == 0
    assert (short == 0).mean() > 0.95  # with words of one piece about, the number can nearly always be reached


def test_a_word_longer_than_the_number_is_passed_over():
    """Words of 6, 1 and 5 pieces and room for 2: only the short one."""
    words = np.array([[0, 1, 2, 2, 2, 2, 2, 1, 1, 2, 2, 2, 2, 0]], np.uint8)
    for example in range(20):
        places, _, _ = one_example_a_row(1, 12, words=words, examples=np.array([example]))
        assert places.tolist() == [7]


def test_words_of_one_piece_are_like_tokens():
    """Where no word has two pieces (Chinese without word boundaries), whole words change nothing."""
    words = np.full((50, 32), masking.STARTS)
    words[:, [0, 31]] = 0
    plain, whole = one_example_a_row(50, 30), one_example_a_row(50, 30, words=words)
    for one, other in zip(plain, whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_share_of_split_words(make_store):
    """0 for text whose words are single tokens; else the share; given word boundaries count instead of ##."""
    chinese = [[[506, 507, 506, 507]], [[507]]]
    assert masking.share_of_split_words(make_store(chinese)) == 0
    flags = [[[False, True, False, True]], [[False]]]
    assert masking.share_of_split_words(make_store(chinese, continues=flags)) == pytest.approx(2 / 3)
    assert masking.share_of_split_words(make_store([[[6, 406, 407, 7, 8, 9]]])) == pytest.approx(1 / 4)
