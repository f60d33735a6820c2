"""The steps of a head are those of the encoder's own forward pass, and each follows from the one before."""

import pathlib

import numpy as np
import pytest
import safetensors.numpy

import bert
from bert.attention_steps import VECTORS
from bert.errors import InputError

TINY = pathlib.Path(__file__).resolve().parents[1] / "golden" / "tiny_bert"
TEXT = "the cat sat on the [MASK]"


@pytest.fixture(scope="module")
def tiny():
    return bert.load(TINY)


@pytest.fixture(scope="module")
def weights():
    return safetensors.numpy.load_file(TINY / "model.safetensors")


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5)


def layer_norm(x_TD, weights, name):
    centred = x_TD - x_TD.mean(-1, keepdims=True)
    scaled = centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-12)
    return scaled * weights[f"{name}.LayerNorm.weight"] + weights[f"{name}.LayerNorm.bias"]


def test_steps_follow_from_each_other(tiny):
    found = tiny.attention_steps(TEXT, layer=1, head=2)
    assert found.pieces == ["[CLS]", "the", "cat", "sat", "on", "the", "[MASK]", "[SEP]"]
    for array in (found.q, found.k, found.v, found.mixture):
        assert (array.shape, array.dtype) == ((8, 8), np.float32)
    close(found.scores, found.q @ found.k.T)
    close(found.scaled, found.scores / np.sqrt(8))
    close(found.weights, np.exp(found.scaled) / np.exp(found.scaled).sum(-1, keepdims=True))
    close(found.mixture, found.weights @ found.v)


@pytest.mark.parametrize("layer", [0, 1])
def test_steps_lead_from_one_hidden_state_to_the_next(tiny, weights, layer):
    """By the weights in the file: projections, output projection, residual and norm, to the next hidden state."""
    every = [tiny.attention_steps(TEXT, layer, head) for head in range(4)]
    ids = [[tiny.tokenizer.vocab.index(piece) for piece in every[0].pieces]]
    inside = tiny.outputs(ids, look_inside=True)
    x_TD, next_TD = inside["hidden_states"][layer : layer + 2, 0]
    at = f"bert.encoder.layer.{layer}"
    for name, part in (("q", "query"), ("k", "key"), ("v", "value")):
        kernel, bias = (weights[f"{at}.attention.self.{part}.{kind}"] for kind in ("weight", "bias"))
        close(np.concatenate([getattr(steps, name) for steps in every], -1), x_TD @ kernel.T + bias)
    close([steps.weights for steps in every], inside["attentions"][layer, 0])
    close([steps.scaled for steps in every], tiny.attention(TEXT, layer).scores)
    vectors = every[0].vectors
    mixed_TD = np.concatenate([steps.mixture for steps in every], -1)
    kernel, bias = (weights[f"{at}.attention.output.dense.{kind}"] for kind in ("weight", "bias"))
    close(vectors["input"], x_TD)
    close(vectors["heads"], mixed_TD)
    close(vectors["projected"], mixed_TD @ kernel.T + bias)
    close(vectors["attention_sum"], x_TD + vectors["projected"])
    close(vectors["attention_norm"], layer_norm(vectors["attention_sum"], weights, f"{at}.attention.output"))
    close(vectors["feed_forward_sum"], vectors["attention_norm"] + vectors["feed_forward"])
    close(layer_norm(vectors["feed_forward_sum"], weights, f"{at}.output"), next_TD)
    close(vectors["output"], next_TD)
    norms = every[0].norms()
    assert tuple(norms) == tuple(vectors) == VECTORS
    close(norms["output"], np.sqrt((next_TD**2).sum(-1)))


def test_a_pair_has_two_segments(tiny):
    found = tiny.attention_steps("the cat", layer=1, head=3, pair="sat")
    close(found.weights, tiny.attention("the cat", layer=1, pair="sat").weights[3])


@pytest.mark.parametrize(
    ("layer", "head", "message"),
    [(2, 0, "layer is 2; .*0 to 1"), (-1, 0, "layer is -1"), (0, 4, "head is 4; .*0 to 3"), (0.5, 0, "layer is 0.5")],
)
def test_layers_and_heads_that_are_not_there(tiny, layer, head, message):
    with pytest.raises(InputError, match=message):
        tiny.attention_steps(TEXT, layer, head)
