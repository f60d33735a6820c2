"""The numbers of another BERT: same weights and inputs, same outputs, losses and gradients, within 1e-5."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert.architectures.bert import BertConfig
from bert.architectures.bert_encoder import BertEncoder
from bert.interop import names, parameters
from bert.interop.load_report import LoadReport

TOLERANCE = 1e-5  # absolute


@pytest.fixture(scope="module")
def want(golden) -> dict:
    with np.load(golden / "pretrain.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="module")
def summary(golden) -> dict:
    return json.loads((golden / "pretrain_summary.json").read_text())


@pytest.fixture(scope="module")
def reference(golden, tiny):
    """The reference's weights in our model."""
    folder = golden / "tiny_bert"
    config = BertConfig.from_json(json.loads((folder / "config.json").read_text()))
    report = LoadReport("tiny_bert")
    params = parameters.to_params(
        load_file(folder / "model.safetensors"),
        names.table(config),
        config,
        ("encoder", "pooler", "mlm", "next_sentence"),
        report,
    )
    assert len(report.used) == 46
    return type(tiny)(config, params)


@pytest.fixture(scope="module")
def batch(want) -> dict:
    """The reference's inputs, with every position scored, so that all logits can be compared."""
    B, T = want["input_ids"].shape
    positions_BT = np.tile(np.arange(T, dtype=np.int32), (B, 1))
    labels_BT = want["mlm_labels"]
    return {
        "token_ids": want["input_ids"].astype(np.int32),
        "type_ids": want["token_type_ids"].astype(np.int32),
        "position_ids": positions_BT,
        "example_ids": want["attention_mask"].astype(np.int32),
        "cls_positions": np.zeros((B, 1), np.int32),
        "masked_positions": positions_BT,
        "masked_ids": np.maximum(labels_BT, 0).astype(np.int32),
        "masked_weights": (labels_BT >= 0).astype(np.float32),
        "next_sentence_labels": want["nsp_labels"][:, None].astype(np.int32),
        "next_sentence_weights": np.ones((B, 1), np.float32),
    }


def close(got, want) -> None:
    np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE)


def test_outputs(reference, batch, want):
    """Hidden states at all positions, padding included, pooled output, and both heads' logits."""
    close(reference.hidden(batch), want["sequence_output"])
    outputs = reference.outputs(batch)
    close(outputs["pooled_output"][:, 0], want["pooled_output"])
    close(outputs["nsp_logits"][:, 0], want["nsp_logits"])
    close(outputs["mlm_logits"], want["mlm_logits"])


@pytest.mark.parametrize("layer_loop", ["scan", "unroll"])
def test_inside(reference, batch, want, layer_loop):
    """The embeddings' output, each block's output, and each head's attention weights."""
    encoder = BertEncoder(dataclasses.replace(reference.config, layer_loop=layer_loop))
    states = jax.jit(functools.partial(encoder.apply, method="states"))
    hidden_LBTD, weights_LBNTS = states({"params": reference.params["encoder"]}, batch)
    close(hidden_LBTD, want["hidden_states"])
    close(weights_LBNTS, want["attentions"])


@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu"])
def test_activations(reference, batch, want, activation):
    """Each activation in blocks and word head; exact and approximate GELU are told apart."""
    close(reference.hidden(batch, hidden_act=activation), want[f"act_{activation}_sequence_output"])
    logits_BTV = reference.outputs(batch, hidden_act=activation)["mlm_logits"]
    close(logits_BTV[..., :16], want[f"act_{activation}_mlm_logits"])


def test_reversed_positions(reference, batch, want):
    """Position ids are followed, not counted: 15, 14, ... 0."""
    flipped = batch | {"position_ids": batch["position_ids"][:, ::-1]}
    close(reference.hidden(flipped), want["reversed_positions_sequence_output"])


def test_neither_mask_nor_types(reference, batch, want):
    """All positions are one example of one segment, as where a caller gives token ids alone."""
    plain = batch | {"example_ids": np.ones_like(batch["example_ids"]), "type_ids": np.zeros_like(batch["type_ids"])}
    close(reference.hidden(plain), want["default_args_sequence_output"])
    close(reference.outputs(plain)["mlm_logits"][..., :16], want["default_args_mlm_logits"])


def test_losses(reference, batch, summary):
    """Masked words, next sentence, and their sum, in nats: means over what is counted."""
    total, _ = reference.loss_and_gradients(batch)
    words, _ = reference.loss_and_gradients(batch | {"next_sentence_weights": np.zeros((3, 1), np.float32)})
    pairs, _ = reference.loss_and_gradients(batch | {"masked_weights": np.zeros((3, 16), np.float32)})
    close(total, summary["loss_total"])
    close(words, summary["loss_mlm"])
    close(pairs, summary["loss_nsp"])


@pytest.mark.parametrize("way", [{"layer_loop": "scan", "remat": True}, {}], ids=str)
def test_gradients(reference, batch, golden, summary, way):
    """All 46 parameters; the shared token table once, with both of its uses."""
    _, gradients = reference.loss_and_gradients(batch, **way)
    want = load_file(golden / "pretrain_grads.safetensors")
    got = dict(parameters.from_params(gradients, reference.config))
    assert len(want) == 46
    assert got.keys() == want.keys()
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=0, atol=TOLERANCE, err_msg=name)
    norm = jnp.sqrt(sum(jnp.square(x).sum() for x in jax.tree.leaves(gradients)))
    assert float(norm) == pytest.approx(summary["grad_global_norm"], abs=1e-4)
