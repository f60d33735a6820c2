"""Which texts stand behind each other somewhere: compared with a plain search through all documents."""

import itertools

import numpy as np
import pytest

from bert.data import repeats


def boundaries_of(documents):
    """For each end of a sentence inside a document: (tokens before it, tokens behind it), in their document."""
    found = []
    for sentences in documents:
        for number in range(1, len(sentences)):
            sides = sentences[:number], sentences[number:]
            found.append(tuple([token for one in side for token in one] for side in sides))
    return found


def positions_of(documents):
    """The same ends, as positions in the store."""
    found, start = [], 0
    for sentences in documents:
        ends = start + np.cumsum([len(one) for one in sentences])
        found += ends[:-1].tolist()
        start = int(ends[-1])
    return np.array(found, np.int64)


def stands_somewhere(documents, a, b):
    before, behind = a[-repeats.COMPARED[0] :], b[: repeats.COMPARED[1]]
    return any(
        left[-len(before) :] == before and right[: len(behind)] == behind for left, right in boundaries_of(documents)
    )


@pytest.fixture(scope="module")
def repetitive():
    """Sixty documents of one to six sentences out of twelve, of one to forty tokens."""
    rng = np.random.default_rng(0)
    lengths = (1, 1, 2, 3, 4, 6, 8, 9, 12, 20, 33, 40)
    sentences = [part.tolist() for part in np.split(np.arange(6, 6 + sum(lengths)), np.cumsum(lengths)[:-1])]
    return [[sentences[i] for i in rng.integers(12, size=rng.integers(1, 7))] for _ in range(60)]


@pytest.mark.parametrize("shard_tokens", [1 << 26, 300])
def test_it_agrees_with_a_plain_search(make_store, repetitive, shard_tokens, monkeypatch):
    """Any A up to the end of a sentence and any B from the beginning of one, of whole sentences, from anywhere."""
    monkeypatch.setattr(repeats, "_BLOCK", 7)
    store = make_store(repetitive, shard_tokens=shard_tokens)
    rng = np.random.default_rng(1)
    sides, places = boundaries_of(repetitive), positions_of(repetitive)
    last = [len(left) for sentences in repetitive for left, _ in itertools.pairwise(sentences)]
    pairs = [(i, j) for i, j in rng.integers(len(sides), size=(600, 2)) if i != j]
    a = [sides[i][0][-max(rng.integers(1, 60), last[i]) :] for i, _ in pairs]
    b = [sides[j][1] for _, j in pairs]
    one, two = np.array(pairs).T
    found = repeats.follows_elsewhere(store, places[one], lengths(a), places[two], lengths(b))
    expected = [stands_somewhere(repetitive, x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(found, expected)
    assert 100 < sum(expected) < 500


def lengths(texts):
    return np.array([len(text) for text in texts], np.int32)


def test_what_a_cut_left_over_is_not_taken_for_a_text(make_store):
    """Sentences that differ in their first or last token alone: the rest of one, after a cut, is not the other."""
    end, beginning = range(10, 18), range(30, 34)
    store = make_store([[[6, *end], [*beginning, 40]], [[7, *end], [*beginning, 41]]])
    a_length, b_length = np.array([1, 9]), np.array([5, 4])
    assert not repeats.follows_elsewhere(store, np.full(2, 9), a_length, np.full(2, 23), b_length).any()


def test_a_store_without_text(make_store):
    none = np.zeros(0, np.int64)
    assert repeats.follows_elsewhere(make_store([]), none, none, none, none).tolist() == []
