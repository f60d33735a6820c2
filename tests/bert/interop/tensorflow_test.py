"""Checkpoints that TensorFlow wrote: their variables are those that others read in them."""

import json
import shutil

import numpy as np
import pytest

from bert.errors import InputError
from bert.interop.formats.tensor_bundle import open_bundle, read_index
from tests.bert.interop.bundle_writer import assert_same


def hugging_face_name(name):
    """tiny_bert's name of a variable, and whether its matrix is turned there."""
    renamed = name.replace("layer_", "layer.").replace("/", ".").replace("gamma", "weight").replace("beta", "bias")
    renamed = renamed.replace("output_bias", "bias").replace("output_weights", "weight")
    if renamed.endswith("embeddings"):
        renamed += ".weight"
    return renamed.replace("kernel", "weight"), renamed.endswith("kernel")


def renamed_and_turned(tensors, slots=()):
    """The weights as tiny_bert's own file has them."""
    found = {}
    for name in set(tensors) - set(slots):
        renamed, turned = hugging_face_name(name)
        found[renamed] = tensors[name].T if turned else tensors[name]
    return found


def test_a_checkpoint_of_tensorflow(golden, tiny_tensors):
    """What TensorFlow's Saver wrote of the tiny model, in two shards, is that model, bit for bit."""
    assert_same(renamed_and_turned(open_bundle(golden / "tiny_bert_tf1" / "bert_model.ckpt")), tiny_tensors)


@pytest.mark.parametrize("kind", ["plain", "snappy"])
def test_tensorflows_own_checkpoints(shared, tiny_tensors, tmp_path, kind):
    """The same with the optimizer's slots, and with a compressed index."""
    folder = shared / "golden" / "tf1" / "tiny_bert_tf1"
    for path in folder.glob("bert_model.ckpt.*"):
        shutil.copy(path, tmp_path)
    if kind == "snappy":
        (tmp_path / "bert_model.ckpt.index").unlink()
        shutil.copy(folder / "bert_model_snappy.ckpt.index", tmp_path / "bert_model.ckpt.index")
    tensors = open_bundle(tmp_path / "bert_model.ckpt")
    slots = {name for name in tensors if name.endswith(("/adam_m", "/adam_v")) or name == "global_step"}
    assert len(slots) == 2 * len(tiny_tensors) + 1
    assert_same(renamed_and_turned(tensors, slots), tiny_tensors)
    for name in slots - {"global_step"}:
        assert tensors[name].shape == tensors[name.rpartition("/")[0]].shape


def test_a_checkpoint_of_another_project(shared):
    folder = shared / "golden" / "tf1" / "keras_bert_fixture"
    with np.load(folder / "expected.npz") as stored:
        expected = {n[4:].replace("|", "/"): stored[n] for n in stored.files if n.startswith("var|")}
    tensors = open_bundle(folder / "bert_model.ckpt")
    slots = [name for name in tensors if name.endswith(("/adam_m", "/adam_v"))]
    assert all(np.isfinite(tensors[name]).all() for name in slots)
    assert_same({name: tensors[name] for name in tensors if name not in slots}, expected)


def test_the_index_of_a_published_model(shared):
    path = shared / "golden" / "tf1" / "google_chinese_L-12_H-768_A-12.index"
    expected = json.loads(path.with_suffix(".index.json").read_text())
    num_shards, entries = read_index(path)
    assert num_shards == expected["shards"]
    assert {
        name: {
            "shape": list(e.shape),
            "dtype": e.dtype,
            "offset": e.offset,
            "size": e.size,
            "crc32c_masked": e.checksum,
        }
        for name, e in entries.items()
    } == expected["entries"]
    with pytest.raises(InputError, match="no such file"):
        open_bundle(path.with_suffix(""))
