"""A path is a model directory or a run directory, and what is newest in it is found."""

import json
import pathlib

import jax
import numpy as np
import pytest

import bert
from bert.errors import InputError
from bert.interop import sources
from bert.interop.export import save_model_directory
from bert.training.checkpoint import Checkpoints

TINY = pathlib.Path(__file__).resolve().parents[2] / "golden" / "tiny_bert"


def test_a_run_directory_gives_its_newest_export_or_else_its_newest_checkpoint(tmp_path):
    tiny = bert.load(TINY)
    run = tmp_path / "run"
    checkpoints = Checkpoints(run / "checkpoints")
    with pytest.raises(InputError, match="no run here"):
        bert.load(run)
    for nothing in ({"seed": 1}, {"encoder": 3}, []):
        (run / "config.json").write_text(json.dumps(nothing))
        with pytest.raises(InputError, match=r"config.json: .*(encoder|list)"):
            bert.load(run)
    settings = {"encoder": tiny.config.to_json(), "seed": 1, "examples.objective": "sop"}
    (run / "config.json").write_text(json.dumps(settings))
    tiny.tokenizer.save(run)
    checkpoints.save(2, {"params": jax.tree.map(np.zeros_like, tiny.params), "step": np.int32(2)}, meta={})
    checkpoints.save(9, {"params": tiny.params, "step": np.int32(9)}, meta={})
    checkpoints.close()
    from_checkpoint = bert.load(run)
    assert str(from_checkpoint.report).startswith(f"{run}/checkpoints/9: 30 parameters used, ")
    assert from_checkpoint.fill_mask("the [MASK]") == tiny.fill_mask("the [MASK]")
    assert list(from_checkpoint.predict_next_sentence("the cat", "sat")) == ["in_order", "swapped"]
    export = jax.tree.map(np.copy, tiny.params)
    export["head"]["mlm"]["bias"][40] = 100
    save_model_directory(run / "model", tiny.config, export, tiny.tokenizer)
    assert bert.load(run).fill_mask("the [MASK]")[0][0][0] == tiny.tokenizer.vocab[40]


def test_a_run_is_a_run_whatever_else_lies_in_it(tmp_path):
    """Files that look like a checkpoint of TensorFlow, even with data, do not come before a run's own."""
    tiny = bert.load(TINY)
    save_model_directory(tmp_path / "run" / "model", tiny.config, tiny.params, tiny.tokenizer)
    for name in ("notes.index", "notes.data-00000-of-00001"):
        (tmp_path / "run" / name).write_text("mine")
    assert bert.load(tmp_path / "run").fill_mask("the [MASK]") == tiny.fill_mask("the [MASK]")


def test_what_the_system_refuses_is_one_line(tmp_path, monkeypatch):
    """Whichever file of a directory may not be read."""

    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(pathlib.Path, "is_file", refuse)
    with pytest.raises(
        InputError, match=r"model\.safetensors: cannot be read \(Permission denied\); check the path and"
    ):
        bert.load(tmp_path)


def test_what_cannot_be_made_new_is_told_before_anything_is_read():
    with pytest.raises(InputError, match="'poolr' cannot be made new"):
        sources.read("nowhere", fresh=("poolr",))


def test_an_encoder_alone_gets_its_head(tmp_path):
    """The case that new parts are for: nothing but the encoder is there."""
    tiny = bert.load(TINY)
    alone = save_model_directory(tmp_path / "alone", tiny.config, {"encoder": tiny.params["encoder"]}, tiny.tokenizer)
    assert sources.read(alone).parts == ("encoder",)
    found = sources.read(alone, fresh=("mlm", "pooler", "next_sentence"))
    assert set(found.parts) == {"encoder", "mlm", "pooler", "next_sentence"}
