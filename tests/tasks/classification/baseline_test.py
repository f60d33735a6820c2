"""The linear baseline learns what a linear model can, of every kind of target, and never falls over."""

import numpy as np
import pytest

from tasks.classification.baseline import fit_baseline

GOOD, BAD, FILL = (
    ("lovely", "great", "fine"),
    ("awful", "poor", "dull"),
    ("a", "the", "film", "plot", "was", "and", "it"),
)


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def reviews(rng, count):
    """Texts of filler with one word that tells, and the classes 0 (bad) and 1 (good)."""
    classes = rng.integers(0, 2, count)
    words = [[*rng.choice(FILL, 6), rng.choice(GOOD if good else BAD)] for good in classes]
    return [(" ".join(rng.permutation(row)),) for row in words], classes


def accuracy(shares, classes):
    return (shares.argmax(axis=1) == classes).mean()


def test_learns_a_separable_task_and_gives_shares(rng):
    texts, classes = reviews(rng, 120)
    predict = fit_baseline(texts, np.eye(2)[classes], "class")
    others, truth = reviews(rng, 80)
    shares = predict(others)
    assert (shares.dtype, shares.shape) == (np.float32, (80, 2))
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    assert accuracy(shares, truth) == 1
    np.testing.assert_array_equal(shares[::-1], predict(others[::-1]))
    assert predict([]).shape == (0, 2)


def test_the_same_data_give_the_same_model(rng):
    texts, classes = reviews(rng, 60)
    targets = np.eye(2)[classes]
    np.testing.assert_array_equal(*(fit_baseline(texts, targets, "class")(texts) for _ in range(2)))
    number = classes[:, None] * 1.0
    np.testing.assert_array_equal(*(fit_baseline(texts, number, "number")(texts) for _ in range(2)))


def pairs(rng, count):
    """Pairs of texts over the same words, and whether they are equal, which neither text tells alone."""
    words = [f"word{number}" for number in range(200)]
    left = [" ".join(rng.choice(words, 5)) for _ in range(count)]
    equal = rng.integers(0, 2, count)
    right = [text if same else " ".join(rng.choice(words, 5)) for text, same in zip(left, equal, strict=True)]
    return list(zip(left, right, strict=True)), equal


def test_compares_the_texts_of_a_pair(rng):
    texts, equal = pairs(rng, 300)
    others, truth = pairs(rng, 100)
    assert accuracy(fit_baseline(texts, np.eye(2)[equal], "class")(others), truth) > 0.95
    alone = [(left,) for left, _ in texts]
    guessed = fit_baseline(alone, np.eye(2)[equal], "class")([(left,) for left, _ in others])
    assert accuracy(guessed, truth) < 0.7


def test_a_word_in_one_text_of_a_pair_only_is_seen(rng):
    words = [f"word{number}" for number in range(30)]
    left, right = rng.integers(0, 2, (2, 1200))
    texts = [
        tuple(" ".join(rng.permutation([*rng.choice(words, 6), "key" if there else "door"])) for there in row)
        for row in zip(left, right, strict=True)
    ]
    shares = fit_baseline(texts[:1000], np.eye(2)[left ^ right][:1000], "class")(texts[1000:])
    assert accuracy(shares, (left ^ right)[1000:]) > 0.9


def test_likeness_is_seen_in_words_that_training_never_had(rng):
    texts, equal = pairs(rng, 300)
    others, truth = pairs(rng, 100)
    others = [tuple(text.replace("word", "mot") for text in row) for row in others]
    assert accuracy(fit_baseline(texts, np.eye(2)[equal], "class")(others), truth) > 0.95


def test_the_two_texts_of_a_pair_are_told_apart(rng):
    texts, classes = reviews(rng, 200)
    filler = [" ".join(rng.choice(FILL, 6)) for _ in texts]
    # the word that tells counts only in the first text
    targets = np.eye(2)[np.concatenate([classes, np.zeros(200, int)])]
    both = [(text, other) for (text,), other in zip(texts, filler, strict=True)]
    both += [(other, text) for (text,), other in zip(texts, filler, strict=True)]
    assert accuracy(fit_baseline(both, targets, "class")(both), targets.argmax(axis=1)) > 0.95


def test_numbers(rng):
    texts, classes = reviews(rng, 150)
    numbers = classes * 2.0 + 1
    found = fit_baseline(texts, numbers[:, None], "number")(texts)
    assert found.shape == (150, 1)
    assert np.corrcoef(found[:, 0], numbers)[0, 1] > 0.97
    assert ((found[:, 0] - numbers) ** 2).mean() < 0.15
    np.testing.assert_allclose(fit_baseline(texts, np.full((150, 1), 2.5), "number")(texts), 2.5)


def test_soft_targets_are_votes(rng):
    texts = [("yes",), ("perhaps",)] * 40
    targets = np.array([[0.0, 1.0], [0.4, 0.6]] * 40)
    shares = fit_baseline(texts, targets, "class")([("yes",), ("perhaps",)])
    assert shares[0, 1] > 0.9
    assert shares[1, 1] == pytest.approx(0.6, abs=0.05)
    # five annotators as five rows weigh the same as one row of shares for each of five copies
    votes = np.eye(2)[[0, 0, 1, 1, 1] * 20]
    text = [("perhaps",)] * 100
    soft = fit_baseline(text, np.tile([[0.4, 0.6]], (100, 1)), "class")(text[:1])
    np.testing.assert_allclose(fit_baseline(text, votes, "class")(text[:1]), soft, atol=1e-3)


def test_several_labels_are_questions_of_their_own(rng):
    texts, first = reviews(rng, 160)
    second = rng.integers(0, 2, 160)
    texts = [(text + (" again" if there else ""),) for (text,), there in zip(texts, second, strict=True)]
    targets = np.stack([first, second, 0 * first, 0 * first + 1], axis=1)
    shares = fit_baseline(texts, targets, "classes")(texts)
    assert ((shares > 0.5) == targets).all()
    np.testing.assert_array_equal(shares[:, 2:], targets[:, 2:])
    assert shares[:, :2].sum(axis=1).max() > 1.5


def test_a_class_without_training_rows_gets_no_share(rng):
    texts, classes = reviews(rng, 60)
    shares = fit_baseline(texts, np.eye(4)[classes * 2], "class")(texts)
    assert (shares[:, [1, 3]] == 0).all()
    assert accuracy(shares, classes * 2) == 1
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    only = fit_baseline(texts, np.eye(3)[[1] * 60], "class")(texts[:5])
    np.testing.assert_array_equal(only, np.eye(3)[[1] * 5])


@pytest.mark.parametrize("width", [1, 2])
def test_texts_without_words_and_new_words_are_no_trouble(width):
    empty = [("", " \t")[:width]] * 4
    targets = np.eye(2)[[0, 1, 1, 1]]
    shares = fit_baseline(empty, targets, "class")([("new words", "here")[:width], ("", "")[:width]])
    np.testing.assert_allclose(shares, [[0.25, 0.75]] * 2, atol=1e-2)
    numbers = fit_baseline(empty, np.array([[1.0], [2], [3], [4]]), "number")(empty)
    np.testing.assert_allclose(numbers, 2.5)
    some = [("word", "word")[:width], *empty]
    shares = fit_baseline(some, np.eye(2)[[0, 1, 1, 1, 1]], "class")([("unseen", "")[:width]])
    assert np.isfinite(shares).all()


def test_chinese_is_cut_into_characters():
    texts = [("这部电影很好看",), ("这个地方很好",), ("这部电影很差劲",), ("那个地方太差",)] * 5
    shares = fit_baseline(texts, np.eye(2)[[1, 1, 0, 0] * 5], "class")([("音乐好",), ("音乐差",)])
    assert shares[0, 1] > 0.6 > 0.4 > shares[1, 1]


def test_bad_arrays_are_refused():
    texts, targets = [("a",), ("b",)], np.eye(2)
    with pytest.raises(ValueError, match=r"kind 'span' .*class, classes"):
        fit_baseline(texts, targets, "span")
    for rows, wanted in (([], targets), (texts, targets[:1]), (texts, targets[:, 0]), (texts, targets + np.inf)):
        with pytest.raises(ValueError, match="each text needs one row of finite"):
            fit_baseline(rows, wanted, "class")
    for ragged in ([("a",), ("b", "c")], [("a", "b", "c")] * 2):
        with pytest.raises(ValueError, match="every row must have"):
            fit_baseline(ragged, targets, "class")
