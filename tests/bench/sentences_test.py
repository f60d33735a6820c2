"""The sentences and the model that all implementations embed."""

import sys

import numpy as np
import pytest

import bert
from bench import sentences
from bench.turns import Peer


def test_the_model_and_its_sentences(tmp_path, monkeypatch):
    """Written once for all; the sentences are those of the file where one is named."""
    monkeypatch.setattr(sentences, "FOLDER", tmp_path)
    (tmp_path / "a.txt").write_text("a first sentence .\nand another one .\nmore than asked for .\n")
    workload = sentences.Sentences("tiny", 2, file=str(tmp_path / "a.txt"))
    workload.write()
    assert workload.read() == ["a first sentence .", "and another one ."]
    model = bert.load(workload.model)
    assert model.sentences.pooling == ("mean",)
    assert np.isfinite(model.embed(workload.read())).all()


@pytest.mark.slow
def test_our_side_runs():
    peer = Peer("ours", [sys.executable, "-m", "bench.ours_sentences", "--size=tiny", "--count=50"])
    peer.run(1)
    peer.stop()
    assert peer.versions["jax"]
