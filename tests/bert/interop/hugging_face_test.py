"""Reading model directories: every spelling gives the same weights, every fault is refused by name."""

import json
import shutil

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from bert.errors import InputError
from bert.interop import parameters
from bert.interop.hugging_face import load_model_directory
from bert.interop.report import Report

TABLE = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"
NORM = "bert.encoder.layer.1.output.LayerNorm.weight"


def assert_same_params(got, want):
    got, want = dict(parameters.flatten(got)), dict(parameters.flatten(want))
    assert got.keys() == want.keys()
    for path, value in want.items():
        assert got[path].dtype == np.float32
        np.testing.assert_array_equal(got[path], value, err_msg=path)


@pytest.fixture(scope="module")
def tiny(tiny_directory):
    return load_model_directory(tiny_directory)


def without_bert(name):
    return name.removeprefix("bert.")


NORM_SPELLINGS = {
    "gamma and beta": ("gamma", "beta"),
    "scale and bias": ("scale", "bias"),
    "weight and bias": ("weight", "bias"),
}


@pytest.mark.parametrize("spelling", NORM_SPELLINGS)
def test_layer_norms_under_each_of_their_names(tiny, tiny_tensors, write, spelling):
    weight, bias = NORM_SPELLINGS[spelling]
    renamed = {
        n.replace("LayerNorm.weight", f"LayerNorm.{weight}").replace("LayerNorm.bias", f"LayerNorm.{bias}"): tensor
        for n, tensor in tiny_tensors.items()
    }
    found = load_model_directory(write(renamed))
    assert_same_params(found.params, tiny.params)
    assert sorted(found.report.used) == sorted(renamed), "the report speaks in the file's own names"


@pytest.mark.parametrize("prefix", ["", "module.", "model.", "module.model.", None])
@pytest.mark.parametrize("buffers", [False, True])
def test_prefixes_and_buffers(tiny, tiny_tensors, write, prefix, buffers):
    """With and without "bert.", with wrappers in front, with and without buffers: the same weights, all reported."""
    spell = without_bert if prefix is None else lambda name: prefix + name
    tensors = {spell(name): tensor for name, tensor in tiny_tensors.items()}
    extra = [spell(f"bert.embeddings.{name}") for name in ("position_ids", "token_type_ids")] if buffers else []
    tensors |= {name: np.arange(64)[None] for name in extra}
    found = load_model_directory(write(tensors))
    assert_same_params(found.params, tiny.params)
    assert (len(found.report.used), sorted(found.report.ignored), found.report.missing) == (46, extra, [])


def test_a_layer_norm_that_is_absent_is_refused_by_name(tiny_tensors, write):
    tensors = {name: tensor for name, tensor in tiny_tensors.items() if name != NORM}
    with pytest.raises(InputError, match=f"missing {NORM}"):
        load_model_directory(write(tensors))


def test_gamma_outside_a_layer_norm_keeps_its_name(tiny, tiny_tensors, write):
    """A scale that another model has beside its kernel is no weight of ours: reported as it is, never taken for one."""
    gamma = "bert.encoder.layer.0.output.dense.gamma"
    found = load_model_directory(write({**tiny_tensors, gamma: np.ones(32, np.float32)}))
    assert_same_params(found.params, tiny.params)
    assert list(found.report.ignored) == [gamma]
    kernel = gamma.replace("gamma", "weight")
    renamed = {gamma if name == kernel else name: tensor for name, tensor in tiny_tensors.items()}
    with pytest.raises(InputError, match=f"missing {kernel}"):
        load_model_directory(write(renamed, name="renamed"))


def test_the_tied_output_layer_in_all_its_forms(tiny, tiny_tensors, write):
    """Absent, an equal copy, an alias in the metadata either way round, the bias under either name or both."""
    rest = {name: tensor for name, tensor in tiny_tensors.items() if name not in (TABLE, "cls.predictions.bias")}
    table, bias = tiny_tensors[TABLE], tiny_tensors["cls.predictions.bias"]
    second = "cls.predictions.decoder.bias"
    forms = [
        ({TABLE: table, DECODER: table, "cls.predictions.bias": bias}, None),
        ({TABLE: table, "cls.predictions.bias": bias}, {"format": "pt", DECODER: TABLE}),
        ({DECODER: table, "cls.predictions.bias": bias}, {"format": "pt", TABLE: DECODER}),
        ({TABLE: table, second: bias}, None),
        ({TABLE: table, second: bias, "cls.predictions.bias": bias}, {"format": "pt"}),
    ]
    for i, (tensors, metadata) in enumerate(forms):
        found = load_model_directory(write(rest | tensors, name=f"form{i}", metadata=metadata))
        assert_same_params(found.params, tiny.params)


def test_an_output_layer_that_is_not_tied_is_refused(tiny_tensors, write):
    """A decoder matrix or a second bias with values of its own would be lost without a word."""
    other = tiny_tensors[TABLE].copy()
    other[5, 3] += 1e-3
    with pytest.raises(InputError, match=f"{DECODER} differs from {TABLE}"):
        load_model_directory(write({**tiny_tensors, DECODER: other}))
    bias = "cls.predictions.decoder.bias"
    with pytest.raises(InputError, match=f"{bias} differs from cls.predictions.bias"):
        load_model_directory(write({**tiny_tensors, bias: np.ones(128, np.float32)}, name="bias"))


def test_two_tensors_for_one_parameter(tiny, tiny_tensors, write):
    """Equal copies are one parameter; different ones are refused, both named."""
    twin = NORM.replace("weight", "gamma")
    found = load_model_directory(write({**tiny_tensors, twin: tiny_tensors[NORM]}))
    assert_same_params(found.params, tiny.params)
    with pytest.raises(InputError, match="are one parameter") as caught:
        load_model_directory(write({**tiny_tensors, twin: tiny_tensors[NORM] + 1}, name="other"))
    assert NORM in str(caught.value)
    assert twin in str(caught.value)


def test_heads_of_other_tasks_are_reported(tiny_tensors, write):
    found = load_model_directory(write({**tiny_tensors, "cls.species.weight": np.ones((2, 32), np.float32)}))
    assert list(found.report.ignored) == ["cls.species.weight"]
    assert "ignored cls.species.weight: no part of the encoder" in str(found.report)


@pytest.mark.parametrize("prefix", ["roberta", "electra", "distilbert", "question_encoder.bert_model"])
def test_weights_of_other_models_are_refused_by_their_prefix(tiny_tensors, write, prefix):
    """Nothing is taken from a model of another kind, whatever its config.json says or does not say."""
    tensors = {name.replace("bert.", f"{prefix}.", 1): tensor for name, tensor in tiny_tensors.items()}
    with pytest.raises(InputError, match=f"the weights stand under '{prefix}' .* only BERT's"):
        load_model_directory(write(tensors))


HEADS = {
    "tiny_seqcls": ("pooler", "sequence_classifier"),
    "tiny_regression": ("pooler", "sequence_classifier"),
    "tiny_tokcls": ("token_classifier",),
    "tiny_qa": ("span",),
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("told", [True, False])
def test_which_head_a_classifier_is(golden, write, name, told):
    """As config.json says; where it says nothing, a pooler makes it one of sequences."""
    tensors = safetensors.numpy.load_file(golden / name / "model.safetensors")
    found = load_model_directory(write(tensors, base=name, **({} if told else {"architectures": None})))
    assert sorted(found.parts) == sorted(("encoder", *HEADS[name]))
    assert len(found.report.used) == len(tensors)
    assert (found.report.ignored, found.report.missing) == ({}, [])


def test_a_classifier_of_sequences_needs_its_pooler(golden, write):
    tensors = safetensors.numpy.load_file(golden / "tiny_seqcls" / "model.safetensors")
    del tensors["bert.pooler.dense.weight"], tensors["bert.pooler.dense.bias"]
    with pytest.raises(InputError, match=r"missing bert\.pooler\.dense\.weight, bert\.pooler\.dense\.bias"):
        load_model_directory(write(tensors, base="tiny_seqcls"))


def test_a_classifier_of_choices_is_not_taken_for_one_of_sequences(golden, write):
    tensors = safetensors.numpy.load_file(golden / "tiny_regression" / "model.safetensors")
    found = load_model_directory(write(tensors, base="tiny_regression", architectures=["BertForMultipleChoice"]))
    assert found.parts == ("encoder", "pooler")
    assert sorted(found.report.ignored) == ["classifier.bias", "classifier.weight"]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_precisions_become_float32(tiny, tiny_tensors, write, dtype):
    found = load_model_directory(write({name: tensor.astype(dtype) for name, tensor in tiny_tensors.items()}))
    want = {path: value.astype(dtype).astype(np.float32) for path, value in parameters.flatten(tiny.params)}
    got = dict(parameters.flatten(found.params))
    for path, value in want.items():
        assert got[path].dtype == np.float32
        np.testing.assert_array_equal(got[path], value, err_msg=path)


@pytest.mark.parametrize(("dtype", "value"), [(np.float32, np.nan), (np.float16, np.inf), (np.float64, 1e300)])
def test_a_weight_that_is_not_finite_is_refused_by_name(tiny_tensors, write, dtype, value):
    kernel = "bert.encoder.layer.1.attention.self.key.weight"
    spoilt = tiny_tensors[kernel].astype(dtype)
    spoilt[3, 7] = value
    with pytest.raises(InputError, match=rf"{kernel} holds (nan|inf) at \[3, 7\]; a weight must be finite"):
        load_model_directory(write({**tiny_tensors, kernel: spoilt}))


def test_a_weight_of_another_shape_is_refused_with_both_shapes(tiny_tensors, write):
    name = "bert.encoder.layer.0.intermediate.dense.weight"
    with pytest.raises(InputError, match=rf"{name} has shape \[32, 64\], the configuration asks for \[64, 32\]"):
        load_model_directory(write({**tiny_tensors, name: np.ascontiguousarray(tiny_tensors[name].T)}))
    with pytest.raises(InputError, match=f"{name} holds int64; a weight must be float32, float16 or bfloat16"):
        load_model_directory(write({**tiny_tensors, name: tiny_tensors[name].astype(np.int64)}, name="whole"))


def test_another_number_of_layers_is_refused(tiny_tensors, write):
    """More layers in the file than in config.json would be dropped in silence; fewer are missing."""
    with pytest.raises(InputError, match=r"layer\.1\..* but config.json says num_hidden_layers 1"):
        load_model_directory(write(tiny_tensors, num_hidden_layers=1))
    with pytest.raises(InputError, match=r"missing bert\.encoder\.layer\.2\.attention\.self\.query\.weight"):
        load_model_directory(write(tiny_tensors, name="more", num_hidden_layers=3))


def test_a_vocabulary_larger_than_the_model_is_refused_before_any_weight_is_read(tiny_directory, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_directory, folder)
    (folder / "model.safetensors").write_bytes(b"never read")
    with (folder / "vocab.txt").open("a") as file:
        file.write("two\nmore\n")
    with pytest.raises(InputError, match="the vocabulary has 130 entries, the model 128 rows"):
        load_model_directory(folder)


def test_a_vocabulary_smaller_than_the_model_gives_one_notice(tiny_directory, tmp_path, caplog):
    folder = tmp_path / "model"
    shutil.copytree(tiny_directory, folder)
    entries = (folder / "vocab.txt").read_text().split("\n")[:126]
    (folder / "vocab.txt").write_text("\n".join(entries))
    caplog.set_level("INFO", logger="absl")
    assert load_model_directory(folder).tokenizer.vocab_size == 126
    notices = [message for message in caplog.messages if "126 entries" in message]
    assert len(notices) == 1
    assert "the last 2 rows are unused and never predicted" in notices[0]


def test_upper_case_entries_and_no_settings_mean_a_cased_model(tiny_directory, tmp_path):
    """Only a vocabulary beside the weights: letter case follows from its entries, not from a default."""
    folder = tmp_path / "model"
    shutil.copytree(tiny_directory, folder)
    (folder / "tokenizer_config.json").unlink()
    entries = (folder / "vocab.txt").read_text().replace("paris", "Paris").replace("france", "France")
    (folder / "vocab.txt").write_text(entries)
    tokenizer = load_model_directory(folder).tokenizer
    assert not tokenizer.lower_case
    assert [tokenizer.vocab[i] for i in tokenizer.encode("Paris").ids] == ["Paris"]


def test_files_that_are_absent_or_broken(tiny_directory, tmp_path):
    """Each with its path and what was found instead."""
    with pytest.raises(InputError, match="nothing: no such directory"):
        load_model_directory(tmp_path / "nothing")
    folder = tmp_path / "model"
    shutil.copytree(tiny_directory, folder)
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:-100])
    with pytest.raises(InputError, match=r"model.safetensors: cannot be read .* damaged or cut short"):
        load_model_directory(folder)
    (folder / "model.safetensors").rename(folder / "weights.bin")
    with pytest.raises(
        InputError, match=r"holds neither model\.safetensors nor pytorch_model\.bin .* found weights\.bin"
    ):
        load_model_directory(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match=r"config\.json: not JSON"):
        load_model_directory(folder)
    (folder / "config.json").write_text("[1]")
    with pytest.raises(InputError, match=r"config.json: holds a list, not an object"):
        load_model_directory(folder)
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"config\.json: no such file"):
        load_model_directory(folder)


def test_only_one_tensor_is_in_memory_beyond_the_tree(tiny, tiny_tensors):
    """Tensors are asked for one by one, each once: a checkpoint is never held twice."""

    class Counting(dict):
        asked = []  # noqa: RUF012

        def __getitem__(self, name):
            self.asked.append(name)
            return super().__getitem__(name)

    counting = Counting(tiny_tensors)
    parameters.to_params(counting, tiny.config, tiny.parts, Report("file"))
    assert sorted(counting.asked) == sorted(tiny_tensors)


def test_settings_of_others_in_the_config_are_kept(tiny_tensors, write):
    told = {"window": 64, "problem_type": "regression"}
    found = load_model_directory(write(tiny_tensors, torch_dtype="float16", id2label={"0": "no", "1": "yes"}, **told))
    extra = found.extra
    assert told.items() <= extra.items()
    assert not {"torch_dtype", "dtype", "architectures", "hidden_size", "id2label", "label2id"} & extra.keys()
    assert found.labels == ("no", "yes")
    assert json.dumps(extra)
