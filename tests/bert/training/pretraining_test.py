"""Pretraining as a task: both losses learn, metrics mean what they say, baselines are what they claim."""

import math

import numpy as np
import pytest

from bert.training.pretraining import Pretraining, baselines
from tests.bert.training import tiny


def separable_batch(number: int) -> dict[str, np.ndarray]:
    """64 pairs whose label can be read off the second token."""
    batch = tiny.batch(number, rows=64)
    batch["token_ids"][:, 1] = np.where(batch["next_sentence_labels"][:, 0] == 1, 7, 8)
    batch["next_sentence_weights"][:] = 1
    return batch


@pytest.mark.slow
def test_both_classes_of_next_sentence_are_learned():
    """64 trivially separable pairs, 200 steps: accuracy above 0.9, so class 0 is no padding class."""
    batches = [separable_batch(i % 4) for i in range(200)]
    _, told = tiny.run_steps(tiny.setup(learning_rate=1e-3), batches)
    assert np.mean([t["nsp_correct"] / t["nsp_count"] for t in told[-20:]]) > 0.9


def test_metrics_divide_the_totals_once():
    totals = {"mlm": 20.0, "mlm_count": 10.0, "mlm_correct": 4.0, "nsp": 1.0, "nsp_count": 4.0, "nsp_correct": 3.0}
    assert Pretraining().metrics(totals) == {
        "loss": 2.25,
        "mlm_perplexity": math.exp(2.0),
        "mlm_loss": 2.0,
        "mlm_accuracy": 0.4,
        "nsp_loss": 0.25,
        "nsp_accuracy": 0.75,
    }


def test_sums_weigh_what_each_word_and_pair_costs():
    """Costs and hits come from the head; slots of weight 0 add nothing, whatever they cost; pairs by their logits."""
    outputs = {
        "mlm_cross_entropy": np.array([[1.0, 2.0, np.nan]]),
        "mlm_correct": np.array([[1.0, 0.0, 1.0]]),
        "nsp_logits": np.array([[[0.0, 0.0], [0.0, 20.0], [20.0, 0.0]]]),
    }
    batch = {
        "masked_weights": np.array([[1.0, 0.5, 0.0]]),
        "next_sentence_labels": np.array([[1, 1, 1]]),
        "next_sentence_weights": np.array([[0.5, 1.0, 0.0]]),
    }
    want = {"mlm": 2.0, "mlm_correct": 1.0, "nsp": 0.5 * math.log(2), "nsp_correct": 1.0}
    assert {name: float(x) for name, x in Pretraining().sums(outputs, batch).items()} == pytest.approx(want)
    assert set(Pretraining(pairs=False).sums(outputs, batch)) == {"mlm", "mlm_correct"}


def test_without_pairs_there_is_no_next_sentence_loss():
    """RoBERTa's way: one loss, one count, no pooler among the parameters."""
    task = Pretraining(pairs=False)
    assert set(task.counts(tiny.batch())) == {"mlm"}
    assert not task.model(tiny.config()).head.with_next_sentence


def test_baselines_count_by_weight_over_all_batches():
    """Masked tokens 9 9 9 5 | 5 5 5 (the last slot empty): the most frequent is 5 with 4 of 7, over both batches."""
    batch = {
        "masked_ids": np.array([[9, 9, 9, 5]]),
        "masked_weights": np.ones((1, 4), np.float32),
        "next_sentence_labels": np.array([[1, 0]]),
        "next_sentence_weights": np.array([[1, 0]], np.float32),
    }
    other = {
        "masked_ids": np.array([[5, 5, 5, 200]]),
        "masked_weights": np.array([[1, 1, 1, 0]], np.float32),
        "next_sentence_labels": np.array([[1, 0]]),
        "next_sentence_weights": np.array([[1, 1]], np.float32),
    }
    assert baselines([batch, other]) == pytest.approx({"mlm_accuracy": 4 / 7, "nsp_accuracy": 2 / 3})
    unlabelled = {**batch, "next_sentence_weights": np.zeros((1, 2), np.float32)}
    assert set(baselines([unlabelled])) == {"mlm_accuracy"}
