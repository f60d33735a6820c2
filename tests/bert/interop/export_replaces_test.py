"""What a new export may take the place of: an older one that was written here, and nothing else."""

import json
import shutil

import pytest

from bert.errors import InputError
from bert.interop import export
from bert.interop.hugging_face import load_model_directory
from tests.bert.interop.every_head import save
from tests.bert.refusals import refused


def contents(folder):
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


def test_a_directory_with_other_files_is_never_replaced(tiny, tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    with refused("home", "thesis.tex", "empty directory"):
        save(tiny, folder)
    assert (folder / "thesis.tex").read_text() == "years of work"
    with refused("thesis.tex: is a file"):
        save(tiny, folder / "thesis.tex")
    with pytest.raises(InputError, match="home: holds other files"):
        export.check_replaceable(str(folder))


def test_what_may_be_replaced_can_be_asked_before(tiny, tmp_path):
    """Nothing there, an empty directory, an older export: no objection, and nothing is touched."""
    export.check_replaceable(tmp_path / "new")
    export.check_replaceable(tmp_path)
    export.check_replaceable(str(save(tiny, tmp_path / "out")))
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    "name",
    ["model.onnx/notes", "special_tokens_map.json", "model.onnx", "model-00001-of-00002.safetensors",
     "model.safetensors.index.json", "tokenizer_config.json/notes"],
)  # fmt: skip
def test_what_our_export_did_not_write_is_kept(tiny, tmp_path, name):
    """A folder under a file's name, and names that no export has beside those that this one has."""
    folder = save(tiny, tmp_path / "out")
    path = folder / name
    if path.parent != folder:
        path.parent.unlink(missing_ok=True)
        path.parent.mkdir()
    path.write_text("theirs")
    with refused("out", f"({name})", "other files"):
        save(tiny, folder)
    assert path.read_text() == "theirs"


def test_a_vocabulary_that_was_put_beside_the_weights_is_kept(tiny, tmp_path):
    """An export without a tokenizer, to which its user has added one."""
    folder = save(tiny, tmp_path / "out", tokenizer=None)
    (folder / "vocab.txt").write_text("theirs")
    with pytest.raises(InputError, match=r"holds other files \(vocab.txt\)"):
        save(tiny, folder)
    assert (folder / "vocab.txt").read_text() == "theirs"


@pytest.mark.parametrize("name", ["tiny_bert", "tiny_seqcls"])
@pytest.mark.parametrize("choice", [{}, {"format": "onnx"}, {"dtype": "float16"}], ids=str)
def test_models_of_other_writers_are_never_replaced(tiny, golden, tmp_path, name, choice):
    """Directories of transformers, whose files have the names that ours have."""
    folder = shutil.copytree(golden / name, tmp_path / "theirs")
    before = contents(folder)
    with refused("theirs", "export of ours", "move"):
        save(tiny, folder, **choice)
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config.json", '{"port": 8080}'),
        ("config.json", "{"),
        ("config.json", '["bert-jax"]'),
        ("config.json", '{"written_by": "she"}'),
        ("config.json", '{"written_by": "bert-jax", "transformers_version": "5.0.0"}'),
        ("vocab.txt", "my\nwords\n"),
        ("model.safetensors", "weights of another model"),
        ("tokenizer_config.json", "{}"),
    ],
)
def test_files_that_only_have_our_names_are_kept(tiny, tmp_path, name, text):
    """A configuration of some program, a vocabulary written by hand, weights alone."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text(text)
    with refused("out", "export of ours"):
        save(tiny, tmp_path / "out")
    assert (tmp_path / "out" / name).read_text() == text


@pytest.mark.parametrize("choice", [{}, {"format": "onnx"}, {"format": "stablehlo"}, {"dtype": "float16"}], ids=str)
def test_what_was_written_here_says_so_and_may_be_replaced(tiny, tmp_path, choice):
    """In every format; the mark is not among the settings that come back, and is written each time."""
    folder = save(tiny, tmp_path / "out", **choice)
    assert json.loads((folder / "config.json").read_text())["written_by"] == "bert-jax"
    save(tiny, folder, extra={"written_by": "she", "transformers_version": "4"})
    assert load_model_directory(folder).extra == {}
    export.check_replaceable(folder)


@pytest.mark.parametrize("choice", [{"format": "onnx"}, {"format": "stablehlo"}, {"dtype": "float16"}], ids=str)
def test_weights_are_never_replaced_by_less(tiny, tmp_path, killed_writer, choice):
    """Neither by a program, from which they cannot be had back, nor by rounded ones."""
    folder = save(tiny, tmp_path / "out")
    before = contents(folder)
    with refused("out/model.safetensors", "replace"):
        save(tiny, folder, **choice)
    assert contents(folder) == before
    killed_writer(folder, old=folder)  # killed between two renames: it comes back, and stays
    with pytest.raises(InputError, match="would replace these"):
        save(tiny, folder, **choice)
    assert contents(folder) == before


def test_rounded_weights_replace_rounded_ones(tiny, tmp_path):
    for dtype in ("float16", "float16", "float32"):
        save(tiny, tmp_path / "out", dtype=dtype)
    with refused("bfloat16", "replace"):
        save(tiny, tmp_path / "out", dtype="bfloat16")
