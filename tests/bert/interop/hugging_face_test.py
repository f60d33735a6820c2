"""Reading model directories: precisions, vocabularies, settings of others; every fault is refused by name.

Spellings and leftovers of the tensors: accounting_test.py.
"""

import dataclasses
import json
import shutil

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from bert.errors import InputError
from bert.interop import names, parameters
from bert.interop.export import save_model_directory
from bert.interop.hugging_face import load_model_directory
from bert.interop.load_report import LoadReport
from tests.bert.interop.every_head import assert_same_params
from tests.bert.refusals import refused


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_precisions_become_float32(tiny, tiny_tensors, write, dtype):
    found = load_model_directory(write({name: tensor.astype(dtype) for name, tensor in tiny_tensors.items()}))
    want = {path: value.astype(dtype).astype(np.float32) for path, value in parameters.flatten(tiny.params)}
    got = dict(parameters.flatten(found.params))
    for path, value in want.items():
        assert got[path].dtype == np.float32
        np.testing.assert_array_equal(got[path], value, err_msg=path)


KERNEL = "bert.encoder.layer.0.intermediate.dense.weight"


def spoilt(dtype, value):
    def change(tensor):
        tensor = tensor.astype(dtype)
        tensor[3, 7] = value
        return tensor

    return change


FAULTY_WEIGHTS = {
    "nan": (spoilt(np.float32, np.nan), "nan at [3, 7]", "finite"),
    "inf of 16 bits": (spoilt(np.float16, np.inf), "inf at [3, 7]", "finite"),
    "beyond float32": (spoilt(np.float64, 1e300), "inf at [3, 7]", "finite"),
    "transposed": (lambda tensor: np.ascontiguousarray(tensor.T), "[32, 64]", "[64, 32]"),
    "integers": (lambda tensor: tensor.astype(np.int64), "int64", "float"),
}


@pytest.mark.parametrize("fault", FAULTY_WEIGHTS)
def test_a_weight_that_does_not_fit_is_refused_by_name(tiny_tensors, write, fault):
    change, *words = FAULTY_WEIGHTS[fault]
    with refused(KERNEL, *words):
        load_model_directory(write({**tiny_tensors, KERNEL: change(tiny_tensors[KERNEL])}))


@pytest.fixture
def folder(tiny_directory, tmp_path):
    """A copy of the tiny model's directory."""
    return shutil.copytree(tiny_directory, tmp_path / "model")


def test_a_vocabulary_larger_than_the_model_is_refused_before_any_weight_is_read(folder):
    (folder / "model.safetensors").write_bytes(b"never read")
    with (folder / "vocab.txt").open("a") as file:
        file.write("two\nmore\n")
    with refused("130 entries", "128 rows"):
        load_model_directory(folder)


def test_a_vocabulary_smaller_than_the_model_is_noted(folder):
    entries = (folder / "vocab.txt").read_text().split("\n")[:126]
    (folder / "vocab.txt").write_text("\n".join(entries))
    model = load_model_directory(folder)
    assert model.tokenizer.vocab_size == 126
    (note,) = model.report.notes
    assert "128 rows, the vocabulary 126 entries; the last 2 rows" in note


def test_upper_case_entries_and_no_settings_mean_a_cased_model(folder):
    """Only a vocabulary beside the weights: letter case follows from its entries, not from a default."""
    (folder / "tokenizer_config.json").unlink()
    entries = (folder / "vocab.txt").read_text().replace("paris", "Paris").replace("france", "France")
    (folder / "vocab.txt").write_text(entries)
    tokenizer = load_model_directory(folder).tokenizer
    assert not tokenizer.lower_case
    assert [tokenizer.vocab[i] for i in tokenizer.encode("Paris").ids] == ["Paris"]


def rename_weights(folder, name):
    (folder / "model.safetensors").rename(folder / name)


FAULTY_FILES = {
    "no directory": (shutil.rmtree, "model: no such directory"),
    "weights cut short": (
        lambda folder: (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-100]),
        "model.safetensors",
        "damaged",
    ),
    "other weights": (
        lambda folder: rename_weights(folder, "weights.bin"), "model.safetensors", "pytorch_model.bin", "weights.bin",
    ),
    # It has the same config.json and vocabulary; only its weights cannot be recovered.
    "StableHLO": (lambda folder: rename_weights(folder, "model.stablehlo"), "model.stablehlo", "export to run"),
    "ONNX": (lambda folder: rename_weights(folder, "model.onnx"), "model.onnx", "export to run"),
    "a list": (lambda folder: (folder / "config.json").write_text("[1]"), "config.json", "list"),
    "no configuration": (lambda folder: (folder / "config.json").unlink(), "config.json: no such file"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTY_FILES)
def test_files_that_are_absent_or_broken(folder, fault):
    change, *words = FAULTY_FILES[fault]
    change(folder)
    with refused(*words):
        load_model_directory(folder)


def test_only_one_tensor_is_in_memory_beyond_the_tree(tiny, tiny_tensors):
    """Tensors are read one by one, each once: a checkpoint is never held twice."""

    class Counting(dict):
        reads = []  # noqa: RUF012

        def __getitem__(self, name):
            self.reads.append(name)
            return super().__getitem__(name)

    counting = Counting(tiny_tensors)
    parameters.to_params(counting, names.table(tiny.config), tiny.config, tiny.parts, LoadReport("file"))
    assert sorted(counting.reads) == sorted(tiny_tensors)


def test_settings_of_others_in_the_config_are_kept(tiny_tensors, write):
    told = {"window": 64, "problem_type": "regression"}
    found = load_model_directory(write(tiny_tensors, torch_dtype="float16", id2label={"0": "no", "1": "yes"}, **told))
    extra = found.extra
    assert told.items() <= extra.items()
    assert not {"torch_dtype", "dtype", "architectures", "hidden_size", "id2label", "label2id"} & extra.keys()
    assert found.labels == ("no", "yes")
    assert json.dumps(extra)


def test_a_file_that_may_not_be_read(tiny_directory, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with refused("config.json", "Permission denied"):
        load_model_directory(tiny_directory)


def test_a_file_in_place_of_a_directory(tiny_directory):
    with refused("vocab.txt: is a file", "config.json"):
        load_model_directory(tiny_directory / "vocab.txt")


@pytest.mark.parametrize("named", [{"1": "no", "2": "yes"}, {"zero": "no"}, ["no"]], ids=str)
def test_names_that_nothing_uses_keep_no_model_out(tiny_tensors, write, named):
    """A model without a classifier loads, whatever its config.json says of classes."""
    found = load_model_directory(write(tiny_tensors, id2label=named))
    assert (found.labels, found.parts[0]) == ((), "encoder")


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("tokenizer.json", '"the"', '"thd"', "model: tokenizer.json.*weights.*restore"),
        ("tokenizer_config.json", '"do_lower_case": true', '"do_lower_case": false', "model: tokenizer.json.*weights"),
        ("vocab.txt", "the", "thd", "vocab.txt: .*tokenizer.json.*restore"),
    ],
)
def test_files_of_the_tokenizer_must_be_those_of_the_export(tiny, tmp_path, name, old, new, words):
    """A letter that turned would give other ids without a word; files of others, without checksums, load."""
    folder = save_model_directory(tmp_path / "model", tiny.config, tiny.params, tiny.tokenizer)
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    with pytest.raises(InputError, match=words):
        load_model_directory(folder)
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    safetensors.numpy.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    assert load_model_directory(folder).tokenizer.vocab_size == tiny.tokenizer.vocab_size


def test_values_that_no_shape_tells_must_be_those_of_the_export(tiny, tmp_path):
    """A digit that turned, or a setting that was changed, would give other numbers; what may change does not matter."""
    folder = save_model_directory(tmp_path / "out", tiny.config, tiny.params, tiny.tokenizer)
    text = (folder / "config.json").read_text()
    for old, new, words in (
        ('heads": 4', 'heads": 8', "num_attention_heads is 8, but .* 4; set it"),
        ("1e-12", "1e-10", "layer_norm_eps is 1e-10, but .* 1e-12; set it"),
        ('"gelu"', '"relu"', 'hidden_act is "relu", but .* "gelu"; set it'),
    ):
        assert old in text
        (folder / "config.json").write_text(text.replace(old, new))
        with pytest.raises(InputError, match=f"config.json: {words}"):
            load_model_directory(folder)
    (folder / "config.json").write_text(
        text.replace('dropout_prob": 0.1', 'dropout_prob": 0.2').replace("1e-12", "0.000000000001")
    )
    assert load_model_directory(folder).config == dataclasses.replace(
        tiny.config, hidden_dropout=0.2, attention_dropout=0.2
    )


def test_a_head_that_has_a_table_of_its_own_by_the_config(tiny, tiny_tensors, write):
    """The file must then hold it; whether it is the tokens' is seen."""
    with pytest.raises(InputError, match="tie_word_embeddings is false"):
        load_model_directory(write(tiny_tensors, tie_word_embeddings=False))
    table = tiny_tensors["bert.embeddings.word_embeddings.weight"]
    whole = {**tiny_tensors, "cls.predictions.decoder.weight": table}
    assert_same_params(load_model_directory(write(whole, "whole", tie_word_embeddings=False)).params, tiny.params)
    encoder = {name: tensor for name, tensor in tiny_tensors.items() if not name.startswith("cls.")}
    assert load_model_directory(write(encoder, "encoder", tie_word_embeddings=False)).parts == ("encoder", "pooler")


def test_what_config_says_and_nothing_reads_is_noted(tiny_tensors, write):
    found = load_model_directory(write(tiny_tensors, layer_norm_epsilon=0.1, architectures=["MyModel"]))
    assert ["MyModel" in note for note in found.report.notes] == [True, False]
    assert "layer_norm_epsilon" in str(found.report)
