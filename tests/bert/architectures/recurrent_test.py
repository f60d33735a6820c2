"""The bidirectional recurrent network: reference numbers, sizes, and what its read-outs can learn."""

import json
import pathlib

import jax
import numpy as np
import optax
import pytest
from safetensors.numpy import load_file

from bert.architectures.recurrent import RecurrentConfig
from bert.model.heads import Model, PretrainingHead

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "recurrent"


def model_of(config):
    return Model(config, PretrainingHead(config, with_next_sentence=False))


def batch_of(words_BT, mask_BT=None):
    """A sentence a row; all positions are predicted."""
    positions = np.broadcast_to(np.arange(words_BT.shape[1], dtype=np.int32), words_BT.shape)
    mask = np.ones(words_BT.shape, np.int32) if mask_BT is None else mask_BT.astype(np.int32)
    words = words_BT.astype(np.int32)
    batch = {"token_ids": words, "example_ids": mask, "position_ids": positions}
    return batch | {"masked_positions": positions, "masked_ids": words}


def params_of(weights, layers):
    """The tree of the reference's weights, or of their gradients."""
    encoder = {"token": {"embedding": weights["e"]}}
    for layer in range(layers):
        for theirs, ours in (("f", "forward"), ("b", "backward")):
            kernels = {"input": "ih", "state": "hh"}
            encoder[f"{ours}_{layer}"] = {
                name: {"kernel": weights[f"{theirs}{layer}.W_{end}"].T, "bias": weights[f"{theirs}{layer}.b_{end}"]}
                for name, end in kernels.items()
            }
    head = {"bias": weights["bias"]}
    if "W1" in weights:
        head |= {"hidden": {"kernel": weights["W1"].T, "bias": weights["b1"]}, "mix": {"kernel": weights["W2"].T}}
    else:
        head |= {"mix": {"kernel": np.concatenate([weights["Wf"].T, weights["Wb"].T])}}
    return {"encoder": encoder, "head": {"mlm": head}}


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("gru", {}),
        ("gru_two_layers", {"num_layers": 2}),
        ("lstm", {"cell": "lstm"}),
        ("gru_mlp", {"mix": "mlp", "mix_size": 20}),
    ],
)
def test_logits_loss_and_gradients_are_those_of_the_reference(name, settings):
    """Rows of different lengths; vectors of width 10, states of 8."""
    arrays, weights = np.load(GOLDEN / f"blank_{name}.npz"), load_file(GOLDEN / f"blank_{name}.safetensors")
    config = RecurrentConfig(15, embedding_size=10, hidden_size=16, **settings)
    model, mask, batch = model_of(config), arrays["mask"], batch_of(arrays["tokens"], arrays["mask"])

    def loss(params):
        outputs = model.apply({"params": params}, batch)
        return (outputs["mlm_cross_entropy"] * mask).sum() / mask.sum(), outputs["mlm_logits"]

    (value, logits), gradients = jax.jit(jax.value_and_grad(loss, has_aux=True))(params_of(weights, config.num_layers))
    assert value == pytest.approx(float(arrays["loss"]), abs=1e-5)
    np.testing.assert_allclose(logits[mask > 0], arrays["logits"][mask > 0], atol=1e-5)
    wanted = params_of({key[5:]: arrays[key] for key in arrays if key.startswith("grad|")}, config.num_layers)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-5), gradients, wanted)


def test_the_worked_example():
    """Three words, one vanilla cell for both directions: logits and losses of each blank."""
    hand = json.loads((GOLDEN / "blank_vanilla_hand.json").read_text())
    cell = {"input": {"kernel": np.array(hand["Ux"]).T, "bias": np.zeros(2)}}
    cell |= {"state": {"kernel": np.array(hand["Uh"]).T, "bias": np.zeros(2)}}
    mix = np.concatenate([np.array(hand["Wf"]).T, np.array(hand["Wb"]).T])
    encoder = {"token": {"embedding": np.array(hand["e"])}, "forward_0": cell, "backward_0": cell}
    params = {"encoder": encoder, "head": {"mlm": {"mix": {"kernel": mix}, "bias": np.zeros(4)}}}
    config = RecurrentConfig(4, embedding_size=2, hidden_size=4, cell="vanilla")
    params = jax.tree.map(lambda x: x.astype(np.float32), params)
    outputs = model_of(config).apply({"params": params}, batch_of(np.array([hand["words"]])))
    np.testing.assert_allclose(outputs["mlm_logits"][0], [row["logits"] for row in hand["rows"]], atol=1e-6)
    np.testing.assert_allclose(outputs["mlm_cross_entropy"][0], [row["nll"] for row in hand["rows"]], atol=1e-6)


@pytest.mark.parametrize(
    ("vocab_size", "width", "states", "cell", "parameters"),
    [
        (8_000, 128, 256, "gru", 1_690_432),
        (30_522, 128, 256, "gru", 4_595_770),
        (30_522, 300, 600, "gru", 12_794_322),
        (8_000, 128, 256, "lstm", 1_690_432 + 790_528 - 592_896),
    ],
)
def test_numbers_of_parameters(vocab_size, width, states, cell, parameters):
    """Embeddings, gates with two biases each, one map a side, a bias a word."""
    config = RecurrentConfig(vocab_size, embedding_size=width, hidden_size=2 * states, cell=cell)
    shapes = jax.eval_shape(model_of(config).init, jax.random.key(0), batch_of(np.zeros((1, 4), int)))
    assert sum(x.size for x in jax.tree.leaves(shapes)) == parameters


def middle_words(kind, rng):
    """Rows of three bits; the middle one follows from its neighbours."""
    left, right = rng.integers(0, 2, (2, 64))
    middle = {"left": left, "right": right, "xor": left ^ right}[kind]
    return np.stack([left, middle, right], axis=1)


def trained_loss(kind, mix, steps=250):
    """The mean loss of the middle word at the end of a short training."""
    config = RecurrentConfig(2, embedding_size=8, hidden_size=16, cell="vanilla", mix=mix, mix_size=32)
    model, adam = model_of(config), optax.adam(2e-2)
    params = jax.jit(model.init)(jax.random.key(3), batch_of(middle_words(kind, np.random.default_rng(0))))["params"]

    def loss(params, words):
        return model.apply({"params": params}, batch_of_bits(words))["mlm_cross_entropy"][:, 1].mean()

    def step(carry, words):
        params, state = carry
        value, gradients = jax.value_and_grad(loss)(params, words)
        updates, state = adam.update(gradients, state)
        return (optax.apply_updates(params, updates), state), value

    rng = np.random.default_rng(1)
    words = np.stack([middle_words(kind, rng) for _ in range(steps)]).astype(np.int32)
    _, values = jax.jit(lambda carry: jax.lax.scan(step, carry, words))((params, adam.init(params)))
    return float(values[-20:].mean())


def batch_of_bits(words_BT):
    """`batch_of` for a traced array."""
    return {**batch_of(np.zeros(words_BT.shape, int)), "token_ids": words_BT, "masked_ids": words_BT}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "mix", "low", "high"),
    [
        ("xor", "sum", 0.68, 0.72),
        ("xor", "mlp", 0.0, 0.05),
        *((kind, mix, 0.0, 0.05) for kind in ("left", "right") for mix in ("sum", "mlp")),
    ],
)
def test_the_sum_of_both_sides_learns_either_neighbour_but_not_their_xor(kind, mix, low, high):
    """Logits that add up left and right cannot do better than ln 2 on XOR; a hidden layer can."""
    assert low <= trained_loss(kind, mix) <= high
