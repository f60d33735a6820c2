"""Cross-entropy of hard and soft labels, sums that padding cannot reach, and one division."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bert.model.losses import (
    cross_entropy,
    position_cross_entropy,
    ratio,
    sigmoid_cross_entropy,
    smoothed,
    soft_cross_entropy,
    squared_error,
    weighted_sum,
)


def test_cross_entropy_of_five_logits(golden):
    """The masked word is "fun"; the model gives it 5 % and another word 57 %. Loss: -ln 0.0505 = 2.9856 nats."""
    example = json.loads((golden / "hand_examples.json").read_text())["masked_word_example"]
    logits_C = jnp.array(example["logits"])
    assert float(cross_entropy(logits_C, jnp.int32(3))) == pytest.approx(2.9856236, abs=1e-6)
    assert example["cross_entropy_nats"] == pytest.approx(2.9856236, abs=1e-7)
    gradient_C = jax.grad(cross_entropy)(logits_C, jnp.int32(3))
    np.testing.assert_allclose(gradient_C, np.array(example["softmax"]) - np.eye(5)[3], atol=1e-6)


def test_soft_labels_with_masked_tokens(golden):
    """Votes of annotators on four counted tokens of nine: their mean cross-entropy is 0.668269 nats."""
    example = json.loads((golden / "hand_examples.json").read_text())["bio_soft_labels"]
    weights_T = jnp.array(example["loss_mask"], jnp.float32)
    loss_T = soft_cross_entropy(jnp.array(example["logits"]), jnp.array(example["gold"]))
    mean = ratio(weighted_sum(loss_T, weights_T), weights_T.sum())
    assert float(mean) == pytest.approx(0.6682685205, abs=1e-6)
    counted = [values for values in example["per_token_loss_nats"] if values is not None]
    np.testing.assert_allclose(loss_T[4:8], counted, atol=1e-6)


def test_means_come_from_totals(golden):
    """Four counted tokens in one example, one in another: 0.737 over all tokens, not 0.841, the mean of two means."""
    example = json.loads((golden / "hand_examples.json").read_text())["bio_soft_labels"]
    second = example["two_example_batch"]["second_example"]
    logits = jnp.array([*example["logits"], second["logits"]])
    target = jnp.array([*example["gold"], second["gold"]])
    weights = jnp.array([*example["loss_mask"], 1], jnp.float32)
    mean = ratio(weighted_sum(soft_cross_entropy(logits, target), weights), weights.sum())
    assert float(mean) == pytest.approx(example["two_example_batch"]["mean_over_all_counted_tokens"], abs=1e-6)


def test_hard_labels_are_soft_labels_with_one_1():
    logits = jax.random.normal(jax.random.key(0), (4, 6, 5))
    labels = jax.random.randint(jax.random.key(1), (4, 6), 0, 5)
    np.testing.assert_allclose(
        cross_entropy(logits, labels), soft_cross_entropy(logits, jax.nn.one_hot(labels, 5)), atol=1e-6
    )


def test_ignored_labels_cost_nothing():
    """Three equal logits, labels 2 and -100: ln 3 for the first; exactly 0, with gradient 0, for the second."""
    labels = jnp.array([2, -100])
    total, gradient = jax.value_and_grad(lambda x: cross_entropy(x, labels).sum())(jnp.zeros((2, 3)))
    assert float(total) == pytest.approx(1.098612, abs=1e-6)
    np.testing.assert_allclose(gradient[0], [1 / 3, 1 / 3, -2 / 3], atol=1e-6)
    np.testing.assert_array_equal(gradient[1], 0)


@pytest.mark.parametrize("label", [3, 30522])
def test_a_label_beyond_the_classes_is_loud(label):
    """Three classes, label 3 or more: NaN, so that the step is skipped; hidden by weight 0, its gradient, too."""
    labels = jnp.array([2, label])
    values = cross_entropy(jnp.zeros((2, 3)), labels)
    np.testing.assert_allclose(values, [np.log(3), np.nan], atol=1e-6)

    def total(logits):
        return weighted_sum(cross_entropy(logits, labels), jnp.array([1.0, 0.0]))

    loss, gradient = jax.value_and_grad(total)(jnp.zeros((2, 3)))
    assert float(loss) == pytest.approx(np.log(3), abs=1e-6)
    np.testing.assert_array_equal(gradient[1], 0)


def test_an_impossible_class_without_a_vote_costs_nothing():
    """Logits 0, 0, -inf and votes 1/2, 1/2, 0: ln 2, with gradient 0; 0 times -inf is not a number."""
    loss, gradient = jax.value_and_grad(soft_cross_entropy)(jnp.array([0.0, 0.0, -np.inf]), jnp.array([0.5, 0.5, 0.0]))
    assert float(loss) == pytest.approx(np.log(2), abs=1e-6)
    np.testing.assert_allclose(gradient, 0, atol=1e-7)
    assert float(soft_cross_entropy(jnp.array([0.0, -np.inf]), jnp.array([0.0, 1.0]))) == np.inf


def test_class_0_is_a_class_like_any_other():
    """Nothing takes label 0 for "no label"."""
    loss, gradient = jax.value_and_grad(cross_entropy)(jnp.array([0.0, 1.0]), jnp.int32(0))
    assert float(loss) == pytest.approx(np.log(1 + np.e), abs=1e-6)
    np.testing.assert_allclose(gradient, [-0.7310586, 0.7310586], atol=1e-6)


def test_huge_logits_stay_finite():
    """Logits of 1e4 would overflow exp(); the loss is their difference."""
    assert float(cross_entropy(jnp.array([1e4, 0.0]), jnp.int32(1))) == 1e4
    assert float(cross_entropy(jnp.array([1e4, 0.0]), jnp.int32(0))) == 0.0


@pytest.mark.parametrize("loss", ["hard", "soft"])
def test_low_precision_logits_are_summed_in_float32(loss):
    """2,000 classes with equal bfloat16 logits: ln 2000 to six digits, which a bfloat16 sum cannot reach."""
    logits_C = jnp.zeros(2000, jnp.bfloat16)
    values = (
        cross_entropy(logits_C, jnp.int32(7))
        if loss == "hard"
        else soft_cross_entropy(logits_C, jax.nn.one_hot(7, 2000))
    )
    assert values.dtype == jnp.float32
    assert float(values) == pytest.approx(np.log(2000), rel=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weight_0_hides_what_is_not_a_number(bad):
    """NaN times 0 is NaN; here it is 0, and so is its gradient."""
    weights = jnp.array([2.0, 0.0])
    total, gradient = jax.value_and_grad(weighted_sum)(jnp.array([3.0, bad]), weights)
    assert float(total) == 6.0
    np.testing.assert_array_equal(gradient, [2, 0])


def test_ratio_of_nothing_is_zero():
    """No counted position at all: loss 0 and gradient 0, not NaN."""
    value, gradient = jax.value_and_grad(ratio)(jnp.float32(0.0), jnp.float32(0.0))
    assert float(value) == 0.0
    assert float(gradient) == 0.0
    assert float(ratio(jnp.float32(6.0), jnp.float32(4.0))) == 1.5


def test_labels_that_are_judged_one_by_one():
    """Labels a and c of a, b, c at logits 0 cost ln 2; none at all may hold; far logits stay finite."""
    zeros = jnp.zeros((2, 3))
    targets = jnp.array([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(sigmoid_cross_entropy(zeros, targets), [np.log(2), np.log(2)], rtol=1e-6)
    far = sigmoid_cross_entropy(jnp.array([[300.0, -300.0, 300.0]]), targets[:1])
    np.testing.assert_allclose(far, [0.0], atol=1e-6)
    np.testing.assert_allclose(
        sigmoid_cross_entropy(jnp.array([[-300.0, 0.0, 0.0]]), targets[:1]), [100 + 2 * np.log(2) / 3]
    )


def test_labels_of_another_shape_never_broadcast():
    """[4, 3] logits and [4, 1] labels would give 16 losses."""
    with pytest.raises(ValueError, match=r"labels \(4, 1\) .*\(4,\)"):
        cross_entropy(jnp.ones((4, 3)), jnp.ones((4, 1), int))
    for values in (sigmoid_cross_entropy, soft_cross_entropy):
        with pytest.raises(ValueError, match="must have one shape"):
            values(jnp.ones((4, 3)), jnp.ones((4, 1)))


def test_squared_errors_of_numbers_never_broadcast():
    """Four predictions beside four numbers: 0.4375; a missing axis is refused instead of comparing each with all."""
    truth, predicted = jnp.array([0.0, 2.5, 5.0, 1.0]), jnp.array([0.5, 2.0, 4.0, 1.5])
    errors = squared_error(predicted[:, None], truth[:, None])
    assert float(errors.mean()) == pytest.approx(0.4375)
    with pytest.raises(ValueError, match="must have one shape"):
        squared_error(predicted[:, None], truth)


def test_soft_labels_cost_the_mean_over_their_votes():
    """Target (0.6, 0.4) at logits (1, -1): 0.926928 nats, as three and two of five votes."""
    logits = jnp.array([1.0, -1.0])
    soft = float(soft_cross_entropy(logits, jnp.array([0.6, 0.4])))
    votes = cross_entropy(jnp.tile(logits, (5, 1)), jnp.array([0, 0, 0, 1, 1]))
    assert soft == pytest.approx(0.926928, abs=1e-6)
    assert soft == pytest.approx(float(votes.mean()), abs=1e-6)


def test_smoothed_labels_are_mixed_with_the_uniform_distribution():
    """Hard and soft ones as in optax; five logits, right class 0, share 0.1: 0.7244 nats for 0.5744, as in torch."""
    logits, target = jnp.array([2, 1, 0, -1, 0.5]), jax.nn.one_hot(0, 5)
    assert float(soft_cross_entropy(logits, target)) == pytest.approx(0.5744, abs=5e-5)
    assert float(soft_cross_entropy(logits, smoothed(target, 0.1))) == pytest.approx(0.7244, abs=5e-5)
    votes = jnp.array([[0.6, 0.4, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(smoothed(votes, 0.3), optax.smooth_labels(votes, 0.3), rtol=1e-6)
    np.testing.assert_allclose(smoothed(votes, 0.3).sum(-1), 1, rtol=1e-6)
    assert smoothed(votes, 0.0) is votes


@pytest.mark.parametrize("end_of_row_1", [8, 99])
def test_starts_and_ends_cost_what_the_reference_says(golden, end_of_row_1):
    """The mean of start and end, over the rows that count; the reference's softmax is over all positions, padding too.
    Where row 1's span is out of range, that row counts for nothing."""
    want = json.loads((golden / "heads_summary.json").read_text())["question_answering"]
    counted = np.array([1, end_of_row_1 < 16, 1], np.float32)[:, None]
    own_BET = jnp.ones((3, 1, 16), bool)
    total = 0.0
    with np.load(golden / "heads.npz") as logits:
        for name in ("start", "end"):
            positions = jnp.array(want["labels"][f"{name}_positions"])[:, None]
            loss_BE = position_cross_entropy(jnp.array(logits[f"qa_{name}_logits"]), own_BET, positions)
            assert loss_BE.shape == (3, 1)
            total += float(weighted_sum(loss_BE, counted)) / 2
    loss = "loss" if counted.all() else "loss_with_out_of_range_row1_ignored"
    assert total / counted.sum() == pytest.approx(want[loss], abs=1e-6)


def test_a_position_is_chosen_among_its_examples_own():
    """Two examples in a row, and an empty slot: each is as if it were alone, and padding says nothing."""
    logits_BT = jax.random.normal(jax.random.key(0), (1, 10)).at[0, 8:].set(jnp.array([np.inf, np.nan]))
    example_T = jnp.array([1, 1, 1, 1, 1, 2, 2, 2, 0, 0])
    own_BET = (example_T == jnp.array([1, 2, 3])[:, None])[None]
    position_BE, weight_BE = jnp.array([[3, 5, 0]]), jnp.array([[1.0, 1.0, 0.0]])

    def total(logits_BT):
        return weighted_sum(position_cross_entropy(logits_BT, own_BET, position_BE), weight_BE)

    loss, gradient_BT = jax.value_and_grad(total)(logits_BT)
    alone = cross_entropy(logits_BT[0, :5], jnp.int32(3)) + cross_entropy(logits_BT[0, 5:8], jnp.int32(0))
    assert float(loss) == pytest.approx(float(alone), abs=1e-6)
    share_T = np.concatenate([jax.nn.softmax(logits_BT[0, :5]), jax.nn.softmax(logits_BT[0, 5:8]), [0, 0]])
    np.testing.assert_allclose(gradient_BT[0], share_T - np.isin(np.arange(10), [3, 5]), atol=1e-6)


def test_smoothed_positions_are_mixed_over_an_examples_own():
    """Two examples of five and three positions in a row, padding that says nothing: each as classes of its own."""
    logits_BT = jax.random.normal(jax.random.key(0), (1, 10)).at[0, 8:].set(jnp.array([np.inf, np.nan]))
    own_BET = (jnp.array([1, 1, 1, 1, 1, 2, 2, 2, 0, 0]) == jnp.array([1, 2, 3])[:, None])[None]
    position_BE, weight_BE = jnp.array([[3, 5, 0]]), jnp.array([[1.0, 1.0, 0.0]])

    def total(logits_BT):
        return weighted_sum(position_cross_entropy(logits_BT, own_BET, position_BE, 0.2), weight_BE)

    loss, gradient_BT = jax.value_and_grad(total)(logits_BT)
    targets = [smoothed(jax.nn.one_hot(3, 5), 0.2), smoothed(jax.nn.one_hot(0, 3), 0.2)]
    parts = [logits_BT[0, :5], logits_BT[0, 5:8]]
    wanted = sum(float(soft_cross_entropy(*pair)) for pair in zip(parts, targets, strict=True))
    assert float(loss) == pytest.approx(wanted, abs=1e-6)
    errors = [jax.nn.softmax(logits) - target for logits, target in zip(parts, targets, strict=True)]
    np.testing.assert_allclose(gradient_BT[0], np.concatenate([*errors, [0, 0]]), atol=1e-6)


def test_positions_are_summed_in_float32():
    values = position_cross_entropy(jnp.zeros((1, 2000), jnp.bfloat16), jnp.ones((1, 1, 2000), bool), jnp.array([[7]]))
    assert values.dtype == jnp.float32
    assert float(values[0, 0]) == pytest.approx(np.log(2000), rel=1e-6)
