"""Strided and dilated networks: reference numbers, what a state has read, padding, and rows with several examples."""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert import architectures
from bert.architectures.convolution import DilatedConfig, StridedConfig, receptive_field
from bert.errors import InputError
from bert.model.heads import Model, SequenceHead

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden" / "convolution"
V = 19


def batch_of(*rows, width):
    """One example a row."""
    ids = np.stack([np.pad(np.ones(len(words), np.int32), (0, width - len(words))) for words in rows])
    words = np.stack([np.pad(np.asarray(words, np.int32), (0, width - len(words))) for words in rows])
    return {
        "token_ids": words,
        "example_ids": ids,
        "position_ids": np.tile(np.arange(width, dtype=np.int32), (len(ids), 1)),
    }


def drawn(config):
    encoder = architectures.build(config)
    return encoder, jax.jit(encoder.init)(jax.random.key(0), batch_of([1, 2], width=4))["params"]


def test_levels_and_gradients_of_the_strided_network_are_those_of_the_reference():
    """Rows of different lengths, four levels of width 8, 8, 10 and 10; the bias is subtracted."""
    arrays, weights = np.load(GOLDEN / "strided.npz"), load_file(GOLDEN / "strided.safetensors")
    lengths = arrays["lengths"]
    words = [row[:length] for row, length in zip(arrays["tokens"], lengths, strict=True)]

    def loss(weights):
        """The encoder has one width for all levels; the reference's narrower ones are filled up with zeros."""
        wide = lambda x, *axes: jnp.pad(x, [(0, 10 - x.shape[i] if i in axes else 0) for i in range(x.ndim)])  # noqa: E731
        levels = range(1, 5)
        kernels = {level: wide(weights[f"W{level}"], *((2,) if level == 1 else (1, 2))) for level in levels}
        up = {f"up_{i - 1}": {"kernel": kernels[i], "bias": wide(weights[f"B{i}"], 0)} for i in levels}
        config = StridedConfig(15, embedding_size=6, hidden_size=10, num_layers=4, max_length=16)
        params = {"token": {"embedding": weights["e"]}, **up}
        encoder = architectures.build(config)
        states = encoder.apply({"params": params}, batch_of(*words, width=11), method="levels")
        return (states[4] * arrays["cotangent"]).sum(), states

    gradients, states = jax.jit(jax.grad(loss, has_aux=True))(weights)
    for level, state in enumerate(states):
        wanted = arrays[f"level_{level}"]
        np.testing.assert_allclose(state[..., : wanted.shape[-1]], wanted, atol=1e-5)
        assert state.shape[:2] == wanted.shape[:2]
    for name, gradient in gradients.items():
        np.testing.assert_allclose(gradient, arrays[f"grad|{name}"], atol=2e-5)


def test_the_formula_of_the_receptive_field_is_the_table():
    table = json.loads((GOLDEN / "hand.json").read_text())["receptive_field_after_levels_stride_2"]
    for name, fields in table.items():
        assert [receptive_field(int(name[1:]), level) for level in range(8)] == fields


@pytest.mark.parametrize(("kernel_size", "levels"), [(2, 3), (3, 1), (3, 2), (5, 2)])
def test_a_state_of_a_level_has_read_the_tokens_of_the_formula(kernel_size, levels):
    """By the Jacobian of the last level by the embeddings of different words: from 2^L t on, as many as it says.

    The activation is tanh, whose derivative is nowhere 0.
    """
    sizes = {"embedding_size": 4, "hidden_size": 4, "num_layers": levels, "max_length": 2**levels}
    config = StridedConfig(V, **sizes, kernel_size=kernel_size, activation="tanh")
    assert read_by_level(config, range(V)) == [
        [s for s in range(V) if t * 2**levels <= s < t * 2**levels + config.receptive_field]
        for t in range(-(-V // 2**levels))
    ]


def read_by_level(config, words):
    """For each state of the last level, the positions that change it."""
    encoder, params = drawn(config)
    batch = batch_of(words, width=len(words))

    def states(table):
        return encoder.apply({"params": {**params, "token": {"embedding": table}}}, batch, method="levels")[-1][0]

    jacobian = jax.jit(jax.jacobian(states))(params["token"]["embedding"])
    return [np.flatnonzero(row).tolist() for row in np.abs(jacobian).sum((1, 3))]


@pytest.mark.parametrize(("kernel_size", "layers"), [(2, 3), (3, 2), (5, 1)])
def test_a_side_of_the_dilated_network_has_read_the_tokens_of_the_formula(kernel_size, layers):
    """The left half of a state has read itself and what is left of it, the right half the mirror image."""
    sizes = {"embedding_size": 4, "hidden_size": 8, "num_layers": layers}
    config = DilatedConfig(V, **sizes, kernel_size=kernel_size)
    encoder, params = drawn(config)
    batch = batch_of(range(V), width=V)

    def states(table):
        return encoder.apply({"params": {**params, "token": {"embedding": table}}}, batch)["tokens"][0]

    jacobian_TDVI = np.abs(jax.jit(jax.jacobian(states))(params["token"]["embedding"]))
    distance_TS = np.arange(V)[:, None] - np.arange(V)
    for half, sign in ((slice(0, 4), 1), (slice(4, 8), -1)):
        influence_TS = jacobian_TDVI[:, half].sum((1, 3)) > 0
        away_TS = sign * distance_TS
        np.testing.assert_array_equal(influence_TS, (away_TS >= 0) & (away_TS < config.receptive_field))


def test_padding_and_the_other_rows_change_nothing():
    """Rows of 11 and 3 tokens, alone and together, with and without padding, which must not keep the biases."""
    config = StridedConfig(V, embedding_size=4, hidden_size=6, num_layers=5, max_length=32)
    encoder, params = drawn(config)
    params = jax.tree.map(lambda x: x - 0.5 if x.ndim == 1 else x, params)
    long, short = np.arange(11), np.array([7, 2, 9])

    @jax.jit
    def compiled(params, batch):
        return encoder.apply({"params": params}, batch, reads={"tokens": None, "examples": None})

    def run(*rows, width, read):
        return np.asarray(compiled(params, batch_of(*rows, width=width))[read])

    for read in ("tokens", "examples"):
        wanted = [run(words, width=len(words), read=read)[0] for words in (long, short)]
        for width in (16, 32):
            for row, words in enumerate((long, short)):
                found = run(long, short, width=width, read=read)[row]
                length = len(words) if read == "tokens" else 1
                np.testing.assert_allclose(found[:length], wanted[row][:length], atol=1e-5)
    assert np.abs(wanted[1]).max() > 0.1


def test_every_token_reaches_every_state_of_the_way_back_and_the_one_vector():
    config = StridedConfig(V, embedding_size=4, hidden_size=4, num_layers=4, max_length=16, activation="tanh")
    encoder, params = drawn(config)
    batch = batch_of(range(13), width=13)
    for read in ("tokens", "examples"):

        def states(table, read=read):
            of_table = {**params, "token": {"embedding": table}}
            return encoder.apply({"params": of_table}, batch, reads={read: None})[read][0]

        influence = np.abs(jax.jit(jax.jacobian(states))(params["token"]["embedding"])).sum((1, 3))[:, :13]
        assert (influence > 0).all()


def test_several_examples_in_a_row_are_refused_by_name():
    config = StridedConfig(V)
    architectures.check_packing(config, False)
    with pytest.raises(InputError, match=r"'strided'.*packed=False"):
        architectures.check_packing(config, True)


@pytest.mark.parametrize(
    ("kind", "wrong", "said"),
    [
        (StridedConfig, {"max_length": 513}, "max_length is 513, but 9 levels.*num_layers to 10"),
        (StridedConfig, {"kernel_size": 0}, "kernel_size is 0"),
        (StridedConfig, {"activation": "step"}, "activation is 'step'.*relu"),
        (DilatedConfig, {"hidden_size": 5}, "hidden_size is 5; it must be even"),
        (DilatedConfig, {"mix": "max"}, "mix is 'max'.*sum"),
        (DilatedConfig, {"hidden_dropout": 1.0}, "hidden_dropout is 1.0"),
    ],
)
def test_a_wrong_size_is_refused_in_a_line(kind, wrong, said):
    with pytest.raises(InputError, match=said):
        kind(V, **wrong)


def test_a_config_file_is_read_back_and_a_missing_size_named():
    config = DilatedConfig(V, kernel_size=5)
    values = json.loads(json.dumps(config.to_json()))
    assert architectures.config_from_json(values) == config
    assert DilatedConfig.json_notes(values) == []
    del values["kernel_size"]
    with pytest.raises(InputError, match=r"^my.json: kernel_size missing"):
        architectures.config_from_json(values, source="my.json")


def test_a_classifier_keeps_the_whole_encoder():
    """The way back has parameters where only the one vector is read, so weights of pretraining fit."""
    config = StridedConfig(V, embedding_size=4, hidden_size=4, num_layers=2, max_length=4)
    batch = batch_of([1, 2, 3], width=4) | {"cls_positions": np.zeros((1, 1), np.int32)}
    shapes = jax.eval_shape(Model(config, SequenceHead(config, 2)).init, jax.random.key(0), batch)["params"]
    assert set(shapes["encoder"]) == set(drawn(config)[1])
