"""The recurrent encoder-decoder against reference arrays: states, attention, loss and gradients; its configuration."""

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert import architectures
from bert.architectures.recurrent_decoder import RecurrentDecoderConfig
from bert.model import vocabulary
from bert.model.decoders import Memory

# Of the reference arrays: states of 10 from the source, 8 of the decoder, vectors of 7, 11 words.
BAHDANAU = RecurrentDecoderConfig(
    11, embedding_size=7, hidden_size=10, decoder_size=8, attention_size=9, output_size=6, tied=False,
    hidden_dropout=0.0,
)  # fmt: skip
BILINEAR = RecurrentDecoderConfig(
    11, embedding_size=7, hidden_size=10, decoder_size=8, output_size=7, score="bilinear", output="linear",
    reset="after", hidden_dropout=0.0,
)  # fmt: skip


def reference(shared, name):
    folder = shared / "golden2" / "seq2seq"
    return load_file(folder / f"{name}.safetensors"), dict(np.load(folder / f"{name}.npz"))


def kernel(*tensors):
    """The kernel of matrices whose outputs lie side by side."""
    return {"kernel": np.concatenate(tensors).T}


def with_bias(kernel, bias=0.0):
    width = kernel["kernel"].shape[1]
    return kernel | {"bias": np.broadcast_to(np.asarray(bias, np.float32), (width,))}


def bahdanau_tree(w):
    """The decoder's part of the parameters, of the reference's weights or of their gradients."""
    attention = {"query": with_bias(kernel(w["Wa"])), "key": kernel(w["Ua"]), "vector": {"kernel": w["va"][:, None]}}
    return {
        "first": with_bias(kernel(w["Ws"])),
        "word": with_bias(kernel(w["Wr"], w["Wu"], w["W"])),
        "context": kernel(w["Cr"], w["Cu"], w["C"]),
        "state": kernel(w["Ur"], w["Uu"], w["U"]),
        "attention": attention,
        "from_state": with_bias(kernel(w["Uo"])),
        "from_word": kernel(w["Vo"]),
        "from_context": kernel(w["Co"]),
    }


def bilinear_tree(w):
    context, word = np.split(w["W_ih"], [10], axis=1)
    return {
        "first": with_bias({"kernel": np.zeros((5, 8), np.float32)}),
        "word": with_bias(kernel(word), w["b_ih"]),
        "context": kernel(context),
        "state": with_bias(kernel(w["W_hh"]), w["b_hh"]),
        "attention": {"key": {"kernel": w["Wkey"].T}},
        "from_state": with_bias(kernel(w["Wauto"])),
    }


def bahdanau(w):
    """The parameters of the reference's weights, or its gradients in that form."""
    tables = {"target_token": {"embedding": w["E"]}, "output_token": {"embedding": w["Wo"]}}
    return {"decoder": bahdanau_tree(w), **tables}


def bilinear(w):
    return {"decoder": bilinear_tree(w), "source": {"token": {"embedding": w["e"]}}}


def found(config, params, arrays):
    """(attention [B, U, S], logits [B, U, V], loss, its gradients) of the words after a memory."""
    words_BU = arrays["y"].astype(np.int32)
    position_BU = np.tile(np.arange(words_BU.shape[1]), (len(words_BU), 1))
    batch = {"target_ids": words_BU, "target_position_ids": position_BU, "target_example_ids": np.ones_like(words_BU)}
    memory, model = Memory(arrays["z"], arrays["mask"].astype(np.int32)), architectures.build(config)

    def loss(params):
        call = lambda method, *inputs: model.apply({"params": params}, *inputs, method=method)  # noqa: E731
        hidden_BUD, no_bias = call("teacher_forced", memory, batch), np.zeros(config.vocab_size, np.float32)
        scored = (hidden_BUD, call("token_table"), no_bias)
        nats_BU, _, _ = vocabulary.smoothed_cross_entropy(*scored, words_BU, "float32", 0.0)
        return nats_BU.mean(), (call("attention", memory, batch)[:, 0], vocabulary.logits(*scored, "float32"))

    (value, (weights_BUS, logits_BUV)), grads = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    return weights_BUS, logits_BUV, value, grads


@pytest.mark.parametrize("name", ["bahdanau", "bilinear"])
def test_attention_logits_loss_and_gradients_are_those_of_the_reference(shared, name):
    """Two sources, the second with padding, and three words each."""
    config, tree_of = {"bahdanau": (BAHDANAU, bahdanau), "bilinear": (BILINEAR, bilinear)}[name]
    w, want = reference(shared, f"{name}_decoder")
    params = tree_of(w)
    if name == "bilinear":  # its first state is given: so is that which the source's last backward state makes
        backward = want["z"][:, 0, 5:]
        params["decoder"]["first"]["kernel"] = np.linalg.pinv(backward) @ np.arctanh(want["h0"])
    weights_BUS, logits_BUV, loss, grads = found(config, params, want)
    np.testing.assert_allclose(weights_BUS, want["a"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(logits_BUV, want["logits"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(loss, want["loss"], rtol=1e-5)
    of_reference = {key: want.get(f"grad|{key}", np.nan) for key in w}
    assert not any(np.isnan(value).any() for value in of_reference.values())
    wanted = tree_of(of_reference)

    def compare(path, ours, theirs):
        if "bias" not in str(path) or name == "bilinear":
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5, err_msg=str(path))

    if name == "bilinear":
        for tree in (grads, wanted):
            del tree["decoder"]["first"], tree["decoder"]["from_state"]["bias"]
    jax.tree_util.tree_map_with_path(compare, grads, wanted)
