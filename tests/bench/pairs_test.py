"""Translation that is timed: its batches, and the same loss on both sides."""

import sys

import jax
import numpy as np
import pytest

from bench.pairs import END, Pairs
from bench.turns import Peer
from bert import config_fields
from bert.architectures.encoder_decoder import EncoderDecoderConfig
from bert.model.teacher_forcing import TeacherForced
from configs import translation
from tests.torch_package import import_torch
from tests.torch_transformer import tree_of

SMALL = Pairs(count=192, batch=32, steps=3)


def test_the_model_is_that_of_the_configuration():
    model = translation.get_config("transformer-tiny").model
    assert Pairs().config == config_fields.build(EncoderDecoderConfig, model, vocab_size=10_000)


def test_all_sides_train_on_as_many_words():
    """Each batch in both orders; sorted by length, hardly any place of a target is padding."""
    words = [
        [batch["target_weights"].sum() for batch in batches] for batches in (Pairs().packed(), Pairs().by_length())
    ]
    np.testing.assert_allclose(words, 128 * 15.09, rtol=0.02)
    places = [batch["target_ids"].size for batch in Pairs().by_length()]
    assert sum(words[1]) > 0.99 * sum(places)


def test_a_pair_in_a_row_is_the_same_pair():
    """Sorted by length, a row holds a whole source, and a target as long as its weights say."""
    known, found = set(zip(*([tuple(ids) for ids in side] for side in SMALL.tokens), strict=True)), 0
    for batch in SMALL.by_length():
        assert (batch["target_ids"] == END).sum() == len(batch["target_ids"])
        for row in range(len(batch["token_ids"])):
            source, target = (batch[name][row][batch[name][row] > 0] for name in ("token_ids", "target_ids"))
            assert (tuple(source), tuple(target)) in known
            assert batch["target_weights"][row].sum() == len(target)
            found += 1
    assert 80 < found < 112  # half of them: three batches of six


@pytest.mark.slow
@pytest.mark.parametrize("packed", [True, False])
def test_both_compute_the_same_loss_with_the_same_weights(packed):
    torch = import_torch()
    from bench import torch_pairs

    config = EncoderDecoderConfig(10_000, 32, 2, 4, 64, hidden_dropout=0.0)
    torch.manual_seed(0)
    model = torch_pairs.Translator(config)
    tensors = {name.removeprefix("transformer."): x.numpy() for name, x in model.state_dict().items()}
    params = tree_of(tensors | {"embedding": tensors["embedding.weight"]})
    ours = jax.jit(lambda batch: TeacherForced(config, 0.1).apply({"params": params}, batch)["smoothed"])
    for batch in SMALL.packed() if packed else SMALL.by_length():
        with torch.no_grad():
            theirs = model(*torch_pairs.inputs_of(batch, packed, config.num_heads), 0.1)
        weights = batch["target_weights"]
        np.testing.assert_allclose(theirs, (ours(batch) * weights).sum() / weights.sum(), rtol=1e-5)


@pytest.mark.slow
def test_our_side_runs():
    peer = Peer("ours", [sys.executable, "-m", "bench.ours_pairs", "--count=64", "--batch=16", "--steps=2"])
    peer.run(2)
    assert peer.stop() == 0
