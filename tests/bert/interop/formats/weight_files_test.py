"""Which files hold a directory's weights; shards with an index: written, read again, and refused when incomplete."""

import json
import os
import pathlib

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from bert.errors import InputError
from bert.interop.export import save_model_directory
from bert.interop.formats import weight_files
from bert.interop.hugging_face import load_model_directory
from tests.bert.interop.every_head import assert_same_params
from tests.bert.refusals import refused


def open_shards(folder):
    return weight_files.open_weights(folder / weight_files.INDEX)


@pytest.fixture
def tensors():
    rng = np.random.default_rng(0)
    return {f"t{i}": rng.standard_normal((10, i + 1)).astype(np.float32) for i in range(6)}  # 40 to 240 bytes


@pytest.fixture
def shards(tensors, tmp_path):
    weight_files.write(tmp_path, iter(tensors.items()), largest=300)
    return tmp_path


def test_shards_hold_each_tensor_once_within_the_limit(tensors, shards):
    """Names as Hugging Face has them, the index complete, and no shard above the limit."""
    files = sorted(path.name for path in shards.iterdir())
    assert files[-1] == "model.safetensors.index.json"
    count = len(files) - 1
    assert files[:-1] == [f"model-{i + 1:05d}-of-{count:05d}.safetensors" for i in range(count)]
    index = json.loads((shards / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for tensor in tensors.values())
    seen = {}
    for file in files[:-1]:
        held = safetensors.numpy.load_file(shards / file)
        assert sum(tensor.nbytes for tensor in held.values()) <= 300
        assert {name: file for name in held} == {n: f for n, f in index["weight_map"].items() if f == file}
        with safetensors.safe_open(shards / file, "numpy") as opened:
            assert opened.metadata()["format"] == "pt"
        seen |= held
    assert seen.keys() == tensors.keys()


def test_shards_are_read_as_one(tensors, shards):
    found = open_shards(shards)
    assert sorted(found) == sorted(tensors)
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found[name], tensor)


def test_a_tensor_above_the_limit_has_a_shard_of_its_own(tensors, tmp_path):
    weight_files.write(tmp_path, iter(tensors.items()), largest=1)
    assert len(list(tmp_path.glob("*.safetensors"))) == len(tensors)
    assert sorted(open_shards(tmp_path)) == sorted(tensors)


def test_what_fits_is_one_file_without_an_index(tensors, tmp_path):
    weight_files.write(tmp_path, iter(tensors.items()), largest=840)
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_model_in_shards_loads_as_it_was(tiny, tmp_path):
    """The whole way: export in shards, over an export in one file and back, each time with no file of the other."""
    for largest, files in ((10**9, 1), (20_000, 6), (10**9, 1)):
        out = save_model_directory(tmp_path / "out", tiny.config, tiny.params, tiny.tokenizer, largest_file=largest)
        assert len(list(out.glob("*.safetensors"))) == files
        back = load_model_directory(out)
        assert_same_params(back.params, tiny.params)
        assert len(back.report.used) == 46


def test_safetensors_come_before_pickles_and_one_file_before_shards(tmp_path):
    assert weight_files.find(tmp_path) is None
    names = ("pytorch_model.bin.index.json", "pytorch_model.bin", "model.safetensors.index.json", "model.safetensors")
    for name in names:
        (tmp_path / name).write_bytes(b"")
        assert weight_files.find(tmp_path) == tmp_path / name


def change_index(folder, change):
    path = folder / weight_files.INDEX
    values = json.loads(path.read_text())
    change(values["weight_map"])
    path.write_text(json.dumps(values))


def test_an_incomplete_set_of_shards_is_refused(shards):
    """A shard that is absent, a tensor that its shard lacks, a file elsewhere: each named, nothing opened elsewhere."""
    change_index(shards, lambda homes: homes.update(t9="model-00001-of-00004.safetensors"))
    with refused("lacks t9", "model.safetensors.index.json"):
        open_shards(shards)
    for elsewhere in ("../model.safetensors", "/etc/passwd", "a/b", "..\\b"):
        change_index(shards, lambda homes, elsewhere=elsewhere: homes.update(t9=elsewhere))
        with pytest.raises(InputError, match="shards lie beside their index"):
            open_shards(shards)
    change_index(shards, lambda homes: homes.pop("t9"))
    next(shards.glob("model-00002*")).unlink()
    with refused("model-00002-of-", "no such file", "index.json"):
        open_shards(shards)


NO_MAP = "weight_map must hold the file name of each tensor; the file is damaged"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "holds a list, not an object"),
        *((text, NO_MAP) for text in ("{}", '{"weight_map": {}}', '{"weight_map": {"a": 3}}', '{"weight_map": 1}')),
    ],
)
def test_an_index_that_is_none(tmp_path, text, said):
    (tmp_path / weight_files.INDEX).write_text(text)
    with pytest.raises(InputError, match=rf"index\.json:(1:)? {said}"):
        open_shards(tmp_path)


def test_weights_that_may_not_be_read_are_not_called_damaged(tensors, tmp_path, monkeypatch):
    """What the system says, for whichever file."""

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    def refuse_as_the_library_does(*_, **__):
        raise safetensors.SafetensorError("Error opening file: Permission denied (os error 13)")

    weight_files.write(tmp_path, iter(tensors.items()), largest=10**6)
    path = tmp_path / "model.safetensors"
    monkeypatch.setattr(pathlib.Path, "open", refuse)
    monkeypatch.setattr(safetensors, "safe_open", refuse_as_the_library_does)
    with pytest.raises(InputError) as caught:
        weight_files.open_weights(path)
    assert str(caught.value) == f"{path}: cannot be read (Permission denied); check the path and its permissions"


def test_faults_of_the_library_that_are_not_the_systems_stay_what_they_are(tensors, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise safetensors.SafetensorError("a new kind of fault")

    monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    with pytest.raises(safetensors.SafetensorError, match="a new kind of fault"):
        weight_files.write(tmp_path, iter(tensors.items()), largest=10**6)


def test_a_shard_of_another_export_is_refused(tensors, shards, tmp_path):
    """Whole in itself, but not the one that the index was written with."""
    (tmp_path / "other").mkdir()
    weight_files.write(tmp_path / "other", iter({n: t + 1 for n, t in tensors.items()}.items()), largest=300)
    name = "model-00002-of-00004.safetensors"
    assert sorted(open_shards(tmp_path / "other")) == sorted(tensors)
    (shards / name).write_bytes((tmp_path / "other" / name).read_bytes())
    with refused(name, "index.json"):
        open_shards(shards)


def theirs(folder, first, second, homes):
    """Two shards as others write them, without checksums."""
    safetensors.numpy.save_file(first, folder / "a.safetensors")
    safetensors.numpy.save_file(second, folder / "b.safetensors")
    (folder / weight_files.INDEX).write_text(json.dumps({"weight_map": homes}))
    return open_shards(folder)


def test_shards_that_hold_more_than_the_index_says(tensors, tmp_path):
    """A tensor of no name in the index is there; one that stands in two shards must be the same in both."""
    t0, t1, t2 = ({name: tensors[name]} for name in ("t0", "t1", "t2"))
    homes = {"t0": "a.safetensors", "t1": "b.safetensors"}
    found = theirs(tmp_path, t0 | t2, t1 | t0, homes)
    assert sorted(found) == ["t0", "t1", "t2"]
    np.testing.assert_array_equal(found["t2"], tensors["t2"])
    with refused("b.safetensors", "t0", "two models"):
        theirs(tmp_path, t0, t1 | {"t0": tensors["t0"] + 1}, homes)


NO_FILES = {
    "pipe": os.mkfifo,
    "folder": pathlib.Path.mkdir,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "lost link": lambda path: path.symlink_to("nothing"),
}


@pytest.mark.parametrize("kind", NO_FILES)
def test_other_weights_never_stand_in_for_what_is_no_file(tmp_path, kind):
    """A pipe would wait, a device never end, and older weights beside them are others."""
    NO_FILES[kind](tmp_path / "model.safetensors")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match=r"model\.safetensors: no file but"):
        weight_files.find(tmp_path)
    NO_FILES[kind](tmp_path / "a.safetensors")
    (tmp_path / weight_files.INDEX).write_text(json.dumps({"weight_map": {"t0": "a.safetensors"}}))
    with pytest.raises(InputError, match=r"a\.safetensors: "):
        open_shards(tmp_path)
