"""Google's TensorFlow 1 checkpoints: the reference's numbers, optimizer slots left out, faults named."""

import json
import shutil

import numpy as np
import pytest

import bert
from bert.errors import InputError
from bert.interop import google_tf, parameters
from bert.interop.hugging_face import load_model_directory
from tests.bert.interop.bundle_writer import write_checkpoint

BARE_CONFIG = {
    **{"vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_act": "gelu"},
    **{"intermediate_size": 64, "max_position_embeddings": 64, "type_vocab_size": 2, "initializer_range": 0.02},
    **{"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1},
}


def assert_same_params(got, want):
    got, want = dict(parameters.flatten(got)), dict(parameters.flatten(want))
    assert got.keys() == want.keys()
    for path, value in want.items():
        np.testing.assert_array_equal(got[path], value, err_msg=path)


def variables_of(found):
    return dict(parameters.from_params(found.params, found.config, format="google"))


@pytest.fixture
def folder(tiny_directory, tmp_path):
    """A folder with bert_config.json and vocab.txt, for a checkpoint to be put in."""
    out = tmp_path / "google"
    out.mkdir()
    (out / "bert_config.json").write_text(json.dumps(BARE_CONFIG))
    shutil.copy(tiny_directory / "vocab.txt", out)
    return out


@pytest.fixture(scope="module")
def tiny(tiny_directory):
    return load_model_directory(tiny_directory)


@pytest.mark.parametrize("layout", ["as released", "snappy", "two shards"])
def test_each_layout_gives_the_reference_model_bit_by_bit(shared, tiny, folder, layout):
    """Written by TensorFlow: with slots and a step, a compressed index, two shards; kernels not turned twice."""
    released = shared / "golden" / "tf1" / ("tiny_bert_tf1_two_shards" if layout == "two shards" else "tiny_bert_tf1")
    for path in released.glob("bert_model.ckpt.*"):
        shutil.copyfile(path, folder / path.name)
    if layout == "snappy":
        shutil.copyfile(released / "bert_model_snappy.ckpt.index", folder / "bert_model.ckpt.index")
    found = google_tf.load_checkpoint(google_tf.find(folder))
    assert_same_params(found.params, tiny.params)
    assert found.config == tiny.config
    slots = 0 if layout == "two shards" else 92
    assert (len(found.report.used), len(found.report.missing)) == (46, 0)
    assert len(found.report.ignored) == slots + (slots > 0)
    if slots:
        assert "ignored bert/embeddings/LayerNorm/beta/adam_m and 91 more: the optimizer's memory" in str(found.report)
        assert found.report.ignored["global_step"] == "the trainer's counter"


def test_a_checkpoint_of_another_trainer(shared):
    """A real pretraining checkpoint of four hidden units: outputs of its conversion by others within 1e-5."""
    fixture = shared / "golden" / "tf1" / "keras_bert_fixture"
    model = bert.load(fixture)
    with np.load(fixture / "expected.npz") as want:
        got = model.outputs(want["input_ids"], want["token_type_ids"], want["attention_mask"])
        for name in ("sequence_output", "pooled_output", "mlm_logits", "nsp_logits"):
            np.testing.assert_allclose(got[name], want[name], rtol=0, atol=1e-5, err_msg=name)


def test_words_are_split_as_google_does(folder, tiny):
    """Up to 200 characters; no upper-case entry, so texts are lower-cased; inputs end at the positions."""
    write_checkpoint(folder / "bert_model.ckpt", variables_of(tiny))
    tokenizer = bert.load(folder).tokenizer
    assert tokenizer.lower_case
    assert tokenizer.model_max_length == 64
    assert tokenizer.unk_id not in tokenizer.encode("play" + "s" * 140).ids
    assert tokenizer.encode("play" + "s" * 200).ids == [tokenizer.unk_id]


@pytest.mark.parametrize(
    ("name", "parts"),
    [("tiny_seqcls", ("pooler", "sequence_classifier")), ("tiny_qa", ("span",))],
)
def test_what_googles_fine_tuning_leaves(golden, folder, name, parts):
    """The variables of its classifier and of its answer spans, under its names, are these heads."""
    want = load_model_directory(golden / name)
    write_checkpoint(folder / "model.ckpt-343", variables_of(want))
    found = bert.load(folder)
    assert set(found.parts) == {"encoder", *parts}
    assert_same_params(found.params, want.params)
    assert len(found.labels) == (3 if name == "tiny_seqcls" else 0)


def test_slots_and_counters_are_ignored_and_other_variables_told(folder, tiny):
    variables = variables_of(tiny)
    word = "bert/embeddings/word_embeddings"
    slots = {f"{word}/{slot}": variables[word] for slot in ("adam_m", "adam_v", "Adam", "Adam_1")}
    counters = {name: np.int64(3) for name in ("global_step", "beta1_power", "beta2_power")}
    other = {"my/adam_model/kernel": np.float32([1])}
    write_checkpoint(folder / "bert_model.ckpt", variables | slots | counters | other)
    report = google_tf.load_checkpoint(folder / "bert_model.ckpt").report
    reasons = {name: why for name, why in report.ignored.items()}
    assert {reasons[name] for name in slots} == {"the optimizer's memory"}
    assert {reasons[name] for name in counters} == {"the trainer's counter"}
    assert reasons["my/adam_model/kernel"].startswith("no part of the encoder")


def test_which_of_several_checkpoints(folder, tiny):
    """The one that TensorFlow calls the newest, wherever it was written; a prefix or a file of it; else a question."""
    for step in (10, 20):
        changed = variables_of(tiny) | {"cls/predictions/output_bias": np.full(128, step, np.float32)}
        write_checkpoint(folder / f"model.ckpt-{step}", changed)

    def loaded(path):
        return bert.load(path).params["head"]["mlm"]["bias"][0]

    with pytest.raises(InputError, match=r"holds several checkpoints \(model\.ckpt-10, model\.ckpt-20\); name one, as"):
        bert.load(folder)
    assert loaded(folder / "model.ckpt-10") == 10
    assert loaded(folder / "model.ckpt-20.index") == 20
    assert loaded(folder / "model.ckpt-10.data-00000-of-00001") == 10
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "/home/she/out/model.ckpt-20"\nall_model_checkpoint_paths: "model.ckpt-10"\n'
    )
    assert loaded(folder) == 20
    write_checkpoint(folder / "bert_model.ckpt", variables_of(tiny))
    assert loaded(folder) == tiny.params["head"]["mlm"]["bias"][0]


def test_an_object_checkpoint_of_tensorflow_2_is_called_by_its_name(folder):
    graph = {"_CHECKPOINTABLE_OBJECT_GRAPH": np.uint8([1]), "layer/.ATTRIBUTES/VARIABLE_VALUE": np.float32([1])}
    write_checkpoint(folder / "bert_model.ckpt", graph)
    with pytest.raises(
        InputError, match=r"is a TensorFlow 2 checkpoint of objects \(Keras\); only Google's TensorFlow 1"
    ):
        bert.load(folder)


def test_what_is_missing_or_does_not_fit_is_named(folder, tiny):
    """A variable, one of another shape, a layer too many, half a pooler, the configuration."""
    prefix, whole = folder / "bert_model.ckpt", variables_of(tiny)
    key = "bert/encoder/layer_1/attention/self/key/kernel"

    def refused(variables, reason):
        write_checkpoint(prefix, variables)
        with pytest.raises(InputError, match=reason):
            bert.load(folder)

    refused({name: value for name, value in whole.items() if name != key}, f"missing {key}")
    refused(whole | {key: np.zeros((32, 31), np.float32)}, rf"{key} has shape \[32, 31\], the configuration asks")
    refused(whole | {key: np.full((32, 32), np.nan, np.float32)}, rf"{key} holds nan at \[0, 0\]")
    refused(whole | {key.replace("_1", "_2"): whole[key]}, "but bert_config.json says num_hidden_layers 2")
    refused({n: v for n, v in whole.items() if n != "bert/pooler/dense/bias"}, "missing bert/pooler/dense/bias")
    (folder / "bert_config.json").unlink()
    refused(whole, r"bert_config\.json: no such file")


def test_extras_in_googles_config_are_left_alone(folder, tiny):
    """Keys of the Chinese and multilingual releases say nothing about an encoder."""
    extras = {"directionality": "bidi", "pooler_fc_size": 768, "pooler_type": "first_token_transform"}
    (folder / "bert_config.json").write_text(json.dumps(BARE_CONFIG | extras))
    write_checkpoint(folder / "bert_model.ckpt", variables_of(tiny))
    assert bert.load(folder).config == tiny.config
