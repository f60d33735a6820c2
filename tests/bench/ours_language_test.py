"""Our side of language models, in a process of its own; and what its batch predicts."""

import sys

import numpy as np
import pytest

from bench.language import Language
from bench.turns import Peer


@pytest.mark.parametrize("model", ["gru", "gpt2"])
def test_all_words_are_predicted_at_their_places_or_one_before(model):
    arrays = Language(model, batch=2, length=5).arrays()
    places = arrays["masked_positions"] + (model == "gpt2")
    np.testing.assert_array_equal(arrays["masked_ids"], np.take_along_axis(arrays["token_ids"], places, 1))
    assert places.tolist() == [[*range(model == "gpt2", 5)]] * 2


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["--model=lstm"], ["--model=gpt2"], ["--model=gpt2", "--step=generate", "--new=3"]])
def test_our_side_runs(flags):
    peer = Peer("ours", [sys.executable, "-m", "bench.ours_language", *flags, "--batch=2", "--length=8"])
    peer.run(2)
    assert peer.stop() == 0
    assert len(peer.seconds) == 1
