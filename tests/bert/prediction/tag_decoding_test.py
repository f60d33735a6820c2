"""The likeliest allowed tags, held to a search through all of them."""

import itertools

import numpy as np
import pytest

from bert.prediction.tag_decoding import follows, viterbi

PLAIN = ("B", "I", "O")
TYPED = ("I-PER", "O", "B-LOC", "B-PER", "I-LOC")


def allowed(tags) -> bool:
    """By the rule in words: an I comes after a B or I of its type."""
    return all(
        not tag.startswith("I") or before in ("B" + tag[1:], tag) for before, tag in itertools.pairwise(["O", *tags])
    )


def log_shares(rng, count, classes) -> np.ndarray:
    return np.log(rng.dirichlet(np.ones(classes), count))


@pytest.mark.parametrize("labels", [PLAIN, TYPED])
def test_no_allowed_tags_are_likelier(labels):
    """Of 150 random texts of 0 to 5 tokens, decoded together, each is the best of all allowed sequences."""
    rng = np.random.default_rng(0)
    length_N = rng.integers(0, 6, 150)
    starts = np.concatenate([[0], np.cumsum(length_N)])
    scores_KC = log_shares(rng, starts[-1], len(labels))
    found_K = viterbi(scores_KC, starts, *follows(labels))
    every = {n: [c for c in itertools.product(range(len(labels)), repeat=n) if allowed([labels[i] for i in c])]
             for n in range(6)}  # fmt: skip
    changed = 0
    for a, b in itertools.pairwise(starts):
        own_TC = scores_KC[a:b]
        best = max(every[b - a], key=lambda c: sum(own_TC[t, i] for t, i in enumerate(c)))
        assert tuple(found_K[a:b]) == best
        changed += tuple(own_TC.argmax(1)) != best
    assert changed > 20, "for the others the rule decides nothing"


def test_a_text_is_decoded_alike_in_any_company():
    """200 texts of up to 40 tokens together, in another order, and one at a time."""
    rng = np.random.default_rng(1)
    texts = [log_shares(rng, n, 3) for n in rng.integers(0, 41, 200)]

    def decoded(chosen):
        starts = np.concatenate([[0], np.cumsum([len(texts[n]) for n in chosen])])
        tags_K = viterbi(np.concatenate([texts[n] for n in chosen]), starts, *follows(PLAIN))
        return {n: tags_K[a:b].tolist() for n, (a, b) in zip(chosen, itertools.pairwise(starts), strict=True)}

    together = decoded(range(200))
    assert decoded(rng.permutation(200).tolist()) == together
    for n in range(0, 200, 10):
        assert decoded([n])[n] == together[n]


def test_averaged_votes_become_valid_tags():
    """Half of the annotators begin the span a token earlier: their mean has an I likelier than B after an O."""
    p_KC = np.array([[0.45, 0.0, 0.55], [0.4, 0.6, 0.0], [0.0, 0.9, 0.1]])
    found_K = viterbi(np.log(np.maximum(p_KC, 1e-300)), np.array([0, 3]), *follows(PLAIN))
    assert [PLAIN[i] for i in p_KC.argmax(1)] == ["O", "I", "I"]
    assert [PLAIN[i] for i in found_K] == ["B", "I", "I"]


def test_no_texts_have_no_tags():
    for starts in ([0], [0, 0, 0]):
        assert viterbi(np.zeros((0, 3)), np.array(starts), *follows(PLAIN)).tolist() == []


def test_what_may_follow_what():
    first_C, move_CC = follows(PLAIN)
    np.testing.assert_array_equal(first_C, [True, False, True])
    np.testing.assert_array_equal(move_CC, [[True, True, True], [True, True, True], [True, False, True]])
    first_C, move_CC = follows(TYPED)
    assert {tag for tag, may in zip(TYPED, first_C, strict=True) if not may} == {"I-PER", "I-LOC"}
    for (i, before), (j, tag) in itertools.product(enumerate(TYPED), repeat=2):
        assert move_CC[i, j] == (tag[0] != "I" or before in ("B" + tag[1:], tag)), (before, tag)


def test_types_without_a_beginning_tag_may_begin_inside():
    """A model with I-LOC and no B-LOC, as IOB1 gives: else its places could never be found."""
    labels = ("O", "B-PER", "I-PER", "I-LOC")
    p_KC = np.array([[0.1, 0.0, 0.0, 0.9], [0.6, 0.0, 0.4, 0.0], [0.1, 0.0, 0.9, 0.0]]) + 1e-9
    found_K = viterbi(np.log(p_KC), np.array([0, 3]), *follows(labels))
    assert [labels[i] for i in found_K] == ["I-LOC", "O", "O"]
