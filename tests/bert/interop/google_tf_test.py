"""Google's TensorFlow 1 checkpoints: the reference's numbers, optimizer slots left out, faults named."""

import json
import re
import shutil

import numpy as np
import pytest

import bert
from bert.errors import InputError
from bert.interop import google_tf, sources
from bert.interop.hugging_face import load_model_directory
from tests.bert.interop.every_head import assert_same_params
from tests.bert.interop.formats.bundle_writer import MAGIC, variables_of, write_checkpoint
from tests.bert.refusals import refused

BARE_CONFIG = {
    **{"vocab_size": 128, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "hidden_act": "gelu"},
    **{"intermediate_size": 64, "max_position_embeddings": 64, "type_vocab_size": 2, "initializer_range": 0.02},
    **{"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1},
}


@pytest.fixture
def folder(tiny_directory, tmp_path):
    """A folder with bert_config.json and vocab.txt, for a checkpoint to be put in."""
    out = tmp_path / "google"
    out.mkdir()
    (out / "bert_config.json").write_text(json.dumps(BARE_CONFIG))
    shutil.copy(tiny_directory / "vocab.txt", out)
    return out


def test_a_checkpoint_that_tensorflow_wrote_gives_the_reference_model_bit_by_bit(golden, tiny):
    """In two shards, under Google's names; kernels are not turned twice."""
    found = google_tf.load_checkpoint(google_tf.find(golden / "tiny_bert_tf1"))
    assert_same_params(found.params, tiny.params)
    assert found.config == tiny.config
    assert (len(found.report.used), found.report.ignored, found.report.notes) == (46, {}, [])


@pytest.mark.parametrize("layout", ["as released", "snappy"])
def test_each_layout_gives_the_reference_model_bit_by_bit(shared, tiny, folder, layout):
    """Written by TensorFlow: with slots and a step, a compressed index."""
    released = shared / "golden" / "tf1" / "tiny_bert_tf1"
    for path in released.glob("bert_model.ckpt.*"):
        shutil.copyfile(path, folder / path.name)
    if layout == "snappy":
        shutil.copyfile(released / "bert_model_snappy.ckpt.index", folder / "bert_model.ckpt.index")
    found = google_tf.load_checkpoint(google_tf.find(folder))
    assert_same_params(found.params, tiny.params)
    assert found.config == tiny.config
    assert (len(found.report.used), len(found.report.missing), len(found.report.ignored)) == (46, 0, 93)
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
    [
        ("tiny_seqcls", ("pooler", "sequence_classifier")),
        ("tiny_tokcls", ("token_classifier",)),
        ("tiny_qa", ("span",)),
    ],
)
def test_what_googles_fine_tuning_leaves(golden, folder, name, parts):
    """Its classifier (without a pooler one of tokens) and its answer spans, under its names, are these heads."""
    want = load_model_directory(golden / name)
    write_checkpoint(folder / "model.ckpt-343", variables_of(want))
    found = bert.load(folder)
    assert set(found.parts) == {"encoder", *parts}
    assert_same_params(found.params, want.params)
    assert len(found.labels) == len(want.labels)
    assert len(found.report.notes) == (name == "tiny_seqcls")


def test_a_classifier_beside_a_pooler_is_one_of_sequences_unless_the_configuration_says_otherwise(golden, folder):
    """Google's code saves a pooler whatever it trains; how it was taken is in the report, and so is the way out."""
    write_checkpoint(folder / "model.ckpt-343", variables_of(load_model_directory(golden / "tiny_seqcls")))
    taken = bert.load(folder)
    assert "sequence_classifier" in taken.parts
    (note,) = taken.report.notes
    assert note in str(taken.report)
    key = re.search(r'write ("architectures": \[.*\]) into bert_config.json', note)[1]
    (folder / "bert_config.json").write_text(json.dumps(BARE_CONFIG | json.loads(f"{{{key}}}")))
    told = bert.load(folder)
    assert set(told.parts) == {"encoder", "pooler", "token_classifier"}
    assert told.report.notes == []


def test_a_part_to_be_made_new_may_be_there_in_pieces(folder, tiny):
    lacks = "cls/predictions/output_bias"
    write_checkpoint(folder / "bert_model.ckpt", {n: v for n, v in variables_of(tiny).items() if n != lacks})
    with pytest.raises(InputError, match=f"missing {lacks}"):
        sources.read(folder)
    found = sources.read(folder, fresh=("mlm",))
    assert "mlm" in found.parts
    assert found.report.fresh == ["mlm"]
    assert len(found.report.replaced) == 4
    assert found.report.replaced["cls/predictions/transform/dense/kernel"] == "a piece of mlm, which is made new"


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


def test_an_object_checkpoint_of_tensorflow_2_is_called_by_its_name(folder):
    graph = {"_CHECKPOINTABLE_OBJECT_GRAPH": np.uint8([1]), "layer/.ATTRIBUTES/VARIABLE_VALUE": np.float32([1])}
    write_checkpoint(folder / "bert_model.ckpt", graph)
    with refused("bert_model.ckpt", "TensorFlow 2", "TensorFlow 1"):
        bert.load(folder)


def test_what_is_missing_or_does_not_fit_is_named(folder, tiny):
    """A variable, one of another shape, a layer too many, half a pooler, the configuration."""
    prefix, whole = folder / "bert_model.ckpt", variables_of(tiny)
    key = "bert/encoder/layer_1/attention/self/key/kernel"

    def check(variables, *words):
        write_checkpoint(prefix, variables)
        with refused(*words):
            bert.load(folder)

    check({name: value for name, value in whole.items() if name != key}, f"missing {key}")
    check(whole | {key: np.zeros((32, 31), np.float32)}, key, "[32, 31]")
    check(whole | {key: np.full((32, 32), np.nan, np.float32)}, key, "nan at [0, 0]")
    for layer in ("_2", "_7"):
        check(whole | {key.replace("_1", layer): whole[key]}, "bert_config.json", "num_hidden_layers 2")
    check({n: v for n, v in whole.items() if n != "bert/pooler/dense/bias"}, "missing bert/pooler/dense/bias")
    (folder / "bert_config.json").unlink()
    check(whole, "bert_config.json: no such file")


def test_extras_in_googles_config_are_left_alone(folder, tiny):
    """Keys of the Chinese and multilingual releases say nothing about an encoder."""
    extras = {"directionality": "bidi", "pooler_fc_size": 768, "pooler_type": "first_token_transform"}
    (folder / "bert_config.json").write_text(json.dumps(BARE_CONFIG | extras))
    write_checkpoint(folder / "bert_model.ckpt", variables_of(tiny))
    assert bert.load(folder).config == tiny.config


# Which of a folder's files are the checkpoint: the newest by name, else the only one, else a refusal.


def test_what_is_no_checkpoint_is_not_taken_for_one(folder, tmp_path):
    """An index of another program; one of ours without its data is told so."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "notes.index").write_text("an index of my notes")
    assert google_tf.find(run) is None
    (folder / "notes.index").write_text("an index, and beside it a configuration")
    with refused("notes.index", "checkpoint"):
        bert.load(folder)


def test_the_older_format_is_called_by_its_name(folder):
    """One file, without an index: given itself, or its folder."""
    (folder / "bert_model.ckpt").write_bytes(b"table" * 9 + MAGIC)
    for path in (folder, folder / "bert_model.ckpt"):
        with refused("bert_model.ckpt", "V1", "SaverDef.V2"):
            bert.load(path)


def test_a_mistyped_prefix_is_answered_with_those_that_are_there(folder, tiny):
    write_checkpoint(folder / "bert_model.ckpt", variables_of(tiny))
    with refused("bert_model.cktp.index", f"such as {folder}/bert_model.ckpt"):
        bert.load(folder / "bert_model.cktp")


def test_which_of_several_checkpoints(folder, tiny, caplog):
    """The one that TensorFlow calls the newest, wherever it was written; a prefix or a file of it; else a question."""
    caplog.set_level("WARNING")
    for step in (10, 20):
        changed = variables_of(tiny) | {"cls/predictions/output_bias": np.full(128, step, np.float32)}
        write_checkpoint(folder / f"model.ckpt-{step}", changed)

    def loaded(path):
        return bert.load(path).params["head"]["mlm"]["bias"][0]

    with refused("several", "(model.ckpt-10, model.ckpt-20)", f"{folder}/model.ckpt-10"):
        bert.load(folder)
    assert loaded(folder / "model.ckpt-10") == 10
    assert loaded(folder / "model.ckpt-20.index") == 20
    assert loaded(folder / "model.ckpt-10.data-00000-of-00001") == 10
    (folder / "checkpoint").write_text(
        'model_checkpoint_path: "/home/she/out/model.ckpt-20"\nall_model_checkpoint_paths: "model.ckpt-10"\n'
    )
    assert loaded(folder) == 20
    write_checkpoint(folder / "bert_model.ckpt", variables_of(tiny))
    assert loaded(folder) == 20
    assert caplog.text == ""
    for text, said in (
        (
            'model_checkpoint_path: "/there/model.ckpt-30"\n',
            "checkpoint: names /there/model.ckpt-30, which is not there",
        ),
        ("\0\1", "checkpoint: names nothing; it is ignored"),
    ):
        (folder / "checkpoint").write_text(text)
        with refused("several", "(bert_model.ckpt, model.ckpt-10, model.ckpt-20)"):
            bert.load(folder)
        assert said in caplog.text


def test_the_only_checkpoint_is_taken_though_another_is_named(folder, tiny, caplog):
    write_checkpoint(folder / "bert_model.ckpt", variables_of(tiny))
    (folder / "checkpoint").write_text('model_checkpoint_path: "../../etc/passwd"\n')
    assert bert.load(folder).report.source == str(folder / "bert_model.ckpt")
    assert "checkpoint: names ../../etc/passwd, which is not there; it is ignored" in caplog.text


@pytest.mark.parametrize("name", ["bert_model.ckpt.data-00000-of-00001", "model-7.data-00000-of-00001", "x.ckpt", None])
def test_a_folder_of_google_without_a_whole_checkpoint_is_told_so(folder, name):
    """And not that it lacks what a directory of Hugging Face has."""
    if name:
        (folder / name).write_bytes(b"data")
    text = f"{name} has no {name.split('.data')[0]}.index beside it" if name else "holds no checkpoint"
    with refused("google", text, "PREFIX.index"):
        bert.load(folder)


def test_an_index_without_its_data_is_no_second_checkpoint(shared):
    """The reference folder holds a compressed copy of the index beside the checkpoint: the checkpoint is meant."""
    folder = shared / "golden" / "tf1" / "tiny_bert_tf1"
    assert google_tf.find(folder) == folder / "bert_model.ckpt"
