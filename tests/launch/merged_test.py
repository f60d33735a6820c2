"""A BERT with merged queries and keys by the commands: it learns as BERT does, resumes bit-equal, and loads back."""

import json
import pathlib

import numpy as np
import pytest
from safetensors.numpy import load_file

import bert
from bert.data.batches import Batches
from bert.errors import InputError
from tests.launch import tiny_pretraining

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_device")]
# Two heads, of half the width each: as many parameters in one matrix a head as in queries and keys.
SIZES = ("--config.model.hidden_size=32", "--config.model.num_heads=2", "--config.model.num_layers=1")


def train(kind: str, prepared, workdir, *words) -> None:
    run = (f"--config.model.model_type={kind}", f"--config.data={prepared}", f"--workdir={workdir}")
    tiny_pretraining.run(*tiny_pretraining.TINY, *run, *SIZES, *words)


def losses(workdir: pathlib.Path) -> np.ndarray:
    rows = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    return np.array([row["mlm_loss"] for row in rows if row["split"] == "validation"])


def test_it_learns_as_a_bert_of_as_many_parameters(prepared, tmp_path):
    """The losses on held-out text lie no further from BERT's than those of another seed, but for a margin."""
    steps = ("--config.total_steps=40", "--config.evaluate_every=10", "--config.optimizer.learning_rate=3e-3")
    for name, kind, seed in (("first", "bert", 0), ("second", "bert", 1), ("merged", "bert-merged", 0)):
        train(kind, prepared, tmp_path / name, *steps, f"--config.seed={seed}")
    first, second, merged = (losses(tmp_path / name) for name in ("first", "second", "merged"))
    count, count_of_merged = (
        sum(tensor.size for tensor in load_file(tmp_path / name / "model" / "model.safetensors").values())
        for name in ("first", "merged")
    )
    assert count == count_of_merged
    assert first[-1] < first[0] - 0.1
    assert np.abs(merged - first).max() < np.abs(second - first).max() + 0.1


def test_a_run_that_was_killed_ends_bit_equal_and_loads_back(prepared, tmp_path, monkeypatch):
    real = Batches.__call__

    def crash(self, index, rows=slice(None)):
        if index == 5:
            raise ConnectionAbortedError
        return real(self, index, rows)

    train("bert-merged", prepared, tmp_path / "whole")
    with monkeypatch.context() as patched:
        patched.setattr(Batches, "__call__", crash)
        with pytest.raises(ConnectionAbortedError):
            train("bert-merged", prepared, tmp_path / "parts")
    train("bert-merged", prepared, tmp_path / "parts")
    whole, parts = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("whole", "parts"))
    assert whole.keys() == parts.keys()
    for name, tensor in whole.items():
        np.testing.assert_array_equal(tensor, parts[name], err_msg=name)
    model = bert.load(tmp_path / "whole")
    assert bert.merge_query_key(model).W.shape == (1, 2, 32, 32)
    again = bert.load(bert.save(model, tmp_path / "copy"))
    text = "the lamp [MASK] the sea ."
    assert again.fill_mask(text) == model.fill_mask(text)
    assert len(model.attention(text).weights) == 2
    with pytest.raises(InputError, match=r"ONNX .*'bert-merged'"):
        bert.save(model, tmp_path / "onnx", format="onnx")
    with pytest.raises(InputError, match=r"'bert-merged' .*both sides"):
        train("bert-merged", prepared, tmp_path / "causal", "--config.objective=causal")
