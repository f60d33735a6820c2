"""Writing model directories: bit-equal on the way back, complete or absent, nobody's files lost."""

import errno
import json
import pathlib
import shutil

import jax
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from bert.errors import RunError
from bert.interop import parameters, sources
from bert.interop.hugging_face import load_model_directory
from tests.bert.interop.every_head import assert_same_params, save
from tests.bert.refusals import refused


def test_export_then_import_is_equal_bit_by_bit(tiny, tiny_tensors, tmp_path):
    """Weights (from NumPy or JAX), configuration, tokenizer and other settings all come back as they were."""
    params = jax.tree.map(jax.numpy.asarray, tiny.params)
    back = load_model_directory(save(tiny, tmp_path / "out", params=params, labels=("a", "b"), extra={"window": 64}))
    assert_same_params(back.params, tiny.params)
    assert (back.config, back.labels) == (tiny.config, ("a", "b"))
    assert back.extra == {"window": 64}
    assert back.tokenizer.fingerprint == tiny.tokenizer.fingerprint
    assert back.tokenizer.model_max_length == tiny.tokenizer.model_max_length
    written = safetensors.numpy.load_file(tmp_path / "out" / "model.safetensors")
    assert written.keys() == tiny_tensors.keys()
    for name, tensor in tiny_tensors.items():
        np.testing.assert_array_equal(written[name], tensor, err_msg=name)


def test_the_file_says_that_torch_may_read_it(tiny, tmp_path):
    with safetensors.safe_open(save(tiny, tmp_path / "out") / "model.safetensors", "numpy") as file:
        assert file.metadata()["format"] == "pt"


@pytest.mark.parametrize(
    ("kept", "architecture"),
    [
        (("pooler", "mlm", "next_sentence"), "BertForPreTraining"),
        (("mlm",), "BertForMaskedLM"),
        (("mlm", "pooler"), "BertForMaskedLM"),
        (("pooler",), "BertModel"),
        ((), "BertModel"),
        (("pooler", "next_sentence"), "BertForNextSentencePrediction"),
    ],
)
def test_the_architecture_follows_from_the_heads(tiny, tmp_path, kept, architecture):
    head = {part: tiny.params["head"][part] for part in kept}
    folder = save(tiny, tmp_path / "out", params={"encoder": tiny.params["encoder"], "head": head})
    assert json.loads((folder / "config.json").read_text())["architectures"] == [architecture]
    assert set(load_model_directory(folder).parts) == {"encoder", *kept}


def test_other_settings_never_override_what_the_weights_say(tiny, tmp_path):
    """A dtype or a size that came with an import does not end up describing the new file."""
    extra = {"dtype": "float16", "torch_dtype": "float16", "hidden_size": 1, "architectures": ["X"], "my_key": 3}
    values = json.loads((save(tiny, tmp_path / "out", extra=extra) / "config.json").read_text())
    assert (values["dtype"], values["hidden_size"], values["my_key"]) == ("float32", 32, 3)
    assert values["architectures"] == ["BertForPreTraining"]
    assert "torch_dtype" not in values


def test_the_longest_input_is_never_beyond_the_positions(tiny, tmp_path):
    """A tokenizer made for 512 tokens, a model of 64 positions: who reads the export cuts texts to 64."""
    tokenizer = type(tiny.tokenizer).from_vocab(tiny.tokenizer.vocab, model_max_length=512)
    back = load_model_directory(save(tiny, tmp_path / "out", tokenizer=tokenizer)).tokenizer
    assert back.model_max_length == 64
    assert back.fingerprint == tokenizer.fingerprint


def test_a_link_to_a_directory_stays_a_link(tiny, tmp_path):
    """What it points to is replaced."""
    real, link = save(tiny, tmp_path / "real"), tmp_path / "link"
    link.symlink_to(real)
    tiny.params["head"]["mlm"]["bias"] = np.full(128, 7.0, np.float32)
    save(tiny, link)
    assert link.is_symlink()
    assert load_model_directory(real).params["head"]["mlm"]["bias"][0] == 7.0


def test_a_newer_export_replaces_the_older_one(tiny, tmp_path, killed_writer):
    """The directory holds the newer export whole; leftovers of a killed run are gone; nothing else lies around."""
    folder = save(tiny, tmp_path / "out")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "model.safetensors").write_bytes(b"half")
    killed_writer(folder, new=tmp_path / "half")
    tiny.params["head"]["mlm"]["bias"] = np.full(128, 7.0, np.float32)
    save(tiny, folder)
    assert load_model_directory(folder).params["head"]["mlm"]["bias"][0] == 7.0
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("then", ["load", "save", "load the run"])
def test_an_export_is_back_after_a_kill_between_the_two_renames(tiny, tmp_path, killed_writer, then):
    """The older export stands beside its place, nothing in it: the next load or save brings it back."""
    folder = save(tiny, tmp_path / "model")
    before = {entry.name: entry.read_bytes() for entry in folder.iterdir()}
    killed_writer(folder, new=shutil.copytree(folder, tmp_path / "copy"), old=folder)
    if then == "load":
        load_model_directory(folder)
    elif then == "load the run":
        sources.read(tmp_path)
    else:
        with refused("head/colour/kernel", "name"):
            save(tiny, folder, params={**tiny.params, "head": {"colour": {"kernel": np.zeros(3)}}})
    assert {entry.name: entry.read_bytes() for entry in folder.iterdir()} == before
    save(tiny, folder)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("point", ["weights", "tokenizer", "rename"])
def test_a_save_that_fails_leaves_the_older_export_and_no_rest(tiny, tmp_path, monkeypatch, point):
    """Wherever the disk is full: one line, and the directory of that name is the older export, still complete."""

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    def fail_as_the_library_does(*_, **__):
        raise safetensors.SafetensorError("Error while serializing: I/O error: ... (os error 28)")

    folder = save(tiny, tmp_path / "out")
    before = sorted((entry.name, entry.read_bytes()) for entry in folder.iterdir())
    if point == "weights":
        monkeypatch.setattr(safetensors.numpy, "save_file", fail_as_the_library_does)
    elif point == "tokenizer":
        monkeypatch.setattr(type(tiny.tokenizer), "save", fail)
    else:
        rename = pathlib.Path.rename
        monkeypatch.setattr(pathlib.Path, "rename", lambda path, to: fail() if path.name == "new" else rename(path, to))
    with refused(f"{folder}: ", "No space left on device", error=RunError):
        save(tiny, folder)
    assert sorted((entry.name, entry.read_bytes()) for entry in folder.iterdir()) == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_setting_with_half_a_character_is_carried_along(tiny, tmp_path):
    """JSON can spell what UTF-8 cannot hold; other settings are written as they are."""
    folder = save(tiny, tmp_path / "out", extra={"remark": "\ud800"})
    assert load_model_directory(folder).extra == {"remark": "\ud800"}
    assert "müde" in (save(tiny, folder, extra={"remark": "müde"}) / "config.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("format", ["stablehlo", "onnx"])
def test_weights_above_two_gigabytes_are_told_by_the_name_that_was_given(tiny, tmp_path, monkeypatch, format):
    """Not by that of the directory that is written first."""
    monkeypatch.setattr(parameters, "_LARGEST", 1000)
    with refused(f"{tmp_path}/out/model.{format}: ", "GB"):
        save(tiny, tmp_path / "out", format=format)


@pytest.mark.parametrize("format", ["huggingface", "stablehlo", "onnx"])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_weights_that_are_not_finite_are_written_in_no_format(tiny, tmp_path, format, value):
    """By the parameter's path and place, before anything is written."""
    tiny.params["encoder"]["blocks"]["attention"]["key"]["kernel"][1, 3, 7] = value
    with refused("out: parameter encoder/blocks/attention/key/kernel", f"{value} at [1, 3, 7]", "checkpoint"):
        save(tiny, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


def test_what_float16_cannot_hold(tiny, tmp_path):
    """The largest is named, and what would hold it; the smallest become 0, which bfloat16 does not do to them."""
    bias = tiny.params["head"]["mlm"]["bias"]
    bias[:3] = 70_000, -80_000, 1e-9
    with refused("out", "cls.predictions.bias holds 80000", "float16", "float32 or"):
        save(tiny, tmp_path / "out", dtype="float16")
    bias[:2] = 3.4e38, 65_504
    with refused("3.4e+38", "bfloat16", "choose float32"):
        save(tiny, tmp_path / "out", dtype="bfloat16")
    bias[0] = 1
    back = load_model_directory(save(tiny, tmp_path / "out", dtype="float16")).params["head"]["mlm"]["bias"]
    assert back[:3].tolist() == [1, 65_504, 0]


@pytest.mark.parametrize("format", ["huggingface", "stablehlo", "onnx"])
def test_a_classifier_does_not_go_out_without_the_pooler_that_it_reads(golden, tmp_path, format):
    """It would come back as one of tokens."""
    found = load_model_directory(golden / "tiny_seqcls")
    del found.params["head"]["pooler"]
    with refused("sequence_classifier", "no pooler"):
        save(found, tmp_path / "out", format=format)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", ["huggingface", "onnx"])
def test_names_that_are_not_those_of_the_classes(golden, tmp_path, format):
    found = load_model_directory(golden / "tiny_seqcls")
    for names, words in (
        (("a", "b"), "2 labels (a, b) for 3 classes"),
        (("a", "b", "c", "d"), "4 labels (a, b, c, ...) for 3 classes"),
        (("a", "b", "a"), "classes 0 and 2 are both called 'a'"),
    ):
        with refused("out: ", words):
            save(found, tmp_path / "out", labels=names, format=format)
    assert list(tmp_path.iterdir()) == []


def test_a_tree_that_cannot_be_written_leaves_nothing(tiny, tmp_path):
    params = {**tiny.params, "head": {"colour": {"kernel": np.zeros(3)}}}
    with refused("head/colour/kernel", "name"):
        save(tiny, tmp_path / "out", params=params)
    assert list(tmp_path.iterdir()) == []


def test_an_export_can_be_read_by_whom_the_user_lets_read(tiny, tmp_path):
    """The weights get the permissions that any new file gets, not those of their owner alone."""
    (tmp_path / "plain").write_text("")
    for file in save(tiny, tmp_path / "out").iterdir():
        assert file.stat().st_mode == (tmp_path / "plain").stat().st_mode, file.name
