"""Heads of sentences, tokens and spans: the reference's scores, read at the right places, dropout only in training."""

import dataclasses
import functools
import pathlib

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file

from bert.interop.hugging_face import load_model_directory
from bert.model.heads import Model, SequenceHead, SpanHead, TokenHead

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
HEADS = {
    "tiny_seqcls": (functools.partial(SequenceHead, classes=3), {"sequence_logits": "seqcls_logits"}),
    "tiny_regression": (functools.partial(SequenceHead, classes=1), {"sequence_logits": "regression_logits"}),
    "tiny_tokcls": (functools.partial(TokenHead, classes=3), {"token_logits": "tokcls_logits"}),
    "tiny_qa": (SpanHead, {"start_logits": "qa_start_logits", "end_logits": "qa_end_logits"}),
}


@pytest.fixture(scope="module")
def want() -> dict:
    with np.load(GOLDEN / "heads.npz") as logits, np.load(GOLDEN / "pretrain.npz") as inputs:
        return {**logits, **{name: inputs[name] for name in ("input_ids", "token_type_ids", "attention_mask")}}


@pytest.fixture(scope="module")
def batch(want) -> dict:
    B, T = want["input_ids"].shape
    return {
        "token_ids": want["input_ids"].astype(np.int32),
        "type_ids": want["token_type_ids"].astype(np.int32),
        "position_ids": np.tile(np.arange(T, dtype=np.int32), (B, 1)),
        "example_ids": want["attention_mask"].astype(np.int32),
        "cls_positions": np.zeros((B, 1), np.int32),
    }


@functools.cache
def model_of(name, **changes):
    """A directory's model, its parameters, and its compiled outputs, (params, batch, dropout key or None) -> dict.

    ``changes``: of the configuration, and ``rate`` of the head.
    """
    found = load_model_directory(GOLDEN / name)
    rate = {"rate": changes.pop("rate")} if "rate" in changes else {}
    config = dataclasses.replace(found.config, **changes)
    model = Model(config, HEADS[name][0](config, **rate))

    def outputs(params, batch, key):
        return model.apply(
            {"params": params}, batch, train=key is not None, rngs={} if key is None else {"dropout": key}
        )

    return model, found.params, jax.jit(outputs)


@pytest.mark.parametrize("name", HEADS)
def test_scores_are_the_references(want, batch, name):
    """Within 1e-5; the parameters are those of the file."""
    model, params, outputs = model_of(name)
    shapes = jax.eval_shape(model.init, jax.random.key(0), batch)["params"]
    assert jax.tree.map(np.shape, params) == jax.tree.map(np.shape, shapes)
    got = outputs(params, batch, None)
    for ours, theirs in HEADS[name][1].items():
        value = np.asarray(got[ours])
        assert value.dtype == np.float32
        np.testing.assert_allclose(value.reshape(want[theirs].shape), want[theirs], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", HEADS)
def test_training_without_dropout_computes_the_same(batch, name):
    """With every rate 0 and a key, the scores are those outside training."""
    none = {"hidden_dropout": 0.0, "attention_dropout": 0.0, **({} if name == "tiny_qa" else {"rate": 0.0})}
    _, params, outputs = model_of(name, **none)
    still, trained = outputs(params, batch, None), outputs(params, batch, jax.random.key(3))
    for output in HEADS[name][1]:
        np.testing.assert_allclose(trained[output], still[output], rtol=0, atol=1e-6)


def test_several_labels_are_scored_by_the_same_head(want, batch):
    """One score a label; that they are judged one by one is the loss's business."""
    _, params, outputs = model_of("tiny_seqcls")
    other = load_file(GOLDEN / "multilabel_head.safetensors")
    head = {"kernel": other["classifier.weight"].T, "bias": other["classifier.bias"]}
    got = outputs({**params, "head": {**params["head"], "sequence_classifier": head}}, batch, None)
    np.testing.assert_allclose(got["sequence_logits"][:, 0], want["multilabel_logits"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["tiny_seqcls", "tiny_tokcls"])
def test_what_the_classifier_reads_is_dropped_in_training(batch, name):
    """With a dropout of 90 % before the scores and none elsewhere, most of what is read is 0, the rest ten times it."""
    found = load_model_directory(GOLDEN / name)
    part = next(part for part in found.parts if part.endswith("classifier"))
    # Scores that are the read vector itself: a kernel of ones on the diagonal, one class an entry.
    head = {**found.params["head"], part: {"kernel": np.eye(32, dtype=np.float32), "bias": np.zeros(32, np.float32)}}
    config = dataclasses.replace(found.config, hidden_dropout=0.0, attention_dropout=0.0)
    model = Model(config, HEADS[name][0].func(config, classes=32, rate=0.9))  # type: ignore[attr-defined]
    params = {"params": {**found.params, "head": head}}
    (still,) = (v for k, v in model.apply(params, batch).items() if k.endswith("_logits"))
    (dropped,) = (
        v
        for k, v in model.apply(params, batch, train=True, rngs={"dropout": jax.random.key(1)}).items()
        if k.endswith("_logits")
    )
    kept = np.asarray(dropped) != 0
    assert 0.05 < kept.mean() < 0.2
    np.testing.assert_allclose(np.asarray(dropped)[kept], 10 * np.asarray(still)[kept], rtol=1e-3)


def test_a_row_of_several_examples_has_a_score_for_each(batch):
    """Sequence scores are read at each example's [CLS], wherever it stands."""
    _, params, outputs = model_of("tiny_seqcls")
    lengths = (9, 7)
    short = np.arange(16) < np.array([16, *lengths])[:, None]
    alone = outputs(params, batch | {"example_ids": short.astype(np.int32)}, None)["sequence_logits"][1:, 0]
    packed = {name: np.zeros((3, 16), np.int32) for name in ("token_ids", "type_ids", "position_ids", "example_ids")}
    starts = [0, lengths[0]]
    for e, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        at = slice(start, start + length)
        for name in ("token_ids", "type_ids", "position_ids"):
            packed[name][0, at] = batch[name][1 + e, :length]
        packed["example_ids"][0, at] = e + 1
    packed["cls_positions"] = np.tile(np.array([starts], np.int32), (3, 1))
    together = outputs(params, packed, None)["sequence_logits"][0]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-5)
