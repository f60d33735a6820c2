"""Scores of tags beside one or several annotators, by hand: majority, words without a vote, plain tags, names."""

import itertools
import math

import numpy as np
import pytest

from tasks.metrics.score import Score
from tasks.tagging import tag_scores
from tasks.tagging.tag_schemes import TaggedSentence

BIO = ("O", "B", "I")
TYPED = ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")


def sentence(*tags) -> TaggedSentence:
    """Each of the tags, "?" for none, are one annotator's."""
    given = [(str(i), tuple(None if tag == "?" else tag for tag in one.split())) for i, one in enumerate(tags, 1)]
    return TaggedSentence(("w",) * len(given[0][1]), tuple(given), "file:1", "1")


def values(rows, predicted, labels=BIO, weights=None, sure=0.9):
    """The scores of tags that were predicted with this probability, the rest spread over the others."""
    said = [tags.split() for tags in predicted]
    chosen = np.array([labels.index(tag) for tags in said for tag in tags], int)
    p_KC = np.full((len(chosen), len(labels)), (1 - sure) / (len(labels) - 1))
    p_KC[np.arange(len(chosen)), chosen] = sure
    return {name: score.value for name, score in tag_scores.score(p_KC, said, rows, labels, weights or {}).items()}


def test_one_annotator_by_hand():
    """Gold LOC(1-2), PER(3), LOC(4): the first is cut short, the second has another type, the third is right."""
    found = values([sentence("O B-LOC I-LOC B-PER"), sentence("B-LOC")], ["O B-LOC O B-LOC", "B-LOC"], TYPED)
    assert found["accuracy"] == 3 / 5
    assert (found["precision"], found["recall"], found["f1"]) == (1 / 3, 1 / 3, pytest.approx(1 / 3))
    assert found["f1:LOC"] == pytest.approx(2 / 5)
    assert found["f1:PER"] == 0.0
    assert found["macro_f1"] == pytest.approx(1 / 5)
    assert found["cross_entropy"] == pytest.approx(-(3 * math.log(0.9) + 2 * math.log(0.025)) / 5)
    assert found["kl"] == pytest.approx(found["cross_entropy"])  # one annotator does not disagree
    assert (found["n"], found["n_sentences"]) == (5.0, 2.0)
    assert found["annotator_mean"] == found["annotator_best"] == found["annotator_majority"] == found["f1"]
    assert found["annotator_human"] is None
    assert list(found) == list(tag_scores.known_metrics(TYPED))


def test_lenient_and_strict_rules_differ_on_a_stray_i():
    """Gold X(1-3), X(5); predicted I I for the first: lenient 1.0, strict 0.6667."""
    labels = ("O", "B-X", "I-X")
    found = values([sentence("O B-X I-X O B-X")], ["O I-X I-X O B-X"], labels)
    assert (found["f1"], found["strict_f1"]) == (1.0, pytest.approx(2 / 3))


def test_three_annotators_by_hand():
    """Votes B B O: target (1/3, 2/3, 0) of O, B, I, and 0.867563 nats for probabilities 1/6, 2/3, 1/6."""
    rows = [sentence("B", "B", "O")]
    found = values(rows, ["B"], sure=2 / 3)
    assert found["cross_entropy"] == pytest.approx(0.867563, abs=1e-6)
    assert found["kl"] == pytest.approx(0.867563 - math.log(3) + 2 / 3 * math.log(2), abs=1e-6)
    assert found["brier"] == pytest.approx((1 / 3 - 1 / 6) ** 2 + 0 + (1 / 6) ** 2)
    assert found["calibration_error"] == pytest.approx(0.0, abs=1e-6)  # two of three say B, and so does 2/3
    assert (found["accuracy"], found["f1"]) == (1.0, 1.0)
    assert found["annotator_mean"] == pytest.approx(2 / 3)  # 1, 1 and 0
    assert found["annotator_human"] == pytest.approx(1 / 3)  # of the three pairs one agrees
    assert found["annotator_kappa"] == pytest.approx(-0.5)  # they agree by 1/3, by chance 5/9
    weighted = values(rows, ["B"], weights={"3": 4.0}, sure=2 / 3)
    assert weighted["annotator_kappa"] == found["annotator_kappa"]
    assert weighted["cross_entropy"] == pytest.approx(-(math.log(2 / 3) / 3 + math.log(1 / 6) * 2 / 3))
    assert (weighted["accuracy"], weighted["f1"]) == (0.0, 0.0)  # O now


def test_the_order_of_annotators_changes_nothing():
    tags = ["B I O O", "B O O O", "B I O B"]
    found = [values([sentence(*some)], ["B I O O"]) for some in itertools.permutations(tags)]
    for other in found[1:]:
        assert other == pytest.approx(found[0])


def test_the_majority_is_valid_and_o_wins_a_tie():
    """Word by word B O B would be O: I after it is made a B. One B and one O: O."""
    rows = [sentence("B I", "O I", "O I"), sentence("B O", "O O")]
    counts_KC = tag_scores.vote_counts(rows, BIO, {})
    assert counts_KC.tolist() == [[2, 1, 0], [0, 0, 3], [1, 1, 0], [2, 0, 0]]
    assert tag_scores.majority_tags(counts_KC, [2, 2], BIO) == [["O", "B"], ["O", "O"]]
    assert tag_scores.majority_tags(counts_KC, [2, 2], ("x", "y", "z")) == [["x", "z"], ["x", "x"]]


def test_words_without_a_vote_are_not_compared():
    """Nobody tagged the second and the third word: an entity predicted there is neither right nor wrong."""
    rows = [sentence("B ? ? I", "B ? ? O", "B ? ? I"), sentence("? ?")]
    counts_KC = tag_scores.vote_counts(rows, BIO, {})
    assert tag_scores.majority_tags(counts_KC, [4, 2], BIO) == [["B", None, None, "B"], [None, None]]
    found = values(rows, ["B B I I", "B B"])
    assert (found["precision"], found["recall"], found["accuracy"]) == (1.0, 1.0, 1 / 2)
    assert found["n"] == 2.0
    assert found["cross_entropy"] == values([sentence("B I", "B O", "B I")], ["B I"])["cross_entropy"]
    none = values([sentence("? ?")], ["B B"])
    assert {none[name] for name in ("accuracy", "f1", "cross_entropy", "brier", "annotator_mean")} == {None}


def test_other_tags_have_no_entities():
    labels = ("DT", "NN")
    found = values([sentence("DT NN NN")], ["DT DT NN"], labels)
    assert found["accuracy"] == 2 / 3
    assert list(found) == ["accuracy", "cross_entropy", "kl", "brier", "calibration_error", "n", "n_sentences"]
    assert tag_scores.outside(labels) is None


def test_names_of_metrics():
    assert tag_scores.default_metrics(TYPED, False)[0] == "f1"
    assert tag_scores.default_metrics(TYPED, True)[0] == "cross_entropy"
    assert tag_scores.default_metrics(("DT", "NN"), True)[0] == "accuracy"
    for labels, several in itertools.product((BIO, TYPED, ("DT", "NN")), (True, False)):
        assert set(tag_scores.default_metrics(labels, several)) <= set(tag_scores.known_metrics(labels))
    assert {"f1:LOC", "f1:PER"} < set(tag_scores.known_metrics(TYPED))
    assert set(tag_scores.LOWER_IS_BETTER) < set(tag_scores.known_metrics(BIO))
    for name, labels in (("f1", ("DT", "NN")), ("f1:PER", BIO), ("f1:CITY", TYPED)):
        assert name not in tag_scores.known_metrics(labels)


def test_each_type_of_entity_by_hand():
    """LOC: one of two found, and one too many; PER is found; a word that nobody tagged is not compared."""
    gold = [["B-LOC", "O", "B-LOC", "I-LOC"], ["B-PER", None, "B-ORG"]]
    each = tag_scores.by_type(gold, [tags.split() for tags in ("B-LOC O B-LOC O", "B-PER B-LOC O")], TYPED)
    found = {kind: {name: score.value for name, score in row.items()} for kind, row in each.items()}
    assert found == {
        "LOC": {"precision": 0.5, "recall": 0.5, "f1": 0.5, "support": 2, "predicted": 2},
        "ORG": {"precision": None, "recall": 0, "f1": 0, "support": 1, "predicted": 0},
        "PER": {"precision": 1, "recall": 1, "f1": 1, "support": 1, "predicted": 1},
    }
    each = tag_scores.by_type([["DT", "NN", None]], [["DT", "DT", "NN"]], ("DT", "NN"))
    assert {kind: [row[name].value for name in ("recall", "predicted")] for kind, row in each.items()} == {
        "DT": [1, 2],
        "NN": [0, 0],
    }


def test_a_tagger_that_says_the_same_of_every_word_is_noted():
    for tags, accuracy, noted in (
        (["O O", "O O"], 0.75, {"constant_answer:O": 4}),
        (["O O", "O O"], 1.0, {}),
        (["O O", "O B"], 0.75, {}),
    ):
        assert tag_scores.constant([text.split() for text in tags], {"accuracy": Score(accuracy)}) == noted
