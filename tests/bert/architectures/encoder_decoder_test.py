"""The Transformer of two stacks against torch's, with its weights, and its configuration."""

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert import architectures
from bert.architectures.encoder_decoder import EncoderDecoderConfig
from bert.errors import InputError
from bert.model.decoders import Memory
from bert.model.teacher_forcing import TeacherForced
from tests.torch_transformer import block_of, tree_of


@pytest.fixture(scope="module")
def reference(shared):
    folder = shared / "golden2" / "seq2seq"
    return load_file(folder / "torch_transformer.safetensors"), np.load(folder / "torch_transformer.npz")


def test_torch_s_transformer_with_its_weights(reference):
    """Memory, decoder states, loss with label smoothing, plain loss and gradients, of padded rows."""
    tensors, want = reference
    config = EncoderDecoderConfig(30, 32, 2, 4, 64, hidden_dropout=0.0)
    source, target = want["source"], np.maximum(want["target_out"], 0)  # -100 is padding
    position_BS, position_BU = (np.tile(np.arange(ids.shape[1]), (3, 1)) for ids in (source, target))
    batch = {
        "token_ids": source, "example_ids": (source != 0) * 1, "position_ids": position_BS,
        "target_ids": target, "target_position_ids": position_BU, "target_example_ids": (target != 0) * 1,
    }  # fmt: skip
    weights_BU = (target != 0).astype(np.float32)
    encoder, model, params = architectures.build(config), TeacherForced(config, 0.1), tree_of(tensors)

    def loss(params):
        outputs = model.apply({"params": params}, batch)
        return (outputs["smoothed"] * weights_BU).sum() / weights_BU.sum(), (outputs["nats"] * weights_BU).sum()

    (smoothed, nats), grads = jax.jit(jax.value_and_grad(loss, has_aux=True))(params)
    apply = jax.jit(encoder.apply, static_argnames="method")
    memory = apply({"params": params["encoder"]}, batch, method="memory")
    output_BUD = apply({"params": params["encoder"]}, memory, batch, method="teacher_forced")
    real_BS, real_BU = source != 0, target != 0
    np.testing.assert_allclose(memory.hidden_BSD[real_BS], want["memory"][real_BS], rtol=0, atol=1e-5)
    np.testing.assert_allclose(output_BUD[real_BU], want["decoder_output"][real_BU], rtol=0, atol=1e-5)
    np.testing.assert_allclose(smoothed, want["loss"], rtol=1e-5)
    np.testing.assert_allclose(nats / weights_BU.sum(), want["nll_mean"], rtol=1e-5)
    of_torch = {name.removeprefix("grad|"): want[name] for name in want.files if name.startswith("grad|")}
    ours = grads["encoder"]
    encoder_0, decoder = (ours[stack]["blocks"] for stack in ("source", "decoder"))
    kernel = lambda part, layer: np.concatenate([part[x]["kernel"][layer].T for x in ("query", "key", "value")])  # noqa: E731
    bias = lambda part, layer: np.concatenate([part[x]["bias"][layer] for x in ("query", "key", "value")])  # noqa: E731
    found = {
        "embedding": ours["source"]["embeddings"]["token"]["embedding"],
        "encoder.layers.0.self_attn.in_proj_weight": kernel(encoder_0["attention"], 0),
        "encoder.layers.0.self_attn.in_proj_bias": bias(encoder_0["attention"], 0),
        "encoder.layers.1.linear1.weight": encoder_0["feed_forward"]["up"]["kernel"][1].T,
        "decoder.layers.0.multihead_attn.in_proj_weight": kernel(decoder["memory_attention"], 0),
        "decoder.layers.1.self_attn.out_proj.weight": decoder["attention"]["output"]["kernel"][1].T,
        "decoder.layers.0.norm2.weight": decoder["memory_norm"]["scale"][0],
        "decoder.layers.1.norm3.bias": decoder["feed_forward_norm"]["bias"][1],
    }
    assert set(found) == set(of_torch)
    for name, value in found.items():
        scale = max(1.0, np.abs(of_torch[name]).max())
        np.testing.assert_allclose(value, of_torch[name], rtol=0, atol=2e-5 * scale, err_msg=name)


def test_the_weights_with_which_torch_s_decoder_reads(reference):
    """Of each layer and head, by hand from torch's states between the layers: softmax of q k / sqrt(H)."""
    tensors, want = reference
    source, target = want["source"], np.maximum(want["target_out"], 0)
    position_BS, position_BU = (np.tile(np.arange(ids.shape[1]), (3, 1)) for ids in (source, target))
    batch = {
        "example_ids": (source != 0) * 1, "position_ids": position_BS,
        "target_ids": target, "target_position_ids": position_BU, "target_example_ids": (target != 0) * 1,
    }  # fmt: skip
    encoder, params = architectures.build(EncoderDecoderConfig(30, 32, 2, 4, 64)), tree_of(tensors)["encoder"]
    memory = Memory(want["memory"], batch["example_ids"])
    found_BAUS = jax.jit(encoder.apply, static_argnames="method")({"params": params}, memory, batch, method="attention")

    def heads(x, kernel, bias):
        return (x @ kernel + bias).reshape(*x.shape[:2], 4, 8).swapaxes(1, 2)

    def softmax(scores, allowed):
        shares = np.where(allowed, np.exp(scores - scores.max(-1, keepdims=True)), 0)
        return shares / shares.sum(-1, keepdims=True)

    for layer in range(2):
        block = block_of(tensors, "decoder", layer)
        own, x_BUD = block["attention"], want["decoder_states"][layer]
        q, k, v = (heads(x_BUD, **own[name]) for name in ("query", "key", "value"))
        mixed = softmax(q @ k.swapaxes(2, 3) / np.sqrt(8), np.tri(6, dtype=bool)) @ v
        x_BUD = x_BUD + mixed.swapaxes(1, 2).reshape(x_BUD.shape) @ own["output"]["kernel"] + own["output"]["bias"]
        x_BUD = (x_BUD - x_BUD.mean(-1, keepdims=True)) / np.sqrt(x_BUD.var(-1, keepdims=True) + 1e-5)
        x_BUD = x_BUD * block["attention_norm"]["scale"] + block["attention_norm"]["bias"]
        q, k = (
            heads(x_BUD, **block["memory_attention"]["query"]),
            heads(want["memory"], **block["memory_attention"]["key"]),
        )
        weights = softmax(q @ k.swapaxes(2, 3) / np.sqrt(8), (source != 0)[:, None, None])
        weights = np.where((target != 0)[:, None, :, None], weights, 0)
        np.testing.assert_allclose(found_BAUS[:, 4 * layer : 4 * layer + 4], weights, rtol=0, atol=1e-5)


def test_config_json_holds_all_that_decides_the_weights_meaning():
    config = EncoderDecoderConfig(50, 32, 3, 4, 48, norm="pre", start_id=7, hidden_act="gelu")
    values = config.to_json()
    assert architectures.config_from_json(values) == config
    assert EncoderDecoderConfig.json_notes(values | {"beams": 4}) == [
        "config.json: not known here, so without effect, whatever they mean elsewhere: beams"
    ]
    with pytest.raises(InputError, match=r"config\.json: norm .*'mid'.*post"):
        architectures.config_from_json(values | {"norm": "mid"})
    with pytest.raises(InputError, match="start_id is 50"):
        architectures.config_from_json(values | {"start_id": 50})


def test_it_is_not_pretrained_and_has_no_head():
    config = EncoderDecoderConfig(50, 32, 1, 4, 48)
    with pytest.raises(InputError, match=r"'transformer' .*pairs.*finetune"):
        architectures.check_objective(config, "mlm")
    assert architectures.heads_of(config) == "none"
    assert architectures.packs(config)
