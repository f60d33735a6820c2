"""A path is a model directory or a run directory, and what is newest in it is found."""

import json
import pathlib

import jax
import numpy as np
import pytest

import bert
from bert.errors import InputError
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
        with pytest.raises(
            InputError, match=r'config.json: says nothing of an encoder \("encoder"\); name a pretraining'
        ):
            bert.load(run)
    settings = {"encoder": tiny.config.to_json(), "seed": 1, "examples.objective": "sop"}
    (run / "config.json").write_text(json.dumps(settings))
    tiny.tokenizer.save(run)
    checkpoints.save(2, {"params": jax.tree.map(np.zeros_like, tiny.params), "step": np.int32(2)}, meta={})
    checkpoints.save(9, {"params": tiny.params, "step": np.int32(9)}, meta={})
    checkpoints.close()
    from_checkpoint = bert.load(run)
    assert from_checkpoint.fill_mask("the [MASK]") == tiny.fill_mask("the [MASK]")
    assert list(from_checkpoint.predict_next_sentence("the cat", "sat")) == ["in_order", "swapped"]
    export = jax.tree.map(np.copy, tiny.params)
    export["head"]["mlm"]["bias"][40] = 100
    save_model_directory(run / "model", tiny.config, export, tiny.tokenizer)
    assert bert.load(run).fill_mask("the [MASK]")[0][0][0] == tiny.tokenizer.vocab[40]
