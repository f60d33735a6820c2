"""The page of what captions read: its data are the library's numbers, and in a browser it shows them."""

import base64
import json
import re

import jax
import numpy as np
import pytest

from bert.architectures.captions import PictureTransformerConfig
from bert.errors import InputError
from bert.model.teacher_forcing import TeacherForced
from bert.pages import caption_page, template
from bert.prediction import captioning
from bert.prediction.captioning import CaptioningOptions
from bert.prediction.scores import Scorer
from bert.tokenizer import bpe_training
from tests.bert.pages.browser import Browser

CAPTIONS = ["a red circle", "</script><script>alert(1)</script>"]
NAMES = ["a.png", "<b>"]
PICTURES = list(np.random.default_rng(0).integers(0, 256, (2, 8, 12, 3), np.uint8))
OPTIONS = CaptioningOptions(mean=127.0, deviation=70.0)


def drawn(**changes) -> Scorer:
    tokenizer = bpe_training.train(CAPTIONS * 2, 280)
    sizes = {"max_position_embeddings": 64, "initializer_range": 0.5, "height": 8, "width": 12, "patch_size": 4}
    config = PictureTransformerConfig(tokenizer.vocab_size, 16, 2, 2, 16, **sizes | changes)
    scorer = Scorer({}, config, tokenizer, source="runs/scenes/model")
    batch = captioning.encode_pairs(scorer, PICTURES[:1], ["a"], OPTIONS).assembled([np.array([0])], 16, 1, 1)
    params = jax.jit(TeacherForced(config).init)(jax.random.key(0), batch)["params"]
    return Scorer(params, config, tokenizer, source="runs/scenes/model")


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    return drawn()


@pytest.fixture(scope="module")
def page(scorer):
    return caption_page.of_captions(scorer, OPTIONS, PICTURES, CAPTIONS, NAMES)


@pytest.fixture(scope="module")
def read(scorer):
    return captioning.attention(scorer, PICTURES, CAPTIONS, OPTIONS)


def island(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_data_are_the_numbers_of_the_library(page, read):
    data = island(page)
    assert [data[name] for name in ("model", "layers", "heads", "total", "rows", "columns")] == [
        "scenes",
        2,
        2,
        2,
        2,
        3,
    ]
    for entry, found, picture, name in zip(data["pictures"], read, PICTURES, NAMES, strict=True):
        weights = np.frombuffer(base64.b64decode(entry["weights"]), "<u2").reshape(found.weights.shape) / 65535
        np.testing.assert_allclose(weights, found.weights, rtol=0, atol=0.51 / 65535)
        pixels = np.frombuffer(base64.b64decode(entry["pixels"]), "u1").reshape(picture.shape)
        np.testing.assert_array_equal(pixels, picture)
        assert (entry["name"], entry["target"]) == (name, found.target)
    assert page.count("<script") == page.count("</script") == 2


def test_a_page_holds_what_has_room(scorer, page, monkeypatch):
    """It says of how many; and a model that attends to nothing has none."""
    monkeypatch.setattr(template, "LIMIT", len(page.encode()) - 10)
    small = caption_page.of_captions(scorer, OPTIONS, PICTURES, CAPTIONS, NAMES)
    assert (len(island(small)["pictures"]), island(small)["total"]) == (1, 2)
    with pytest.raises(InputError, match=r"reads is 'mean'.*'grid'"):
        caption_page.of_captions(drawn(reads="mean"), OPTIONS, PICTURES, CAPTIONS, NAMES)


@pytest.mark.slow
def test_the_page_in_a_browser(page, read, tmp_path):
    """Labels name each word's largest weight, of the means and of one head; nothing is asked for, none complains."""
    path = tmp_path / "page.html"
    path.write_text(page)
    browser = Browser(tmp_path / "profile")
    labels = "[...document.querySelectorAll('#maps canvas')].map((canvas) => canvas.ariaLabel)"

    def expected(found, map_UXY):
        words = [np.flatnonzero(np.array(found.target_words) == word) for word in range(max(found.target_words) + 1)]
        return [map_UXY[pieces].mean(0).max() for pieces in words]

    try:
        browser.open(path)
        shown = browser.run(labels)
        assert shown[0] == "a.png"
        assert [label.split(":")[0] for label in shown[1:]] == ["a", "red", "circle", "</s>"]
        values = [float(label.split(", ")[-1]) for label in shown[1:]]
        np.testing.assert_allclose(values, expected(read[0], read[0].weights.mean(0)), atol=0.6e-3)
        for id, value in (("layer", 2), ("head", 1)):
            browser.run(f"{{$('{id}').value = {value}; $('{id}').dispatchEvent(new Event('change'))}}")
        values = [float(label.split(", ")[-1]) for label in browser.run(labels)[1:]]
        np.testing.assert_allclose(values, expected(read[0], read[0].weights[2]), atol=0.6e-3)
        browser.run("$('next').click()")
        assert browser.run("$('next').disabled && !$('before').disabled")
        assert "alert" in browser.run("document.querySelector('#maps').textContent")
        assert (browser.requests, browser.errors) == ([path.as_uri()], [])
    finally:
        browser.close()
