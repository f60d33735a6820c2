"""Translations: texts are searched two batches at a time on CPUs; what a prediction holds, and what is refused."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from bert import inference
from bert.errors import InputError
from bert.interop import sources, warm_start
from bert.interop.model_directory import check_vocabulary
from bert.interop.warm_start import WarmStart
from bert.model import beam_search
from bert.prediction import translation
from bert.prediction.scores import Devices
from bert.prediction.translation import TranslationOptions

OPTIONS = TranslationOptions(beams=2)


@pytest.fixture(scope="module")
def model():
    return inference.LoadedModel(
        warm_start.encoder_decoder(sources.read("tests/golden/tiny_bert"), WarmStart("rnd2rnd"), seed=0)
    )


@pytest.fixture(scope="module")
def scorer(model):
    return model.scorer(batch_size=4)


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


def test_an_encoder_decoder_without_settings_of_a_task_translates(model, monkeypatch):
    """As transformers writes it; of an empty text there are candidates, too."""
    assert model.task == "translation"
    monkeypatch.setitem(model.extra, "translation", {"beams": 2, "best": 2})
    answers = model.predict(["", "a cat"])
    assert answers[0]["candidates"] == [{"text": "", "score": 0.0}]
    assert len(answers[1]["candidates"]) == 2


@pytest.mark.parametrize("texts", [np.array("a cat"), {"a cat"}, b"a cat", {"a": "cat"}, None], ids=repr)
def test_what_is_no_list_of_texts_is_refused(model, texts):
    with pytest.raises(InputError, match="list of texts"):
        model.translate(texts)


def test_a_model_that_ends_texts_with_another_token_is_refused(model, tmp_path):
    """Its search would not end where it was trained to."""
    config: Any = model.config
    with pytest.raises(InputError, match=r"eos_token_id is 7, .*3"):
        check_vocabulary(model.tokenizer, dataclasses.replace(config, end_id=7), tmp_path, model.report)
