"""Weights that are no plain BERT's are refused by the name of a tensor and by what it is, never loaded in part."""

import json

import numpy as np
import pytest

from bert.errors import InputError
from bert.interop import sources
from bert.interop.hugging_face import load_model_directory
from tests.bert.interop.every_head import assert_same_params
from tests.bert.interop.formats.bundle_writer import variables_of, write_checkpoint
from tests.bert.refusals import refused

QUERY = "bert.encoder.layer.0.attention.self.query"
BESIDE = {
    "LoRA": (f"{QUERY}.lora_A.default.weight", "merge_and_unload"),
    "LoRA of embeddings": ("bert.embeddings.word_embeddings.lora_embedding_B.default", "merge_and_unload"),
    "DoRA": (f"{QUERY}.lora_magnitude_vector.default.weight", "merge_and_unload"),
    "LoRA of the adapters library": (f"{QUERY}.loras.task.lora_A", "merge_and_unload"),
    "LoRA of a head": ("classifier.lora_B.default.weight", "merge_and_unload"),
    "IA3": ("bert.encoder.layer.1.output.dense.ia3_l.default", "merge_and_unload"),
    "VeRA": (f"{QUERY}.vera_lambda_b.default", "merge_and_unload"),
    "LoHa": (f"{QUERY}.hada_w1_a.default", "merge_and_unload"),
    "a head that was trained beside": ("classifier.modules_to_save.default.weight", "merge_and_unload"),
    "peft's whole model": ("base_model.model.classifier.original_module.weight", "merge_and_unload"),
    "bottleneck adapters": ("bert.encoder.layer.0.output.adapters.task.adapter_down.0.weight", "cannot be merged"),
    "a prefix": ("prefix_encoder.embedding.weight", "cannot be merged"),
    "a prompt": ("prompt_encoder.default.embedding.weight", "cannot be merged"),
    "8 bits": (f"{QUERY}.SCB", "quantized"),
    "4 bits": (f"{QUERY}.weight.quant_state.bitsandbytes__nf4", "quantized"),
    "8 bits of a float": (f"{QUERY}.weight_scale", "quantized"),
    "training for 8 bits": (f"{QUERY}.weight_fake_quant.scale", "quantized"),
    "relative positions": ("bert.encoder.layer.0.attention.self.distance_embedding.weight", "relative positions"),
    "relative bias": ("bert.encoder.relative_attention_bias.weight", "relative positions"),
    "rotary": ("bert.encoder.layer.0.attention.self.rotary_emb.inv_freq", "rotary positions"),
    "norms before": ("bert.encoder.layer.0.attention.ln.weight", "norms before"),
    "a last norm": ("bert.encoder.ln.bias", "norms before"),
    "decoder": ("bert.encoder.layer.0.crossattention.self.query.weight", "decoder"),
    "ELECTRA": ("embeddings_project.weight", "ELECTRA"),
    "ALBERT": ("bert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight", "ALBERT"),
    "Longformer": (f"{QUERY}_global.weight", "Longformer"),
    "anything in a layer": ("bert.encoder.layer.1.gate", "among the model's weights"),
    "anything in the encoder": ("bert.encoder.highway.0.weight", "among the model's weights"),
    "anything in the embeddings": ("bert.embeddings.language_embeddings.weight", "among the model's weights"),
    "anything in the pooler": ("bert.pooler.mask", "among the model's weights"),
    "anything in a head": ("cls.predictions.transform.scale", "among the model's weights"),
}


@pytest.mark.parametrize("spell", [str, lambda name: "module." + name, lambda name: name.removeprefix("bert.")])
@pytest.mark.parametrize("kind", BESIDE)
def test_what_changes_outputs_is_refused_by_name(tiny_tensors, write, kind, spell):
    """Beside weights that are whole."""
    name, words = BESIDE[kind]
    tensors = {spell(n): tensor for n, tensor in {**tiny_tensors, name: np.ones((4, 32), np.float32)}.items()}
    shown = spell(name).removeprefix("module.").removeprefix("bert.")
    with refused("model.safetensors", shown, words):
        load_model_directory(write(tensors))


def test_base_layers_of_an_adapter_are_not_called_missing(tiny_tensors, write):
    """As peft saves a model that is not merged, and under peft's own prefix."""
    for i, prefix in enumerate(("", "base_model.model.")):
        renamed = {prefix + name.replace("query.", "query.base_layer."): t for name, t in tiny_tensors.items()}
        with refused("query.base_layer.", "merge_and_unload"):
            load_model_directory(write(renamed, name=f"copy{i}"))


@pytest.mark.parametrize("file", ["adapter_config.json", "adapter_model.safetensors", "adapter_model.bin"])
@pytest.mark.parametrize("alone", [False, True])
def test_an_adapter_beside_the_weights_or_alone(tiny, tiny_tensors, write, file, alone):
    folder = write(tiny_tensors)
    (folder / file).write_text("{}")
    if alone:
        (folder / "config.json").unlink()
        (folder / "model.safetensors").unlink()
    with refused(file, "merge_and_unload", "adapter_*"):
        sources.read(folder)
    (folder / file).unlink()
    if not alone:
        assert_same_params(sources.read(folder).params, tiny.params)


@pytest.mark.parametrize("name", ["bert.encoder.layer.0.total_ops", f"{QUERY}.total_params", "total_ops"])
def test_counters_of_a_profiler_are_left_out(tiny, tiny_tensors, write, name):
    found = load_model_directory(write({**tiny_tensors, name: np.ones(1, np.float64)}))
    assert_same_params(found.params, tiny.params)
    assert list(found.report.ignored) == [name]


def test_checkpoints_of_google_are_looked_at_alike(tiny, tiny_directory, tmp_path):
    """Memory of any optimizer stands behind a weight's name; what stands beside it is another model's."""
    prefix = tmp_path / "bert_model.ckpt"
    (tmp_path / "bert_config.json").write_bytes((tiny_directory / "config.json").read_bytes())
    weights = variables_of(tiny)
    kernel, one = "bert/encoder/layer_0/attention/self/query/kernel", np.ones(3, np.float32)
    write_checkpoint(prefix, {**weights, f"{kernel}/new_optimizer_v": one, "extra/weights": one})
    found = sources.read(tmp_path)
    assert_same_params(found.params, tiny.params)
    assert sorted(found.report.ignored) == [f"{kernel}/new_optimizer_v", "extra/weights"]
    for name, words in {
        "bert/encoder/embedding_hidden_mapping_in/kernel": "ALBERT",
        "bert/encoder/layer_0/attention/self/query/gate": "among the model's weights",
    }.items():
        write_checkpoint(prefix, {**weights, name: one})
        with refused(name, words):
            sources.read(tmp_path)
    write_checkpoint(prefix, {name.replace("bert/", "electra/", 1): value for name, value in weights.items()})
    with pytest.raises(InputError, match="under 'electra'"):
        sources.read(tmp_path)


ROBERTA_TENSORS = {"lm_head.bias": np.ones(128, np.float32), "classifier.out_proj.bias": np.ones(2, np.float32)}


def bare(tensors, positions):
    """Without heads and prefix, as a bare model is saved, with another table of positions."""
    kept = {n.removeprefix("bert."): t for n, t in tensors.items() if n.startswith("bert.")}
    return {**kept, "embeddings.position_embeddings.weight": positions}


def test_a_roberta_whose_config_says_nothing_is_told_by_its_marks(tiny_tensors, write):
    """Positions that count from the padding's id on give other numbers; the way out is to call the model a BERT."""
    positions = np.ones((66, 32), np.float32)
    without = {"model_type": None, "architectures": None}
    plain = bare(tiny_tensors, np.ones((60, 32), np.float32))
    zero = bare(tiny_tensors, np.concatenate([positions[:1], 0 * positions[:1], positions[:58]]))
    marked = {
        "66 positions": (bare(tiny_tensors, positions), {"max_position_embeddings": 66}),
        "pad_token_id": (plain, {"max_position_embeddings": 60, "pad_token_id": 1}),
        "row 1 of bert.embeddings.position_embeddings.weight is zero": (zero, {"max_position_embeddings": 60}),
        **{name: (plain | {name: t}, {"max_position_embeddings": 60}) for name, t in ROBERTA_TENSORS.items()},
    }
    for i, (mark, (tensors, changes)) in enumerate(marked.items()):
        with refused(mark, "RoBERTa", '"model_type": "bert"', "config.json"):
            load_model_directory(write(tensors, name=f"a{i}", **changes, **without))
        for says in ({"model_type": "bert"}, {"architectures": ["BertModel"]}):
            loaded = load_model_directory(write(tensors, name=f"b{i}{[*says]}", **changes, **{**without, **says}))
            assert loaded.parts == ("encoder", "pooler")
            assert "RoBERTa" in str(loaded.report.notes), "it is noted"
    assert load_model_directory(write(plain, name="plain", max_position_embeddings=60, **without)).parts[0] == "encoder"


FAMILIES = ["albert", "camembert", "deberta_v3", "distilbert", "electra_discriminator", "electra_generator", "eurobert"]
FAMILIES += ["modernbert", "mpnet", "nomic_bert", "roberta", "xlm_roberta"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("silent", [(), ("model_type",), ("model_type", "architectures")], ids=len)
def test_files_of_other_families_are_refused(shared, tmp_path, family, silent):
    """By the type, by the class where there is no type, and without both by the tensors or the sizes."""
    values = json.loads((shared / "golden2" / "families" / family / "config.json").read_text())
    values = {key: value for key, value in values.items() if key not in silent}
    (tmp_path / "config.json").write_text(json.dumps(values))
    (tmp_path / "model.safetensors").symlink_to(shared / "golden2" / "families" / family / "model.safetensors")
    with pytest.raises(InputError) as caught:
        load_model_directory(tmp_path)
    if len(silent) < 2:
        assert ("architectures names" if silent else "model_type is") in str(caught.value)
