"""The loss of tagged tokens: the worked example, both means of it, and windows that count each token once.

L = -sum_i sum_j t_ij log p_ij over the tokens i of the passage and the tags j.
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.bert import BertConfig
from bert.data import passages
from bert.data.encoded_examples import ExampleSettings, TrainingBatches
from bert.errors import InputError
from bert.training.task import with_counts
from tasks.token_labels import TokenLabels, windows_with_targets

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"


@pytest.fixture(scope="module")
def example() -> dict:
    """ "who wrote" on "jacob devlin wrote it", with the votes and scores of its nine tokens."""
    return json.loads((GOLDEN / "hand_examples.json").read_text())["bio_soft_labels"]


def batch_of(rows) -> tuple[dict, dict]:
    """(outputs, batch) of examples given as (logits, gold, mask), one a row."""
    longest = max(len(mask) for _, _, mask in rows)
    logits, gold = (np.full((len(rows), longest, 3), fill, np.float32) for fill in (7.0, 0.0))
    weights = np.zeros((len(rows), longest), np.float32)
    for b, (own_logits, own_gold, mask) in enumerate(rows):
        logits[b, : len(mask)], gold[b, : len(mask)], weights[b, : len(mask)] = own_logits, own_gold, mask
    share = np.ones((len(rows), 1), np.float32)
    return {"token_logits": jnp.array(logits)}, {"targets": gold, "target_weights": weights, "example_share": share}


def metrics(task, *batches) -> dict:
    """Of sums added up over batches, as the loop does."""
    told = [with_counts(task.sums(*one), task.counts(one[1])) for one in batches]
    return task.metrics({name: sum(float(one[name]) for one in told) for name in told[0]})


def test_the_worked_example(example):
    """2.6730740818 nats over four tokens of the passage, 0.6682685205 a token; 0.2344869062 above the votes' entropy.

    Not 0.297, the mean over all nine tokens, nor 0.5267, that of the majority.
    """
    one = batch_of([(example["logits"], example["gold"], example["loss_mask"])])
    found = metrics(TokenLabels(3), one)
    assert found["cross_entropy_per_example"] == pytest.approx(2.6730740818, abs=2e-6)
    assert found["loss"] == found["cross_entropy"] == pytest.approx(0.6682685205, abs=1e-6)
    assert found["loss"] - np.mean(example["entropy_of_gold_nats"]) == pytest.approx(0.2344869062, abs=1e-6)
    assert metrics(TokenLabels(3, "example"), one)["loss"] == pytest.approx(2.6730740818, abs=2e-6)


@pytest.mark.parametrize("apart", [False, True])
def test_both_means_of_two_examples(example, apart):
    """Four tokens in one, one in another: 0.7373354172 over the five tokens; per example the mean of the two sums,
    1.8433385429, and never 0.8409, the mean of two means. In one batch, or in one each."""
    second = example["two_example_batch"]["second_example"]
    rows = [
        (example["logits"], example["gold"], example["loss_mask"]),
        ([second["logits"]] * 2, [second["gold"]] * 2, [0, 1]),
    ]
    batches = [batch_of([row]) for row in rows] if apart else [batch_of(rows)]
    sums = (2.6730740818, example["two_example_batch"]["second_loss_nats"])
    for per, want in (("token", 0.7373354172), ("example", sum(sums) / 2)):
        found = metrics(TokenLabels(3, per), *batches)
        assert found["loss"] == pytest.approx(want, abs=1e-6)
        assert found["cross_entropy"] == pytest.approx(0.7373354172, abs=1e-6)
        assert found["cross_entropy_per_example"] == pytest.approx(1.8433385429, abs=1e-6)


def test_what_does_not_count_has_no_gradient(example):
    """Question, special tokens and padding: their scores may be anything, and nothing pulls at them."""
    rows = [(example["logits"], example["gold"], example["loss_mask"]), ([[1, 2, 3]], [[0, 0, 1]], [1])]
    outputs, batch = batch_of(rows)
    task, counts = TokenLabels(3), batch["target_weights"] > 0

    def total(logits_BTC):
        return task.sums({"token_logits": logits_BTC}, batch)["loss"]

    logits_BTC = outputs["token_logits"]
    loss, gradient_BTC = jax.value_and_grad(total)(logits_BTC)
    other, other_BTC = jax.value_and_grad(total)(jnp.where(counts[..., None], logits_BTC, jnp.array([1e4, 0.0, -1e4])))
    assert float(other) == float(loss)
    for gradient in (gradient_BTC, other_BTC):
        assert (np.abs(gradient).sum(-1)[counts] > 0).sum() == 4, "one of the five tokens is predicted as voted"
        np.testing.assert_array_equal(np.asarray(gradient)[~counts], 0)
    share_BTC = jax.nn.softmax(logits_BTC, axis=-1)
    np.testing.assert_allclose(gradient_BTC[counts], (share_BTC - batch["targets"])[counts], atol=1e-6)


def test_one_hot_targets_are_the_negative_log_likelihood():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(20, 3)).astype(np.float32), rng.integers(0, 3, 20)
    found = metrics(TokenLabels(3), batch_of([(logits, np.eye(3)[labels], np.ones(20))]))
    want = -np.asarray(jax.nn.log_softmax(logits))[np.arange(20), labels].sum()
    assert found["cross_entropy_per_example"] == pytest.approx(want, rel=1e-6)


def test_nothing_to_count_is_no_number():
    none = batch_of([([[1, 2, 3]], [[0, 0, 0]], [0])])
    none[1]["example_share"][:] = 0
    assert metrics(TokenLabels(3), none) == {"loss": None, "cross_entropy": None, "cross_entropy_per_example": None}


def test_another_mean_is_refused():
    with pytest.raises(InputError, match=r"loss_per is 'batch'; .*example"):
        TokenLabels(3, "batch")


def test_the_head_has_a_score_for_each_tag():
    config = BertConfig(vocab_size=10)
    head = TokenLabels(5, rate=0.25).model(config).head
    assert (head.classes, head.rate) == (5, 0.25)


# ---- windows ----


@pytest.fixture(scope="module")
def cut() -> passages.Passages:
    """Twelve passages of 0 to 70 pieces in windows of up to 24 tokens, each behind a question of three."""
    rng = np.random.default_rng(1)
    pieces = [rng.integers(100, 200, n).tolist() for n in (0, 1, 70, 17, 18, 19, 40, 33, 5, 64, 12, 51)]
    return passages.cut(pieces, [[2, 50, 51, 52, 3]] * 12, [3], max_length=24, step=7, pair=True)


@pytest.fixture(scope="module")
def labelled(cut):
    """(targets, weights) of the pieces; a fifth have no vote, and passage 8 has none at all."""
    rng = np.random.default_rng(2)
    weight_K = (rng.random(cut.starts[-1]) < 0.8).astype(np.float32)
    weight_K[cut.starts[8] : cut.starts[9]] = 0
    target_KC = rng.dirichlet(np.ones(3), cut.starts[-1]).astype(np.float32) * weight_K[:, None]
    return target_KC, weight_K


def test_the_shares_of_a_passages_windows_sum_to_one(cut, labelled):
    """By the tokens that count in each; 0 where no token of the passage has a vote."""
    encoded = windows_with_targets(cut, *labelled)
    share_W = encoded.of_example["example_share"]
    assert share_W.dtype == np.float32
    want_N = np.array([part.any() for part in passages.parts(labelled[1], cut.starts)], float)
    np.testing.assert_allclose(np.bincount(cut.text_W, share_W), want_N, atol=1e-6)
    weights = passages.parts(encoded.of_token["target_weights"], encoded.starts)
    for w, n in enumerate(cut.text_W):
        total = labelled[1][cut.starts[n] : cut.starts[n + 1]].sum()
        assert share_W[w] == pytest.approx(weights[w].sum() / total if total else 0)
    assert (cut.text_W == 2).sum() > 5


@pytest.mark.parametrize("packed", [True, False])
def test_an_epoch_counts_each_token_once(cut, labelled, packed):
    """Scores that are a function of the token: the sums over an epoch's batches are those over the passages."""
    target_KC, weight_K = labelled
    encoded = windows_with_targets(cut, target_KC, weight_K)
    batches = TrainingBatches(encoded, ExampleSettings(8, 24, packed))
    rng = np.random.default_rng(3)
    table_VC = rng.normal(size=(256, 3)).astype(np.float32)
    made = [batches(i) for i in range(batches.steps_per_epoch)]
    for batch in made:
        assert (batch["token_ids"][batch["target_weights"] > 0] >= 100).all(), "questions do not count"
        assert not batch["targets"][batch["target_weights"] == 0].any()
    told = [({"token_logits": jnp.array(table_VC[batch["token_ids"]])}, batch) for batch in made]
    log_KC = np.asarray(jax.nn.log_softmax(table_VC, axis=-1))[cut.encoded.token_ids[cut.place_K]]
    nats = -(target_KC * log_KC).sum()
    for per in ("token", "example"):
        found = metrics(TokenLabels(3, per), *told)
        assert found["cross_entropy"] == pytest.approx(nats / weight_K.sum(), rel=1e-5)
        assert found["cross_entropy_per_example"] == pytest.approx(nats / 10, rel=1e-5), (
            "one has no pieces, one no vote"
        )
        assert found["loss"] == found[{"token": "cross_entropy", "example": "cross_entropy_per_example"}[per]]
