"""Translations of many texts, which are searched two batches at a time on CPUs."""

import dataclasses

import numpy as np
import pytest

from bert import inference
from bert.interop import sources, warm_start
from bert.interop.warm_start import WarmStart
from bert.model import beam_search
from bert.prediction import translation
from bert.prediction.scores import Devices
from bert.prediction.translation import TranslationOptions

OPTIONS = TranslationOptions(beams=2)


@pytest.fixture(scope="module")
def scorer():
    bert = sources.read("tests/golden/tiny_bert")
    return inference.LoadedModel(warm_start.encoder_decoder(bert, WarmStart("rnd2rnd"), seed=0)).scorer(batch_size=4)


def written(scorer, examples, room=lambda length: 3):
    return translation.written(scorer, examples, room, OPTIONS, "text")


def test_batches_at_the_same_time_are_those_one_after_the_other(scorer, monkeypatch):
    """Of two shapes, each traced once."""
    traced, search = [], beam_search.search
    monkeypatch.setattr(beam_search, "search", lambda *inputs, **sizes: traced.append(1) or search(*inputs, **sizes))
    rng = np.random.default_rng(0)
    examples = translation.joined([rng.integers(5, 20, length).tolist() for length in rng.integers(3, 30, 33)])
    together = written(scorer, examples)
    assert len(traced) == 2
    assert together == written(dataclasses.replace(scorer, devices=Devices()), examples)
    assert len({candidates[0].score for candidates in together}) > 25


def test_an_error_of_a_batch_is_raised_and_ends_the_others(scorer):
    rooms = []

    def room(length):
        rooms.append(length)
        raise ValueError("no room")

    with pytest.raises(ValueError, match="no room"):
        written(scorer, translation.joined([[1, 5, 2]] * 4000), room)
    assert len(rooms) < 500
