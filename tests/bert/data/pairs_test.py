"""Epoch plans: every token once, right labels, half of the pairs foreign."""

import numpy as np
import pytest

from bert.data import pairs
from bert.errors import InputError
from bert.store.reader import LABELS


def documents_of(store):
    """int64 [documents], global end of each document"""
    return np.concatenate([np.asarray(shard.document_ends) + shard.token_start for shard in store.shards])


def sentences_of(store):
    return np.concatenate([np.asarray(shard.sentence_ends) + shard.token_start for shard in store.shards])


def plan(store, max_length=48, objective="nsp", seed=3, epoch=0, **more):
    return pairs.plan_epoch(store, max_length=max_length, objective=objective, seed=seed, epoch=epoch, **more)


def lines(*counts, start=6):
    """One document a number: so many sentences of five different tokens each."""
    return [
        [[start + (7 * d + 3 * s + t) % 400 for t in range(5)] for s in range(count)] for d, count in enumerate(counts)
    ]


@pytest.mark.parametrize("objective", ["nsp", "sop", "none"])
@pytest.mark.parametrize("max_length", [8, 48, 600])
def test_every_token_is_in_exactly_one_example_and_none_is_too_long(store, objective, max_length):
    """Each epoch uses each token of the store once, whatever the room; nothing is truncated or repeated."""
    for epoch in range(3):
        found = plan(store, max_length, objective, epoch=epoch)
        used = np.zeros(store.num_tokens, int)
        for start, length in ((found.a_start, found.a_length), (found.b_start, found.b_length)):
            for first, count in zip(start, length, strict=True):
                used[first : first + count] += 1
        assert (used == 1).all()
        assert (found.a_length > 0).all()
        assert found.lengths.max() <= max_length
        documents = documents_of(store)
        for start, length in ((found.a_start, found.a_length), (found.b_start, found.b_length)):
            here = length > 0
            np.testing.assert_array_equal(
                np.searchsorted(documents, start[here], "right"), np.searchsorted(documents, (start + length)[here])
            )


def test_labels_say_what_stands_in_the_example(store):
    """A true B continues its A at a sentence end; a random B comes from another document; one segment has no label."""
    documents, sentences = documents_of(store), sentences_of(store)
    for epoch in range(3):
        found = plan(store, epoch=epoch)
        a_end = found.a_start + found.a_length
        true, random, single = (found.label == label for label in (0, 1, -1))
        assert min(true.sum(), random.sum(), single.sum()) > 20
        np.testing.assert_array_equal(found.b_start[true], a_end[true])
        assert np.isin(a_end[true | random], sentences).all()
        of_a = np.searchsorted(documents, found.a_start[random], "right")
        assert (of_a != np.searchsorted(documents, found.b_start[random], "right")).all()
        assert (found.b_length[true | random] > 0).all()
        assert (found.b_length[single] == 0).all()
    first_sentences = sentences[np.searchsorted(sentences, np.append(0, documents[:-1]), "right")]
    assert found.counts.one_sentence_documents == (first_sentences == documents).sum() > 10
    assert found.counts.documents == store.num_documents


def test_classes_have_the_names_of_the_stored_convention(store):
    """What a prepared folder calls label 0 and 1 is what they are called here; the counts name the second class."""
    assert dict(enumerate(pairs.CLASS_NAMES["nsp"])) == {
        int(label): name for label, name in LABELS["next_sentence"].items()
    }
    assert (pairs.CLASS_NAMES["nsp"][pairs.IS_NEXT], pairs.CLASS_NAMES["nsp"][pairs.RANDOM]) == ("is_next", "random")
    for objective, names in pairs.CLASS_NAMES.items():
        counts = plan(store, objective=objective).counts
        assert f"{counts.other_pairs:,} {names[1]}, " in str(counts)


def test_half_of_the_pairs_are_random_and_their_lengths_tell_nothing(make_store, random_documents):
    """Swaps take B of equal length: no example gets shorter, longer or cut, and both classes have the same lengths."""
    store = make_store(random_documents(np.random.default_rng(1), 1500))
    found, ordered = plan(store), plan(store, objective="sop")
    for one in (found, ordered):
        assert abs(one.counts.true_pairs - one.counts.other_pairs) <= 3
        assert one.counts.true_pairs == (one.label == 0).sum()
        assert one.counts.without_label == (one.label == -1).sum()
    np.testing.assert_array_equal(found.lengths, ordered.lengths)  # the same chunks: both plans cut the text alike
    for array in (found.lengths, found.b_length):
        true, random = array[found.label == 0], array[found.label == 1]
        spread = array[found.label >= 0].std() * np.sqrt(1 / len(true) + 1 / len(random))
        assert abs(true.mean() - random.mean()) < 4 * spread


def test_swapped_segments_are_the_true_pair_in_the_other_order(store):
    """Sentence order: label 1 means that the segment which stands second in the text stands first in the example."""
    found = plan(store, objective="sop")
    swapped, true = found.label == 1, found.label == 0
    np.testing.assert_array_equal((found.b_start + found.b_length)[swapped], found.a_start[swapped])
    np.testing.assert_array_equal((found.a_start + found.a_length)[true], found.b_start[true])


def test_epochs_differ_and_a_plan_repeats(store):
    """Same arguments: the same plan. Another epoch or seed: other boundaries, other partners."""
    first, again, later, other = plan(store), plan(store), plan(store, epoch=1), plan(store, seed=4)
    for name in ("a_start", "a_length", "b_start", "b_length", "label"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    for different in (later, other):
        assert np.isin(different.a_start, first.a_start).mean() < 0.9
        pairs_of = [set(zip(one.a_start.tolist(), one.b_start.tolist(), strict=True)) for one in (first, different)]
        assert len(pairs_of[0] & pairs_of[1]) < 0.5 * len(first)


def test_boundaries_move_inside_one_long_document(make_store):
    """Chunks of a book begin elsewhere in each epoch."""
    store = make_store(lines(400))
    starts = [set(plan(store, objective="none", epoch=epoch).a_start.tolist()) for epoch in range(2)]
    assert len(starts[0] & starts[1]) < 0.7 * len(starts[0])


def test_boundaries_move_without_short_examples(make_store):
    """The rest of a document stands at a random place among its full chunks."""
    store = make_store(lines(103))
    plans = [plan(store, 52, "none", epoch=epoch, short_probability=0) for epoch in range(30)]
    assert {tuple(sorted(one.lengths.tolist())) for one in plans} == {(17, *[52] * 10)}
    assert len({tuple(one.a_start.tolist()) for one in plans}) > 5


def test_a_book_among_leaflets_is_no_partner_of_itself(make_store):
    """With most of the text in one document, fewer pairs are random; none has its B from the same document."""
    store = make_store(lines(400, 12, 9, 20))
    documents = documents_of(store)
    for epoch in range(5):
        found = plan(store, epoch=epoch)
        random = found.label == 1
        assert 6 <= random.sum() < (found.label == 0).sum()
        of_a = np.searchsorted(documents, found.a_start[random], "right")
        assert (of_a != np.searchsorted(documents, found.b_start[random], "right")).all()


def test_short_examples(make_store):
    """Without short ones there are as few chunks as can be; else about the share asked for is short."""
    store = make_store(lines(*[1000] * 4))
    assert len(plan(store, objective="none", max_length=52, short_probability=0)) == 4 * 100
    assert (plan(store, objective="none", max_length=52, short_probability=0).lengths == 52).all()
    shares = [(plan(store, objective="none", max_length=52, epoch=epoch).lengths < 52).mean() for epoch in range(30)]
    assert 0.085 < np.mean(shares) < 0.115


def test_no_random_pair_in_one_document(make_store):
    """One document of three sentences: refused by name of the cause, for its own continuations are no random text."""
    store = make_store(lines(3))
    with pytest.raises(InputError, match=r"NSP.* none or sop$"):
        pairs.check_documents(store, "nsp")
    for epoch in range(50):
        assert (plan(store, epoch=epoch).label == -1).all()
    pairs.check_documents(store, "sop")
    assert {label for epoch in range(50) for label in plan(store, objective="sop", epoch=epoch).label} >= {0, 1}


def test_copies_of_a_document_are_no_random_partners(make_store):
    """A thousand copies of one document: a B labelled random is never the text that really follows its A."""
    store = make_store(lines(3) * 1000)
    labels = []
    for epoch in range(3):
        found = plan(store, epoch=epoch)
        labels.append(found.counts.other_pairs / (found.counts.true_pairs + found.counts.other_pairs))
        random = np.flatnonzero(found.label == 1)
        for start, length, a_end in zip(
            found.b_start[random], found.b_length[random], (found.a_start + found.a_length)[random], strict=True
        ):
            foreign = store.read(np.array([start]), np.array([length]))
            rest = documents_of(store)[np.searchsorted(documents_of(store), a_end)] - a_end
            own = store.read(np.array([a_end]), np.array([min(length, rest)]))
            assert foreign.tolist() != own.tolist()
    assert max(labels) > 0.4


def test_a_common_beginning_makes_no_copy(make_store):
    """Sentences that all begin with the same words can still be random partners."""
    store = make_store([[[6, 7, 8, 200 + n], [50, 51, 52, 60 + n]] for n in range(100)])
    assert plan(store, short_probability=0).counts.other_pairs == 50


def true_pairs(store, width=8):
    """What stands before and behind the ends of sentences, whole documents, as (tuple, first tokens behind)."""
    documents, sentences, start = documents_of(store).tolist(), sentences_of(store).tolist(), 0
    found = set()
    for end in documents:
        for cut in (cut for cut in sentences if start < cut < end):
            left, right = (tuple(store.read([a], [b - a]).tolist()) for a, b in ((start, cut), (cut, end)))
            found |= {(left[i:], right[:n]) for i in range(len(left)) for n in range(1, width + 1)}
        start = end
    return found


@pytest.mark.parametrize("objective", ["nsp", "sop"])
def test_no_pair_that_stands_somewhere_is_called_random_or_swapped(make_store, objective):
    """Documents A B, C D, A E: (A, E) is a true pair. Two texts with a common beginning: what follows it in one follows
    it in the other. Three sentences in any order: some stand both ways round."""
    sentence = lambda n: [6 + 12 * n + i for i in range(5)]  # noqa: E731
    common = [sentence(n) for n in range(12)]
    mixed = [[sentence(a), sentence(b)] for a, b in np.random.default_rng(0).integers(3, size=(20, 2))]
    for documents in (
        [[sentence(0), sentence(1)], [sentence(2), sentence(3)], [sentence(0), sentence(4)]],
        [[*common, *(sentence(n) for n in ends)] for ends in ((20, 21, 22, 23), (24, 25, 26, 27))],
        mixed,
    ):
        store = make_store(documents)
        stand, others = true_pairs(store), 0
        for epoch in range(60):
            found = plan(store, max_length=40, objective=objective, epoch=epoch, short_probability=0)
            for i in np.flatnonzero(found.label == 1):
                a = tuple(store.read(found.a_start[i : i + 1], found.a_length[i : i + 1]).tolist())
                b = tuple(store.read(found.b_start[i : i + 1], found.b_length[i : i + 1]).tolist())
                assert (a[-32:], b[:8]) not in stand or len(a) < 5
                others += 1
        assert others > 20 or documents is mixed


def test_no_text_is_swapped_twice(make_store):
    """Of nine sentences in any order some partners are refused, and others are searched for."""
    numbers = np.random.default_rng(0).integers(9, size=(60, 2))
    store = make_store([[[6 + 5 * n + i for i in range(5)] for n in pair] for pair in numbers])
    for epoch in range(10):
        found = plan(store, epoch=epoch, short_probability=0)
        starts = np.concatenate([found.a_start, found.b_start[found.b_length > 0]])
        assert len(np.unique(starts)) == len(starts)


def test_one_class_alone_is_told(make_store):
    """Two documents of a chunk each can only both be random; of many, both classes are there and nothing is said."""
    notice = plan(make_store(lines(3, 3)), max_length=48, short_probability=0, epoch=1).counts.notice
    assert "set examples.objective to none" in notice
    assert plan(make_store(lines(*[9] * 20))).counts.notice == ""
    assert plan(make_store(lines(3, 3)), objective="none").counts.notice == ""
    assert pairs.PairCounts("sop", 100, 0, 200, 100, 1).notice
    assert not pairs.PairCounts("sop", 100, 0, 200, 100, 10).notice


def test_one_sentence_documents(make_store):
    """A blank line after each sentence: refused with the count. Two real documents more: works, and says how many."""
    store = make_store(lines(1, 1, 1, 1, 1, 1))
    with pytest.raises(InputError, match=r"6 of 6 documents.*NSP.* to none$"):
        pairs.check_documents(store, "nsp")
    pairs.check_documents(store, "none")
    store = make_store(lines(1, 1, 1, 1, 1, 1, 10, 10))
    pairs.check_documents(store, "nsp")
    found = [plan(store, max_length=128, epoch=epoch) for epoch in range(40)]
    assert "6 of 8 documents unusable for true pairs" in str(found[0].counts)
    assert "% of the pairs" in str(next(one for one in found if one.counts.true_pairs).counts)
    assert (np.concatenate([one.label for one in found]) == 1).sum() > 20


def test_two_full_documents_still_get_random_pairs(make_store):
    """Where no B fits in place of another, its end becomes an example of its own: no token is lost, none repeated."""
    store = make_store(
        [[[6 + i] * n for i, n in enumerate((20, 31, 25))], [[60 + i] * n for i, n in enumerate((43, 17, 10))]]
    )
    labels = []
    for epoch in range(20):
        found = plan(store, max_length=79, epoch=epoch, short_probability=0)
        assert found.tokens.sum() == store.num_tokens
        assert found.lengths.max() <= 79
        labels += found.label.tolist()
    assert labels.count(1) >= 5


def test_b_of_nearly_equal_length_before_cuts(make_store):
    """Lengths are all different, and half of the examples are full: the others exchange, and nothing is cut."""
    full = [[[6 + i] * (10 + i), [60 + i] * (50 - i)] for i in range(20)]
    loose = [[[120 + i] * 5, [180 + i] * (2 + i)] for i in range(20)]
    store = make_store(full + loose)
    for epoch in range(5):
        found = plan(store, max_length=63, epoch=epoch, short_probability=0)
        assert len(found) == 40
        assert found.counts.other_pairs == 20


def test_an_empty_store_is_refused(make_store):
    """Nothing to train on is an error with its cause, not a run of zero steps."""
    with pytest.raises(InputError, match="no tokens"):
        pairs.check_documents(make_store([]), "none")


def test_a_single_sentence_longer_or_shorter_than_the_room(make_store):
    """One sentence gives at least one example, whatever the room."""
    store = make_store([[[6, 7, 8, 9]]])
    for max_length in (8, 512):
        assert len(plan(store, max_length=max_length, objective="none", short_probability=0)) == 1
    assert len(plan(make_store([[[6] * 100]]), max_length=12, objective="none", short_probability=0)) == 10
