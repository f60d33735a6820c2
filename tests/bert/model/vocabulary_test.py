"""What masked words cost, with its written-out gradient, against the plain cross-entropy of the scores."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.model import losses
from bert.model.vocabulary import cross_entropy_and_correct, logits, smoothed_cross_entropy

WORDS = 200  # in bfloat16 filled up to 256
POSITIONS = (2, 5)
compiled = jax.jit(cross_entropy_and_correct, static_argnums=4)


def arrays() -> tuple:
    """((x, table, bias), labels, weights): scores of standard deviation 2; the last slot of each row weighs nothing."""
    rng = np.random.default_rng(0)
    x, table = rng.standard_normal((*POSITIONS, 16), np.float32), 0.5 * rng.standard_normal((WORDS, 16), np.float32)
    labels, weights = rng.integers(0, WORDS, POSITIONS), rng.uniform(0.5, 2.0, POSITIONS).astype(np.float32)
    weights[:, -1] = 0
    labels[0] = (x[0] @ table.T).argmax(-1)  # hits, most of them
    return (x, table, rng.standard_normal(WORDS, np.float32)), labels, weights


def plain(x, table_VD, bias_V, labels, dtype):
    scores_V = logits(x, table_VD, bias_V, dtype)
    return losses.cross_entropy(scores_V, labels), (scores_V.argmax(-1) == labels).astype(jnp.float32)


def value_and_gradients(function, dtype: str, arguments, labels, weights) -> dict[str, np.ndarray]:
    """Losses, hits, and gradients of the weighted sum of losses."""

    def total(arguments, labels):
        loss, correct = function(*arguments, labels, dtype)
        return losses.weighted_sum(loss, weights), (loss, correct)

    gradients, outputs = jax.jit(jax.grad(total, has_aux=True))(arguments, labels)
    found = dict(zip(("loss", "correct", "x", "table", "bias"), (*outputs, *gradients), strict=True))
    assert all(x.dtype == jnp.float32 for x in found.values())
    return {name: np.asarray(x) for name, x in found.items()}


@pytest.fixture(scope="module")
def want() -> dict[str, np.ndarray]:
    found = value_and_gradients(plain, "float32", *arrays())
    assert 0 < found["correct"].sum() < found["correct"].size
    return found


def test_float32_equals_the_plain_loss(form, want):
    """Losses, correct and the gradients of hidden states, table and bias."""
    got = value_and_gradients(cross_entropy_and_correct, "float32", *arrays())
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=0, atol=1e-5, err_msg=name)


def test_bfloat16_is_close_to_the_plain_loss(form, want):
    """Scores of up to 8 in bfloat16 are up to 1/64 off, operands of products 1/256 of themselves."""
    got = value_and_gradients(cross_entropy_and_correct, "bfloat16", *arrays())
    np.testing.assert_allclose(got["loss"], want["loss"], rtol=0, atol=1 / 64)
    for name in ("x", "table", "bias"):
        np.testing.assert_allclose(got[name], want[name], rtol=0, atol=np.abs(want[name]).max() / 64, err_msg=name)


@pytest.mark.parametrize(("dtype", "share_of_an_entry"), [("float32", 1e-6), ("bfloat16", 1 / 64)])
def test_smoothed_labels_cost_what_soft_ones_do(dtype, share_of_an_entry):
    """Losses and gradients are those of the mixed distributions, in bfloat16 without the entries that fill the tile."""

    def ours(x, table_VD, bias_V, labels, dtype):
        loss, plain_loss, _ = smoothed_cross_entropy(x, table_VD, bias_V, labels, dtype, 0.3)
        return loss, plain_loss

    def of_distributions(x, table_VD, bias_V, labels, dtype):
        scores_V = logits(x, table_VD, bias_V, dtype)
        target_V = losses.smoothed(jax.nn.one_hot(labels, WORDS), 0.3)
        return losses.soft_cross_entropy(scores_V, target_V), losses.cross_entropy(scores_V, labels)

    got = value_and_gradients(ours, dtype, *arrays())
    want = value_and_gradients(of_distributions, dtype, *arrays())
    for name, value in want.items():
        atol = share_of_an_entry * max(1.0, np.abs(value).max()) * (10 if name == "table" else 1)
        np.testing.assert_allclose(got[name], value, rtol=0, atol=atol, err_msg=name)


def test_smoothing_is_torch_s(shared):
    """Scores of the reference as hidden states, and the identity as table: losses, their mean and its gradient."""
    want = np.load(shared / "golden2" / "losses" / "label_smoothing.npz")
    labels, scores = want["labels"], want["logits"]
    counts = labels >= 0

    def mean(scores, smoothing):
        words = scores.shape[-1]
        inputs = (scores, np.eye(words, dtype=np.float32), np.zeros(words, np.float32), np.maximum(labels, 0))
        loss, _, _ = smoothed_cross_entropy(*inputs, "float32", smoothing)
        return losses.weighted_sum(loss, counts) / counts.sum(), loss

    for smoothing in (0.0, 0.1, 0.3):
        (value, each), gradient = jax.value_and_grad(mean, has_aux=True)(scores, smoothing)
        name = f"label_smoothing_{smoothing}"
        np.testing.assert_allclose(value, want[name], rtol=1e-5)
        np.testing.assert_allclose(np.asarray(each)[counts], want[f"{name}|each"][counts], rtol=1e-5)
        np.testing.assert_allclose(gradient, want[f"{name}|grad"], rtol=0, atol=1e-6)


def test_entries_that_fill_the_last_tile_get_nothing():
    """In bfloat16 the probabilities of the 200 words still sum to 1, and their gradients to 0."""
    (x, table, bias), _, _ = arrays()
    same, words = np.broadcast_to(x[0, 0], (WORDS, 16)), np.arange(WORDS)
    loss, _ = compiled(same, table, bias, words, "bfloat16")
    assert float(jnp.exp(-loss).sum()) == pytest.approx(1.0, abs=1e-5)
    gradient = value_and_gradients(cross_entropy_and_correct, "bfloat16", *arrays())["bias"]
    assert abs(gradient.sum()) < 2**-8 * np.abs(gradient).sum()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_labels_out_of_range_cost_nan(dtype):
    """Below 0, just beyond the vocabulary, last of the tile, beyond that: NaN and no hit; others do not notice."""
    (x, table, bias), labels, _ = arrays()
    wrong = [-100, -1, WORDS, 255, 256]
    labels[1] = wrong
    bias[[0, -1]] = 100  # words next to those labels, and the best ones
    loss, correct = compiled(x, table, bias, labels, dtype)
    assert np.isnan(loss[1]).all()
    np.testing.assert_array_equal(correct[1], 0)
    assert np.isfinite(loss[0]).all()


def test_words_that_score_alike_are_all_hits():
    """Three words share the highest score: each of them is a hit, no other word is."""
    bias = np.array([1.0, 3.0, 3.0, 0.0, 3.0], np.float32)
    x, table, labels = np.zeros((5, 4), np.float32), np.zeros((5, 4), np.float32), np.arange(5)
    np.testing.assert_array_equal(compiled(x, table, bias, labels, "float32")[1], [0, 1, 1, 0, 1])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_slots_without_weight_have_no_gradient(dtype):
    """Masked slots that are empty: a gradient of exactly 0, and whatever label stands there changes no bit."""
    arguments, labels, weights = arrays()
    found = value_and_gradients(cross_entropy_and_correct, dtype, arguments, labels, weights)
    np.testing.assert_array_equal(found["x"][:, -1], 0)
    assert np.abs(found["x"][:, :-1]).max(-1).min() > 0
    labels[:, -1] = [-100, WORDS]
    other = value_and_gradients(cross_entropy_and_correct, dtype, arguments, labels, weights)
    for name in ("x", "table", "bias"):
        np.testing.assert_array_equal(found[name], other[name], err_msg=name)
    nothing = value_and_gradients(cross_entropy_and_correct, dtype, arguments, labels, np.zeros_like(weights))
    for name in ("x", "table", "bias"):
        np.testing.assert_array_equal(nothing[name], 0, err_msg=name)
