"""Distance to votes, calibration and agreement: golden and hand-worked values, and what must not change them."""

import itertools
import json
import math

import numpy as np
import pytest

from bert.errors import InputError
from tasks.metrics import agreement

THREE = {"1": ["B", "I", "O", "O"], "2": ["B", "O", "O", "O"], "3": ["B", "I", "O", "B"]}


def softmax(logits):
    powers = np.exp(np.asarray(logits, np.float64))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def votes(rng):
    """Targets of three classes, some rows without a vote, and predictions."""
    counts = rng.multinomial(4, [0.5, 0.2, 0.3], 40).astype(np.float64)
    counts[rng.uniform(size=40) < 0.3] = 0
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), softmax(rng.normal(size=(40, 3)))


def test_golden_soft_labels(shared):
    case = json.loads((shared / "golden" / "hand_examples.json").read_text())["bio_soft_labels"]
    target, predicted, mask = np.array(case["gold"]), softmax(case["logits"]), np.array(case["loss_mask"])
    # the mask, and the rows of zeros, say the same here
    for weights in (mask, None):
        mean = agreement.cross_entropy(target, predicted, weights).value
        assert mean == pytest.approx(case["mean_over_unmasked_nats"])
        assert agreement.kl(target, predicted, weights).value == pytest.approx(case["kl_mean_nats"])
    for row, loss in enumerate(case["per_token_loss_nats"]):
        assert agreement.cross_entropy(target, predicted, np.arange(9) == row).value == (loss and pytest.approx(loss))


def test_two_of_three_annotators():
    target, predicted = np.array([[2 / 3, 0, 1 / 3]]), softmax([[math.log(4), 0, 0]])
    assert agreement.cross_entropy(target, predicted).value == pytest.approx(0.867563, abs=1e-6)
    of_majority = agreement.cross_entropy(np.array([[1, 0, 0]]), predicted)
    assert of_majority.value == pytest.approx(0.405465, abs=1e-6)
    entropy = -(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3))
    assert agreement.kl(target, predicted).value == pytest.approx(0.867563 - entropy, abs=1e-6)
    # predicted 2/3, 1/6, 1/6
    assert agreement.brier(target, predicted).value == pytest.approx(1 / 36 + 1 / 36)
    assert agreement.brier(np.array([[1.0, 0, 0]]), np.array([[0.0, 1, 0]])).value == 2


def test_weighted_means(votes):
    target, predicted = votes
    counted = target.any(axis=1)
    assert 0 < counted.sum() < len(target)
    weights = np.arange(len(target)) % 3
    for measure in (agreement.cross_entropy, agreement.kl, agreement.brier):
        value = measure(target, predicted).value
        assert value == pytest.approx(measure(target[counted], predicted[counted]).value)
        # a weight of 2 is the token twice, and 0 is none
        twice = measure(np.repeat(target, weights, axis=0), np.repeat(predicted, weights, axis=0)).value
        assert measure(target, predicted, weights).value == pytest.approx(twice)
        each = [measure(target[i : i + 1], predicted[i : i + 1]).value for i in np.flatnonzero(counted)]
        assert value == pytest.approx(np.mean(each))


def test_best_prediction_is_the_vote_distribution(votes):
    target, predicted = votes
    exact = np.where(target.any(axis=1, keepdims=True), target, 1 / 3)
    assert agreement.kl(target, exact).value == pytest.approx(0, abs=1e-12)
    assert agreement.brier(target, exact).value == pytest.approx(0, abs=1e-12)
    assert agreement.kl(target, predicted).value > 0
    gain = agreement.cross_entropy(target, predicted).value - agreement.cross_entropy(target, exact).value
    assert gain == pytest.approx(agreement.kl(target, predicted).value)


def test_a_share_of_zero_stays_finite():
    target, predicted = np.array([[0, 1.0]], np.float32), np.array([[1, 0]], np.float32)
    floor = -math.log(np.finfo(np.float32).tiny)
    assert agreement.cross_entropy(target, predicted).value == pytest.approx(floor)
    assert agreement.kl(target, predicted).value == pytest.approx(floor)


def test_no_value_has_a_reason():
    nothing, half = np.zeros((2, 2)), np.full((2, 2), 0.5)
    for measure in (agreement.cross_entropy, agreement.kl, agreement.brier):
        assert measure(nothing, half) == (None, "no token has a vote")
        assert measure(half, half, np.zeros(2)) == (None, "no token has a vote")
        for broken in (math.nan, math.inf):
            found = measure(half, np.array([[0.5, 0.5], [broken, 0]]))
            assert found == (None, "1 of 2 tokens have predictions that are not finite")
            # tokens that do not count may hold anything
            assert measure(half, np.array([[0.5, 0.5], [broken, 0]]), np.array([1, 0])).value is not None
    assert agreement.calibration_error(np.zeros(0), np.zeros(0)) == (None, "no token has a vote")
    broken = agreement.calibration_error(np.ones(1), np.array([np.nan]))
    assert broken == (None, "1 of 1 tokens have predictions that are not finite")


def test_wrong_arrays_are_refused():
    half = np.full((2, 2), 0.5)
    for target, predicted, weights, told in (
        (half, half[:1], None, r"targets \(2, 2\), predictions \(1, 2\) must both be"),
        (half, np.ones((2, 2), int), None, "predictions are int64"),
        (half * 4, half, None, "target 0 must hold shares that sum to 1; no counts"),
        (np.array([[0.5, 0.5], [1.5, -0.5]]), half, None, "target 1 must hold shares"),
        (np.array([[0.5, 0.5], [np.nan, 0]]), half, None, "target 1 must hold shares"),
        (half, np.array([[0.5, 0.5], [3.0, -2.0]]), None, "prediction 1 must hold shares .* no logits"),
        (half, half, np.ones(3), r"weights \(3,\) must be \(2,\)"),
        (half, half, np.array([1, -1]), "none negative or NaN"),
    ):
        with pytest.raises(ValueError, match=told):
            agreement.cross_entropy(target, predicted, weights)
    for shares, confidences, told in (
        (np.ones((2, 1)), np.ones(2), "must be"),
        (np.full(2, 3.0), np.ones(2), "shares from 3.0 to 3.0 must be between 0 and 1"),
        (np.ones(2), np.full(2, -1.0), "confidences from -1.0 to -1.0"),
    ):
        with pytest.raises(ValueError, match=told):
            agreement.calibration_error(shares, confidences)


def test_calibration_by_hand():
    def error(share, confidence, *rest):
        return agreement.calibration_error(np.array(share), np.array(confidence), *rest).value

    given = [1, 0, 0, 0.9], [0.95, 0.91, 0.5, 0.45]
    # 0.5 is the upper end of the bin of 0.45; gaps |1 - 1.86| and |0.9 - 0.95| of two tokens each
    assert error(*given) == pytest.approx((0.86 + 0.05) / 4)
    assert error(*given, None, 1) == pytest.approx(0.91 / 4)
    assert error(*given, [1, 0, 0, 3]) == pytest.approx((0.05 + 3 * 0.45) / 4)
    assert error([0, 1.0], [0.0, 1.0 + 1e-7]) == pytest.approx(0, abs=1e-6)


def test_calibration_against_votes(votes):
    target, predicted = votes
    (share, confidence), best = agreement.vote_share(target, predicted), predicted.argmax(axis=1)
    assert share.tolist() == [target[row, column] for row, column in enumerate(best)]
    assert confidence.tolist() == predicted.max(axis=1).tolist()
    assert agreement.calibration_error(*agreement.vote_share(predicted, predicted)).value == 0
    # where shares are right and wrong only, it is the usual one: with one bin, accuracy against mean confidence
    right = agreement.vote_share(np.eye(3)[best], predicted)
    assert agreement.calibration_error(*right, bins=1).value == pytest.approx(1 - confidence.mean())


def test_fleiss_kappa_by_hand():
    counts = np.array([[3, 0, 0], [0, 2, 1], [0, 0, 3], [1, 0, 2]])  # B, I, O of the three annotators
    assert agreement.fleiss_kappa(counts) == (pytest.approx(5 / 11), None)  # 0.4545
    assert agreement.fleiss_kappa(np.array([[2, 0], [0, 2]])).value == 1
    assert agreement.fleiss_kappa(np.array([[1, 1], [1, 1]])).value == -1
    # two and three votes; the third item has one and is left out
    unequal, note = (2 / 3 - 0.52) / 0.48, "1 of 3 items with fewer than two votes left out"
    assert agreement.fleiss_kappa(np.array([[2, 0], [1, 2], [1, 0]])) == (pytest.approx(unequal), note)


def test_fleiss_kappa_is_agreement_of_pairs(rng):
    votes = rng.integers(0, 3, (20, 5))
    pairs = [row[a] == row[b] for row in votes for a, b in itertools.permutations(range(5), 2)]
    chance = sum((votes == c).mean() ** 2 for c in range(3))
    counts = np.stack([(votes == c).sum(axis=1) for c in range(3)], axis=1)
    assert agreement.fleiss_kappa(counts).value == pytest.approx((np.mean(pairs) - chance) / (1 - chance))


def test_fleiss_kappa_without_value():
    for counts in (np.eye(2), np.zeros((0, 3))):
        assert agreement.fleiss_kappa(counts) == (None, "no item has two votes")
    assert agreement.fleiss_kappa(np.array([[3, 0], [2, 0]])) == (None, "all votes are for one class")
    for counts in (np.array([[0.5, 0.5]]), np.array([[-1, 3]]), np.array([[np.nan, 1]]), np.array([1, 2])):
        with pytest.raises(ValueError, match=r"whole numbers; votes"):
            agreement.fleiss_kappa(counts)


def test_annotators_by_hand():
    found = agreement.annotator_scores([THREE], [["B", "I", "O", "O"]])
    assert [found["annotators"][name].f1.value for name in "123"] == [1, 0, pytest.approx(2 / 3)]
    assert found["mean"].value == pytest.approx(5 / 9)
    assert found["best"] == (1, "annotator 1, texts: 1")
    assert found["human"] == (pytest.approx(2 / 9), "pairs: 3")


def test_sentences_are_weights_and_not_lost():
    sentences = [THREE, {"1": ["B"], "2": ["B"]}, {"1": ["O"], "4": [None]}]
    found = agreement.annotator_scores(sentences, [["B", "I", "O", "O"], ["B"], ["O"]])
    assert {name: score.n_sentences for name, score in found["annotators"].items()} == {"1": 3, "2": 2, "3": 1, "4": 0}
    # annotator 2: one hit of two and two entities
    assert [found["annotators"][name].f1.value for name in "123"] == [1, 0.5, pytest.approx(2 / 3)]
    assert found["annotators"]["4"].f1 == (None, "no text has a tag")
    assert found["mean"] == (pytest.approx((1 + 1 / 2 + 2 / 3) / 3), "1 of 4 annotators without an F1 left out")
    assert found["weighted_mean"].value == pytest.approx((3 * 1 + 2 / 2 + 2 / 3) / 6)
    # pairs 1-2 with two sentences (F1 1/2), 1-3 (2/3) and 2-3 (0) with one
    assert found["human"].value == pytest.approx((2 * 0.5 + 2 / 3 + 0) / 4)


def test_missing_words_are_not_compared():
    part = {"1": ["B", "I", None, None], "2": [None, None, "O", "B"]}
    found = agreement.annotator_scores([part], [["B", "I", "O", "O"]])
    assert [found["annotators"][name].f1.value for name in "12"] == [1, 0]
    assert found["human"] == (None, "no two annotators marked anything in the same texts")
    assert agreement.human_agreement([part | {"3": part["1"]}]) == (1, "pairs: 1")


def test_order_of_annotators_changes_nothing(rng):
    sentences, predicted = [], []
    for _ in range(30):
        words = int(rng.integers(1, 8))
        names = rng.permutation(list("abcde"))[: rng.integers(0, 6)]
        sentences.append({str(name): rng.choice(["B", "I", "O", None], words).tolist() for name in names})
        predicted.append(rng.choice(["B", "I", "O"], words).tolist())
    order = rng.permutation(30)
    moved = [dict(sorted(sentences[i].items())) for i in order]
    found = agreement.annotator_scores(sentences, predicted)
    again = agreement.annotator_scores(moved, [predicted[i] for i in order])
    assert found["annotators"] == again["annotators"]
    for name in ("mean", "weighted_mean", "best", "human"):
        assert found[name].value == pytest.approx(again[name].value)
        assert found[name].reason == again[name].reason


def test_human_agreement_without_value():
    nobody = agreement.annotator_scores([{}], [["B"]])
    assert not nobody["annotators"]
    assert nobody["mean"] == nobody["best"] == (None, "no annotator has an F1")
    silent = agreement.human_agreement([{"1": ["O"], "2": ["O"], "3": ["B"]}])
    assert silent == (0, "pairs: 2; without an F1, left out: 1")


def test_taggings_are_checked():
    with pytest.raises(InputError, match=r"sentence 1, .*annotator 1: tag 'b'"):
        agreement.annotator_scores([{"1": ["b"]}], [["O"]])
    with pytest.raises(InputError, match=r"sentence 1 .*2 .*1 of annotator 2"):
        agreement.human_agreement([{"1": ["O", "O"], "2": ["O"]}])
