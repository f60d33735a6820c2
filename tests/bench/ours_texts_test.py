"""Our side of fine-tuning and inference, in a process of its own."""

import sys

import pytest

from bench.turns import Peer


@pytest.mark.slow
@pytest.mark.parametrize("step", ["finetune", "classify"])
def test_our_side_runs(step):
    """The smallest size on a few short texts."""
    flags = [f"--step={step}", "--size=tiny", "--lengths=sst2", "--count=8", "--batch=4"]
    peer = Peer("ours", [sys.executable, "-m", "bench.ours_texts", *flags])
    peer.run(2)
    peer.stop()
    assert len(peer.seconds) == 1
    assert peer.versions["jax"]
