"""GPT, GPT-2 and BERT as a decoder give the numbers of transformers, and no position sees a later one."""

import json

import jax
import numpy as np
import pytest
import safetensors.numpy

import bert
from bert import architectures
from bert.architectures.bert import BertConfig
from bert.architectures.gpt import GPT2Config, GPTConfig
from bert.errors import InputError
from bert.interop import names
from bert.interop.parameters import flatten, from_params
from bert.model.heads import Model, PretrainingHead
from bert.training.pretraining import Pretraining

FAMILIES = ("openai_gpt", "gpt2", "bert_causal")


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, shared):
    """(folder, the loaded model, the reference's arrays)"""
    folder = shared / "golden2" / "families" / request.param
    return folder, bert.load(folder / "causal_lm"), np.load(folder / "outputs.npz")


def close(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1.0, np.abs(theirs).max()))


def causal_batch(ids_BT, mask_BT):
    """The batch of one example a row that the causal objective makes of these ids."""
    B, T = ids_BT.shape
    weights = (mask_BT[:, 1:] * mask_BT[:, :-1]).astype(np.float32)
    return {
        "token_ids": ids_BT.astype(np.int32),
        "type_ids": np.zeros((B, T), np.int32),
        "position_ids": np.tile(np.arange(T, dtype=np.int32), (B, 1)),
        "example_ids": mask_BT.astype(np.int32),
        "masked_positions": np.tile(np.arange(T - 1, dtype=np.int32), (B, 1)),
        "masked_ids": ids_BT[:, 1:].astype(np.int32),
        "masked_weights": weights,
    }


def test_hidden_states_attention_and_logits_are_those_of_transformers(family):
    _, model, wanted = family
    mask = wanted["attention_mask"]
    inputs = (wanted["input_ids"], wanted.get("token_type_ids"), mask)
    ours = model.outputs(*inputs, look_inside=True)
    real = mask.astype(bool)
    close(ours["hidden_states"][:, real], wanted["hidden_states"][:, real])
    close(ours["sequence_output"][real], wanted["last_hidden_state"][real])
    close(ours["mlm_logits"][real], wanted["LMHeadModel|logits"][real])
    for row in range(len(mask)):
        T = int(mask[row].sum())
        close(ours["attentions"][:, row, :, :T, :T], wanted["attentions"][:, row, :, :T, :T])


def test_loss_and_gradients_are_those_of_transformers(family):
    _, model, wanted = family
    labels = wanted["LMHeadModel|labels"]
    batch = causal_batch(wanted["input_ids"], wanted["attention_mask"])
    if "token_type_ids" in wanted:
        batch["type_ids"] = wanted["token_type_ids"].astype(np.int32)
    batch["masked_weights"] = (labels[:, 1:] != -100).astype(np.float32)
    task = Pretraining(pairs=False, objective="causal")
    module = Model(model.config, PretrainingHead(model.config, with_next_sentence=False))

    def loss(params):
        sums = task.sums(module.apply({"params": params}, batch), batch)
        return sums["causal"] / task.counts(batch)["causal"]

    with jax.default_matmul_precision("highest"):
        value, gradients = jax.value_and_grad(loss)(model.params)
    close(value, wanted["LMHeadModel|loss"])
    named = dict(from_params(jax.tree.map(np.asarray, gradients), model.config))
    compared = [name for name in wanted.files if name.startswith("grad|")]
    assert len(compared) >= 6
    for name in compared:
        short = name.removeprefix("grad|")
        own = next(ours for ours in named if ours == short or ours.endswith("." + short) or short.endswith("." + ours))
        close(named[own], wanted[name], 2e-5)


@pytest.mark.parametrize(("name", "heads"), [
    ("openai_gpt", {"ForSequenceClassification": "sequence_logits"}),
    ("gpt2", {"ForSequenceClassification": "sequence_logits", "ForTokenClassification": "token_logits",
              "ForQuestionAnswering": "start_logits"}),
])  # fmt: skip
def test_other_heads_read_what_those_of_transformers_read(name, heads, shared, tmp_path):
    """The classifier reads the last token that is not padding."""
    folder = shared / "golden2" / "families" / name
    wanted, base = np.load(folder / "outputs.npz"), safetensors.numpy.load_file(folder / "model.safetensors")
    mask = wanted["attention_mask"]
    for head, output in heads.items():
        extra = safetensors.numpy.load_file(folder / "heads" / f"{head}.safetensors")
        target = tmp_path / head
        target.mkdir()
        tensors = {f"transformer.{tensor}": value for tensor, value in base.items()} | extra
        safetensors.numpy.save_file(tensors, target / "model.safetensors")
        (target / "config.json").write_bytes((folder / "heads" / f"{head}.config.json").read_bytes())
        ours = bert.load(target).outputs(wanted["input_ids"], None, mask)[output]
        theirs = wanted[f"{head}|{'start_logits' if output == 'start_logits' else 'logits'}"]
        real = mask.astype(bool) if ours.shape[:2] == mask.shape else slice(None)
        close(ours[real], theirs[real])


def test_files_are_written_again_bit_for_bit(family, tmp_path):
    folder, model, _ = family
    written = bert.save(model, tmp_path / "again")
    before, after = (safetensors.numpy.load_file(f / "model.safetensors") for f in (folder / "causal_lm", written))
    assert before.keys() == after.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(value, after[name])
    ours, theirs = (json.loads((f / "config.json").read_text()) for f in (written, folder / "causal_lm"))
    assert ours["architectures"] == theirs["architectures"]
    for key in names.table(model.config).sizes.values():
        assert bert.load(written).config == model.config, key
    assert {key: ours[key] for key in model.config.to_json()} == {key: theirs[key] for key in model.config.to_json()}


@pytest.mark.parametrize(("config", "count"), [
    (GPTConfig(40478, hidden_size=768), 116_534_784),
    (GPT2Config(50257, max_position_embeddings=1024), 124_439_808),
])  # fmt: skip
def test_the_released_sizes_have_the_known_numbers_of_parameters(config, count):
    table = names.table(config)
    sizes = table.axis_sizes(config)
    shapes = [(config.num_layers if w.by_layer else 1, *w.shape(sizes)) for w in table.weights(("encoder", "mlm"))]
    assert sum(int(np.prod(shape)) for shape in shapes) == count


def test_a_state_sees_no_later_token(family):
    """Bit for bit, whatever follows it; but every earlier one."""
    _, model, wanted = family
    ids = wanted["input_ids"][:1].copy()
    before = model.outputs(ids)
    for place in (1, 7, 15):
        changed = ids.copy()
        changed[0, place] = (changed[0, place] + 1) % 100
        after = model.outputs(changed)
        for name in ("sequence_output", "mlm_logits"):
            np.testing.assert_array_equal(after[name][0, :place], before[name][0, :place])
            assert (np.abs(after[name][0, place:] - before[name][0, place:]).max(-1) > 0).all()


def test_packed_rows_equal_single_ones(family):
    _, model, wanted = family
    ids = wanted["input_ids"]
    batch = {"token_ids": np.zeros((1, 16), np.int32), "type_ids": np.zeros((1, 16), np.int32),
             "position_ids": np.zeros((1, 16), np.int32), "example_ids": np.zeros((1, 16), np.int32)}  # fmt: skip
    parts = [(0, 5), (1, 4), (2, 6)]
    start = 0
    for number, (row, count) in enumerate(parts, 1):
        at = slice(start, start + count)
        batch["token_ids"][0, at], batch["position_ids"][0, at] = ids[row, :count], np.arange(count)
        batch["example_ids"][0, at] = number
        start += count
    encoder = architectures.build(model.config)
    packed = encoder.apply({"params": model.params["encoder"]}, batch)["tokens"]
    start = 0
    for row, count in parts:
        alone = model.outputs(ids[row : row + 1, :count])["sequence_output"]
        np.testing.assert_allclose(packed[0, start : start + count], alone[0], atol=2e-6)
        start += count


def test_other_arithmetic_is_refused_by_the_key():
    values = {"model_type": "gpt2", "vocab_size": 9, "n_embd": 8, "n_layer": 1, "n_head": 2}
    for key, value in (("scale_attn_by_inverse_layer_idx", True), ("scale_attn_weights", False)):
        with pytest.raises(InputError, match=f"^c.json: {key} is {value}"):
            GPT2Config.from_json(values | {key: value}, source="c.json")
    with pytest.raises(InputError, match=r"c.json: n_embd 9 must be a multiple of n_head 2"):
        GPT2Config.from_json(values | {"n_embd": 9}, source="c.json")
    with pytest.raises(InputError, match=r"c.json: n_layer missing"):
        GPT2Config.from_json({key: value for key, value in values.items() if key != "n_layer"}, source="c.json")
    with pytest.raises(InputError, match=r"c.json: afn is 'gelus'.*gelu"):
        GPTConfig.from_json(values | {"afn": "gelus"}, source="c.json")


def test_an_encoder_is_pretrained_by_what_it_offers():
    assert architectures.objectives_of(BertConfig(9)) == ("mlm",)
    for config in (GPTConfig(9), GPT2Config(9), BertConfig(9, is_decoder=True)):
        architectures.check_objective(config, "causal")
        with pytest.raises(InputError, match=f"'mlm'.*{config.model_type!r}.*causal"):
            architectures.check_objective(config, "mlm")


def test_layers_above_have_the_greater_depth(family):
    _, model, _ = family
    module = Model(model.config, PretrainingHead(model.config, with_next_sentence=False))
    depths = {path.split("/")[1]: module.depth_of(path.split("/")) for path, _ in flatten(model.params)}
    assert depths["embeddings"] == 0
    assert list(depths["blocks"]) == [1, 2]
    assert depths.get("output_norm", 2) == 2
