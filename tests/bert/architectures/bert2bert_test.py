"""Encoder-decoders of BERTs give the numbers of transformers' EncoderDecoderModel, whose files they read and write."""

import dataclasses
import json
from typing import Any

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import bert
from bert import architectures, inference
from bert.architectures.bert import BertConfig
from bert.architectures.bert2bert import BertToBertConfig
from bert.errors import InputError
from bert.interop import names, sources, warm_start
from bert.interop.model_directory import check_vocabulary
from bert.interop.parameters import from_params
from bert.interop.warm_start import WarmStart
from bert.model import decoding, stack, vocabulary
from bert.model.teacher_forcing import TeacherForced

TINY_BERT = "tests/golden/tiny_bert"
SIZES = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 24, "max_position_embeddings": 16}


def close(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1.0, np.abs(theirs).max()))


def batch_of(want):
    """The reference's rows, as the batch of one pair a row that trains on them."""
    source, labels = want["input_ids"].astype(np.int32), want["labels"].astype(np.int32)
    position_BS, position_BU = (np.tile(np.arange(ids.shape[1], dtype=np.int32), (6, 1)) for ids in (source, labels))
    return {
        "token_ids": source, "type_ids": np.zeros_like(source), "position_ids": position_BS,
        "example_ids": want["attention_mask"].astype(np.int32), "target_ids": np.maximum(labels, 0),
        "target_position_ids": position_BU, "target_example_ids": (labels >= 0).astype(np.int32),
    }  # fmt: skip


def call(model, method, *inputs):
    with jax.default_matmul_precision("highest"):
        module = architectures.build(model.config)
        return jax.jit(module.apply, static_argnames="method")(
            {"params": model.params["encoder"]}, *inputs, method=method
        )


def loss_and_gradients(config, params, batch):
    """The mean cross-entropy of the words, the one to smoothed labels, and the gradients of the first."""
    weights_BU = batch["target_example_ids"]

    def loss(params, smoothing):
        outputs = TeacherForced(config, smoothing).apply({"params": {"encoder": params}}, batch)
        return (outputs["smoothed"] * weights_BU).sum() / weights_BU.sum()

    value, gradients = jax.jit(jax.value_and_grad(lambda params: loss(params, 0.0)))(params)
    return value, jax.jit(lambda params: loss(params, 0.1))(params), gradients


@pytest.fixture(scope="module", params=["bert2bert", "bert2bert_untied", "bert2bert_share"])
def family(request, shared):
    """(folder, the loaded model, the reference's arrays)"""
    folder = shared / "golden2" / "seq2seq" / request.param
    return folder, bert.load(folder), np.load(folder / "outputs.npz")


def test_states_scores_and_attention_are_those_of_transformers(family):
    _, model, want = family
    batch = batch_of(want)
    real_BS, real_BU = batch["example_ids"] > 0, batch["target_example_ids"] > 0
    memory = call(model, "memory", batch)
    close(memory.hidden_BSD[real_BS], want["encoder_last_hidden_state"][real_BS])
    states_BUD = call(model, "teacher_forced", memory, batch)
    table_VD, bias_V = call(model, "output_projection")
    logits_BUV = vocabulary.logits(states_BUD, table_VD, bias_V, "float32")
    close(logits_BUV[real_BU], want["logits"][real_BU], 2e-5)
    maps_BAUS = np.asarray(call(model, "attention", memory, batch))
    theirs_BAUS = np.concatenate(want["cross_attentions"], axis=1)  # of each layer, of each head
    close(maps_BAUS.swapaxes(1, 2)[real_BU], theirs_BAUS.swapaxes(1, 2)[real_BU])


def test_losses_and_gradients_are_those_of_transformers(family):
    _, model, want = family
    loss, smoothed, gradients = loss_and_gradients(model.config, model.params["encoder"], batch_of(want))
    np.testing.assert_allclose([loss, smoothed], [want["loss"], want["loss_label_smoothing_0_1"]], rtol=1e-5)
    named = dict(from_params({"encoder": jax.tree.map(np.asarray, gradients), "head": {}}, model.config))
    compared = [name for name in want.files if name.startswith("grad|")]
    assert len(compared) >= 7
    for name in compared:
        close(named[name.removeprefix("grad|")], want[name], 2e-5)


def test_search_finds_the_texts_of_the_reference(family):
    """Greedy as transformers; beams as a reference with the same length penalty, which transformers has not."""
    folder, model, _ = family
    want = json.loads((folder / "generate.json").read_text())
    rows, longest = len(want["sources"]), max(map(len, want["sources"]))
    ids_BS = np.zeros((rows, longest), np.int32)
    for row, ids in zip(ids_BS, want["sources"], strict=True):
        row[: len(ids)] = ids
    batch = {"token_ids": ids_BS, "type_ids": np.zeros_like(ids_BS), "example_ids": (ids_BS > 0).astype(np.int32)}
    batch["position_ids"] = np.tile(np.arange(longest, dtype=np.int32), (rows, 1))
    for name, beams, alpha in (("greedy", 1, 0.6), ("gnmt_beam4_alpha_0.6", 4, 0.6), ("gnmt_beam4_alpha_1.0", 4, 1.0)):
        places = want["max_new_tokens"]
        limits, stop = np.full(rows, places, np.int32), np.int32(want["eos"])
        sizes = {"beams": beams, "places": places, "words": model.config.vocab_size}
        params = stack.by_layer(model.params, model.config)
        found = decoding.translate(params, batch, limits, np.float32(alpha), stop, config=model.config, **sizes)
        for row, texts in enumerate(want.get(name, [])):  # shared weights were not trained, and have no beams there
            for k, text in enumerate([texts] if beams == 1 else texts):
                count = int(found.length_BK[row, k])
                assert np.asarray(found.ids_BKU[row, k, :count]).tolist() == text["tokens"]
                if beams > 1:
                    assert float(found.score_BK[row, k]) == pytest.approx(text["score"], rel=1e-4)


def test_files_are_written_again_bit_for_bit(family, tmp_path):
    """All but a bias that has no effect where words have a table of their own."""
    folder, model, _ = family
    written = bert.save(model, tmp_path / "again")
    before, after = (load_file(f / "model.safetensors") for f in (folder, written))
    without_effect = set() if model.config.tied else {"decoder.cls.predictions.bias"}
    assert set(model.report.ignored) == without_effect
    assert before.keys() - after.keys() == without_effect
    assert after.keys() <= before.keys()
    for name, value in after.items():
        np.testing.assert_array_equal(value, before[name])
    again = bert.load(written)
    assert again.config == model.config
    assert again.report.notes == []
    ours, theirs = (json.loads((f / "config.json").read_text()) for f in (written, folder))
    assert {name: ours[name] for name in theirs if name not in ("encoder", "decoder", "transformers_version")} == {
        name: theirs[name] for name in theirs if name not in ("encoder", "decoder", "transformers_version")
    }
    for half in ("encoder", "decoder"):
        assert ours[half].items() <= theirs[half].items()
        ours[half]["num_attention_heads"] = 4
    (written / "config.json").write_text(json.dumps(ours))
    with pytest.raises(InputError, match=r"num_attention_heads is 4, .* 2"):
        bert.load(written)


@pytest.fixture(scope="module")
def shared_weights(shared):
    """(the reference as two halves, the same as one set of weights, a batch)"""
    folder = shared / "golden2" / "seq2seq" / "bert2bert_share"
    model = bert.load(folder)
    config = dataclasses.replace(model.config, share=True)
    encoder = model.params["encoder"]
    own = {name: encoder["decoder"]["blocks"][name] for name in ("memory_attention", "memory_norm")}
    decoder = {"blocks": own, "words": encoder["decoder"]["words"]}
    one = inference.from_params(config, {"encoder": {"source": encoder["source"], "decoder": decoder}}, None)
    return model, one, batch_of(np.load(folder / "outputs.npz"))


def test_shared_weights_get_the_sum_of_both_gradients(shared_weights):
    two, one, batch = shared_weights
    loss, _, apart = loss_and_gradients(two.config, two.params["encoder"], batch)
    same, _, joined = loss_and_gradients(one.config, one.params["encoder"], batch)
    np.testing.assert_allclose(loss, same, rtol=1e-6)
    decoder = dict(apart["decoder"])
    blocks = {name: decoder["blocks"][name] for name in apart["source"]["blocks"]}
    both = {"embeddings": decoder["embeddings"], "blocks": blocks}
    summed = jax.tree.map(np.add, apart["source"], both)
    jax.tree.map(close, joined["source"], summed)
    jax.tree.map(close, joined["decoder"]["words"], decoder["words"])
    for name, value in joined["decoder"]["blocks"].items():
        jax.tree.map(close, value, decoder["blocks"][name])


def test_shared_weights_are_written_under_both_names_and_read_as_one(shared_weights, tmp_path, shared):
    _, one, _ = shared_weights
    written = bert.save(one, tmp_path / "one")
    before, after = (load_file(f / "model.safetensors") for f in (shared / "golden2/seq2seq/bert2bert_share", written))
    pooler = {"encoder.pooler.dense.weight", "encoder.pooler.dense.bias"}
    assert before.keys() - pooler == after.keys()
    for name, value in after.items():
        np.testing.assert_array_equal(value, before[name])
    again = bert.load(written)
    assert again.config == one.config
    assert len(str(again.report).splitlines()) == 2  # of counts, and of all copies
    jax.tree.map(np.testing.assert_array_equal, again.params["encoder"], one.params["encoder"])
    values = json.loads((written / "config.json").read_text())
    assert values["tie_encoder_decoder"] is True
    name = "decoder.bert.encoder.layer.1.output.dense.bias"
    changed = {name: after[name] + 1}
    save_file(after | changed, written / "model.safetensors")
    with pytest.raises(InputError, match=rf"{name} differs from encoder.encoder.layer.1.output.dense.bias"):
        bert.load(written)


@pytest.mark.parametrize(("variant", "count"), [("bert2bert", 246_150_144), ("bertshare", 137_258_496)])
def test_base_has_the_published_number_of_parameters(variant, count):
    """Without the masked-word head's layer and bias; the attention to the source has 28,366,848 of them."""
    config = BertToBertConfig(30522, share=variant == "bertshare")
    ids_BT = np.ones((1, 1), np.int32)
    batch = dict.fromkeys(("token_ids", "type_ids", "position_ids", "example_ids"), ids_BT)
    shapes = jax.eval_shape(architectures.build(config).init, jax.random.key(0), batch)["params"]
    size = lambda tree: sum(leaf.size for leaf in jax.tree.leaves(tree))  # noqa: E731
    blocks = shapes["decoder"]["blocks"]
    assert size([blocks["memory_attention"], blocks["memory_norm"]]) == 28_366_848
    assert size(shapes) - size(shapes["decoder"]["words"]) == count


@pytest.fixture(scope="module")
def tiny_bert():
    return sources.read(TINY_BERT)


@pytest.mark.parametrize("variant", warm_start.VARIANTS)
def test_a_half_begins_with_the_weights_or_at_random(tiny_bert, variant):
    model = warm_start.encoder_decoder(tiny_bert, WarmStart(variant), seed=3)
    theirs, ours = tiny_bert.params["encoder"], model.params["encoder"]
    random = warm_start.drawn(model.config, 3)
    equal = lambda a, b: jax.tree.all(jax.tree.map(np.array_equal, a, b))  # noqa: E731
    encoder_kept, decoder_kept = warm_start.VARIANTS[variant]
    assert equal(ours["source"], theirs if encoder_kept else random["source"])
    memory = ("memory_attention", "memory_norm")
    assert all(equal(ours["decoder"]["blocks"][name], random["decoder"]["blocks"][name]) for name in memory)
    assert equal(ours["decoder"]["words"], tiny_bert.params["head"]["mlm"]) == decoder_kept
    if variant == "bertshare":
        assert set(ours["decoder"]) == {"blocks", "words"}
        assert set(ours["decoder"]["blocks"]) == set(memory)
    else:
        kept = theirs if decoder_kept else random["decoder"]
        assert equal(ours["decoder"]["embeddings"], kept["embeddings"])
        assert all(equal(ours["decoder"]["blocks"][name], kept["blocks"][name]) for name in theirs["blocks"])
    config: Any = model.config
    assert (config.start_id, config.end_id) == (model.tokenizer.cls_id, model.tokenizer.sep_id)
    assert variant in model.report.notes[-1]


def test_the_encoder_of_a_bert_gives_the_states_of_that_bert(tiny_bert):
    model = inference.LoadedModel(warm_start.encoder_decoder(tiny_bert, WarmStart("bert2rnd"), seed=0))
    ids = [[2, 8, 9, 6, 3], [2, 7, 3, 0, 0]]
    mask = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    theirs = inference.LoadedModel(tiny_bert).outputs(ids, None, mask)["sequence_output"]
    np.testing.assert_array_equal(model.outputs(ids, None, mask)["sequence_output"], theirs)


@pytest.mark.parametrize("format", ["stablehlo", "onnx"])
def test_a_decoder_is_no_program(tiny_bert, tmp_path, format):
    model = inference.LoadedModel(warm_start.encoder_decoder(tiny_bert, WarmStart(), seed=0))
    with pytest.raises(InputError, match=r"decoder.*export huggingface"):
        bert.save(model, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


def test_only_a_bert_becomes_an_encoder_decoder(tiny_bert):
    causal = tiny_bert._replace(config=dataclasses.replace(tiny_bert.config, is_decoder=True))
    with pytest.raises(InputError, match=r"tiny_bert.*causal BERT.*both sides"):
        warm_start.encoder_decoder(causal, WarmStart(), 0)
    with pytest.raises(InputError, match=r"variant .*'bert2gpt'.*bert2rnd"):
        WarmStart("bert2gpt")
    one_end = type("Tokenizer", (), {"cls_id": 1, "sep_id": 1, "vocab": ("a", "<|end|>")})
    with pytest.raises(InputError, match=r"'<\|end\|>' .*\[CLS\]"):
        warm_start.encoder_decoder(tiny_bert._replace(tokenizer=one_end), WarmStart(), 0)


def test_config_json_is_that_of_transformers():
    config = BertToBertConfig(28, source_vocab_size=24, start_id=1, end_id=2, tied=False, **SIZES)
    values = config.to_json()
    assert architectures.config_from_json(values) == config
    shared_config = BertToBertConfig(28, share=True, start_id=1, **SIZES)
    assert architectures.config_from_json(shared_config.to_json()) == shared_config
    assert (values["encoder"]["vocab_size"], values["decoder"]["vocab_size"]) == (24, 28)
    assert BertToBertConfig.json_notes(values | {"beams": 4}) == [
        "config.json: not known here, so without effect, whatever they mean elsewhere: beams"
    ]
    assert BertConfig(28, **SIZES).to_json().items() <= (values["decoder"] | {"is_decoder": False}).items()


BAD = {
    "another kind": ({"encoder": {"model_type": "roberta"}}, r"c.json: encoder: model_type .*'roberta'.*bert"),
    "a causal encoder": ({"encoder": {"is_decoder": True}}, r"c.json: encoder: is_decoder is True.*causal"),
    "a decoder to both sides": ({"decoder": {"is_decoder": False}}, r"c.json: decoder: is_decoder is False.*causal"),
    "other sizes": ({"decoder": {"num_hidden_layers": 3}}, r"num_hidden_layers of the encoder is 2, .*3.*vocab_size"),
    "no start": ({"decoder_start_token_id": None}, r"decoder_start_token_id is missing.*\[CLS\]"),
    "start beyond the table": ({"decoder_start_token_id": 28}, r"c.json: decoder_start_token_id is 28"),
    "one half": ({"decoder": None}, r"c.json: decoder is missing.*halves"),
    "shared, but two tables": ({"tie_encoder_decoder": True}, r"24 .*28.*one vocabulary"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_pair_of_berts_is_refused_by_the_key(case):
    changes: Any
    changes, message = BAD[case]
    values = BertToBertConfig(28, source_vocab_size=24, start_id=1, **SIZES).to_json()
    for name, value in changes.items():
        values[name] = values[name] | value if isinstance(value, dict) else value
    with pytest.raises(InputError, match=message):
        architectures.config_from_json(values, source="c.json")


def test_two_vocabularies_read_no_texts_with_the_larger_one(tiny_bert):
    config: Any = dataclasses.replace(
        warm_start.encoder_decoder(tiny_bert, WarmStart(), 0).config, source_vocab_size=tiny_bert.config.vocab_size - 9
    )
    with pytest.raises(InputError, match=r"vocabulary .* entries, more than"):
        check_vocabulary(tiny_bert.tokenizer, config, "folder", tiny_bert.report)
    assert names.table(config).axis_sizes(config)["E"] == config.source_vocab_size
