"""Which of a folder's files are Google's checkpoint: the one that is named, else the only one, else why none."""

import shutil

import numpy as np
import pytest

import bert
from bert.interop import google_tf
from tests.bert.interop.bundle_writer import MAGIC, variables_of, write_checkpoint
from tests.bert.refusals import refused


@pytest.fixture
def folder(golden, tmp_path):
    """A folder with bert_config.json, for a checkpoint to be put in."""
    (tmp_path / "google").mkdir()
    shutil.copy(golden / "tiny_bert_tf1" / "bert_config.json", tmp_path / "google")
    return tmp_path / "google"


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
