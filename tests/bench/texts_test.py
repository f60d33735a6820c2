"""Texts with real lengths, the same for every implementation in each epoch."""

import numpy as np
import pytest

from bench.texts import COUNTS, LONGEST, Texts
from bert.data import encoded_examples
from bert.data.encoded_examples import ExampleSettings, TrainingBatches


@pytest.mark.parametrize("name", COUNTS)
def test_the_lengths_are_those_of_the_data(name):
    """Mean, maximum, and the mean of the longest in a batch of 32, which decides the padding, within 2 %."""
    first, counts = COUNTS[name]
    all_lengths = np.repeat(first + np.arange(len(counts)), counts)
    texts = Texts("finetune", "tiny", name, 512)
    assert texts.length_N.mean() == pytest.approx(all_lengths.mean(), rel=0.01)
    assert texts.length_N.max() == all_lengths.max() <= LONGEST
    rng = np.random.default_rng(0)
    drawn = rng.choice(all_lengths, (4000, 32)).max(1).mean()
    padded = np.mean([rng.permutation(texts.length_N).reshape(-1, 32).max(1).mean() for _ in range(200)])
    assert padded == pytest.approx(drawn, rel=0.02)


def test_an_epoch_takes_the_examples_of_our_pipeline():
    """Packed or padded, an epoch has the same number of steps and uses each example once."""
    texts = Texts("finetune", "tiny", "sst2", 70, batch=16)
    encoded = encoded_examples.join([(ids.tolist(), len(ids)) for ids in texts.token_ids])
    batches = TrainingBatches(encoded, ExampleSettings(texts.batch, LONGEST))
    assert batches.steps_per_epoch == texts.steps
    epoch = [batches(step) for step in range(texts.steps)]
    ours = np.concatenate([batch["token_ids"][batch["example_ids"] > 0] for batch in epoch])
    np.testing.assert_array_equal(np.sort(ours), np.sort(np.concatenate(texts.token_ids)))
    everything = np.arange(texts.count)
    assert sorted(np.concatenate([texts.chosen(step) for step in range(texts.steps)])) == everything.tolist()
    assert np.concatenate(texts.parts()).tolist() == everything.tolist()


def test_a_batch_is_as_long_as_its_longest_example():
    texts = Texts("classify", "tiny", "mrpc", 64)
    padded = texts.padded(np.array([3, 5]))
    lengths = texts.length_N[[3, 5]]
    assert padded["input_ids"].shape == (2, lengths.max())
    assert padded["attention_mask"].sum(1).tolist() == lengths.tolist()
    assert padded["input_ids"][1, : lengths[1]].tolist() == texts.token_ids[5].tolist()


def test_equal_lengths():
    assert Texts("classify", "tiny", "128", 8).length_N.tolist() == [128] * 8
