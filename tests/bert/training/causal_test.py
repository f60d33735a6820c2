"""The causal objective in training: worked numbers, packed rows, the entropy of a corpus."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.architectures.gpt import GPTConfig
from bert.model import losses, vocabulary
from bert.training import optim, sharding
from bert.training.pretraining import Pretraining
from bert.training.step import Setup
from tests.bert.training import tiny

TASK = Pretraining(pairs=False, objective="causal")


def batch(number: int, rows: int = 8) -> dict[str, np.ndarray]:
    """Two examples a row, and padding."""
    rng, T = np.random.default_rng((3, number)), tiny.LENGTH
    ids = np.where(np.arange(T) < T // 2, 1, 2) * (np.arange(T) < T - 3)
    inside = np.append(ids[1:] == ids[:-1], False) & (ids > 0)
    places = np.flatnonzero(inside)
    tokens = rng.integers(5, tiny.VOCAB, (rows, T)) * (ids > 0)
    wide = {"example_ids": ids, "position_ids": np.where(ids > 0, np.arange(T) % (T // 2), 0), "type_ids": 0 * ids}
    made = {name: np.tile(value, (rows, 1)).astype(np.int32) for name, value in wide.items()}
    made |= {"token_ids": tokens.astype(np.int32), "cls_positions": np.tile([0, T // 2], (rows, 1)).astype(np.int32)}
    made["masked_positions"] = np.tile(np.append(places, 0), (rows, 1)).astype(np.int32)  # an empty slot
    made["masked_ids"] = np.pad(tokens[:, places + 1], ((0, 0), (0, 1))).astype(np.int32)
    made["masked_weights"] = np.tile(np.append(np.ones(len(places)), 0), (rows, 1)).astype(np.float32)
    return made


def cross_entropies(logits_PV, words_P):
    """By the function that training uses, for any logits: states times an identity table."""
    V = logits_PV.shape[-1]
    x, zeros = jnp.asarray(logits_PV, jnp.float32), jnp.zeros(V)
    return vocabulary.cross_entropy_and_correct(x, jnp.eye(V), zeros, jnp.asarray(words_P, jnp.int32), "float32")[0]


def test_the_worked_numbers(shared):
    """../shared/systems.md, section 6a."""
    hand = json.loads((shared / "golden2" / "losses" / "causal_hand.json").read_text())
    nats = cross_entropies(np.array(hand["logits"]), hand["targets"])
    np.testing.assert_allclose(nats, [0.4076, 1.4580, 0.4076], atol=5e-5)
    np.testing.assert_allclose(nats, hand["nll"], atol=1e-6)
    totals = {"causal": float(nats.sum()), "causal_count": 3.0, "causal_correct": 2.0}
    metrics = TASK.metrics(totals)
    assert metrics["causal_loss"] == pytest.approx(hand["mean"], abs=1e-6)
    assert metrics["causal_perplexity"] == pytest.approx(hand["perplexity"], abs=1e-5)


@pytest.mark.parametrize("packed", [False, True])
def test_losses_and_gradients_of_the_reference(shared, packed):
    """Positions without a next token in their example cost nothing and get no gradient."""
    wanted = np.load(shared / "golden2" / "losses" / "causal.npz")
    ids_BT = wanted["packed_input_ids" if packed else "input_ids"]
    example_BT = wanted["packed_example_ids" if packed else "attention_mask"]
    weight_BT = ((example_BT[:, 1:] == example_BT[:, :-1]) & (example_BT[:, 1:] > 0)).astype(np.float32)

    def loss(logits):
        nats_BT = cross_entropies(logits[:, :-1], ids_BT[:, 1:])
        return losses.weighted_sum(nats_BT, jnp.asarray(weight_BT)) / weight_BT.sum()

    value, gradient = jax.value_and_grad(loss)(jnp.asarray(wanted["logits"]))
    name = "packed_loss" if packed else "loss"
    assert float(value) == pytest.approx(float(wanted[name]), rel=1e-5)
    assert math.exp(value) == pytest.approx(float(wanted[name.replace("loss", "perplexity")]), rel=1e-5)
    if not packed:
        assert weight_BT.sum() == wanted["counted"]
        np.testing.assert_allclose(gradient, wanted["grad"], atol=1e-6)


@pytest.mark.slow
def test_the_loss_begins_at_the_logarithm_of_the_vocabulary_and_tends_to_the_entropy():
    """Words drawn independently from 8 with known shares: perplexity e^entropy, within 3 %."""
    shares = np.array([0.4, 0.2, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05])
    entropy = -(shares * np.log(shares)).sum()

    def drawn(number: int) -> dict[str, np.ndarray]:
        made, rng = batch(number, 32), np.random.default_rng((5, number))
        words = rng.choice(np.arange(5, 13), made["token_ids"].shape, p=shares) * (made["example_ids"] > 0)
        places = made["masked_positions"][0, :-1]
        made["token_ids"] = words.astype(np.int32)
        made["masked_ids"][:, :-1] = words[:, places + 1]
        return made

    sizes = {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "intermediate_size": 128}
    config = GPTConfig(tiny.VOCAB, max_position_embeddings=64, **sizes)
    mesh, rule = sharding.make_mesh(devices=jax.devices()[:1]), optim.OptimizerSettings(100, 1e-2, schedule="constant")
    _, told = tiny.run_steps(Setup(TASK.model(config), TASK, rule, mesh), [drawn(i) for i in range(120)])
    nats = [one["causal"] / one["causal_count"] for one in told]
    assert nats[0] == pytest.approx(math.log(tiny.VOCAB), rel=0.02)
    assert np.mean(nats[-30:]) == pytest.approx(entropy, abs=0.03)
    assert np.mean(nats[-30:]) > entropy - 0.02  # no leak: nothing below the entropy
