"""The page of what a translation reads: its data are the library's numbers, and in a browser it does what it says."""

import base64
import json
import pathlib
import re

import jax
import numpy as np
import pytest

import bert
from bert.architectures.encoder_decoder import EncoderDecoderConfig
from bert.architectures.recurrent_decoder import RecurrentDecoderConfig
from bert.errors import InputError
from bert.model.teacher_forcing import TeacherForced
from bert.pages import template, translation_page
from bert.prediction import source_attention, translation
from bert.prediction.scores import Scorer
from bert.tokenizer import bpe_training
from tasks.files.reports import ReadReport
from tasks.translation.evaluate import TranslationEvaluator
from tasks.translation.pairs import Pair, Pairs
from tests.bert.pages.browser import Browser

SOURCES = ["two men see dogs.", "dogs </script><script>alert(1)</script>", "a 🙂"]
TARGETS = ["zwei Männer sehen Hunde.", "Hunde <!--", ""]
LAYERS, HEADS = 2, 2


@pytest.fixture(scope="module")
def scorer() -> Scorer:
    """Drawn weights, large enough that attention is far from uniform, and pieces of several letters."""
    tokenizer = bpe_training.train([*SOURCES, *TARGETS] * 2, 280)
    sizes = {"max_position_embeddings": 64, "initializer_range": 0.5}
    config = EncoderDecoderConfig(tokenizer.vocab_size, 16, LAYERS, HEADS, 16, **sizes)
    batch = translation.encode_pairs(tokenizer, ["a"], ["b"]).assembled([np.array([0])], 16, 1, 1)
    params = jax.jit(TeacherForced(config).init)(jax.random.key(0), batch)["params"]
    return Scorer(params, config, tokenizer, source="runs/en-de/model")


@pytest.fixture(scope="module")
def read(scorer):
    return source_attention.of_texts(scorer, SOURCES, TARGETS)


@pytest.fixture(scope="module")
def page(scorer):
    return translation_page.of_texts(scorer, SOURCES, TARGETS)


def island(page: str) -> dict:
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_pieces_and_words_are_those_of_the_texts(read):
    """Joined they are the text; punctuation is a word, and so is the token that ends a text."""
    for found, source, target in zip(read, SOURCES, TARGETS, strict=True):
        assert "".join(found.source) == f"{source}</s>"
        assert "".join(found.target) == f"{target}</s>"
        assert found.weights.shape == (LAYERS * HEADS, len(found.target), len(found.source))
        np.testing.assert_allclose(found.weights.sum(-1), 1, atol=1e-6)
    assert max(read[0].source_words) == 5
    assert max(read[0].target_words) == 5
    assert len(read[0].source) > 6
    assert read[2].target == ["</s>"]


def test_a_sentence_has_the_same_weights_alone(scorer, read):
    (alone,) = source_attention.of_texts(scorer, SOURCES[:1], TARGETS[:1])
    np.testing.assert_allclose(alone.weights, read[0].weights, rtol=0, atol=1e-5)


def test_data_are_the_numbers_of_the_library(read, page):
    data = island(page)
    assert (data["model"], data["layers"], data["heads"], data["total"]) == ("en-de", LAYERS, HEADS, 3)
    for number, (sentence, found) in enumerate(zip(data["sentences"], read, strict=True), 1):
        weights = np.frombuffer(base64.b64decode(sentence["weights"]), "<u2").reshape(found.weights.shape) / 65535
        np.testing.assert_allclose(weights, found.weights, rtol=0, atol=0.51 / 65535)
        assert (sentence["number"], sentence["source"], sentence["target"]) == (number, found.source, found.target)
    assert page.count("<script") == page.count("</script") == 2
    assert "<!--" not in page


def test_a_page_holds_what_has_room_and_fits_the_model(scorer, page, monkeypatch):
    """Without a long pair, and only the first pairs where the page would be too large; it says of how many."""
    long = "men " * 80
    assert [s["number"] for s in island(translation_page.of_texts(scorer, [long, "a"], ["b", "b"]))["sentences"]] == [2]
    monkeypatch.setattr(template, "LIMIT", len(page.encode()) - 10)
    small = translation_page.of_texts(scorer, SOURCES, TARGETS)
    assert len(small.encode()) <= template.LIMIT
    assert (len(island(small)["sentences"]), island(small)["total"]) == (2, 3)
    monkeypatch.setattr(translation_page, "SENTENCES", 1)
    assert len(island(translation_page.of_texts(scorer, SOURCES, TARGETS))["sentences"]) == 1


def test_a_decoder_without_attention_is_refused_before_anything_is_translated(scorer, monkeypatch):
    sizes = dict.fromkeys(("embedding_size", "hidden_size", "decoder_size", "output_size"), 16)
    config = RecurrentDecoderConfig(scorer.config.vocab_size, **sizes, score="none")
    batch = translation.encode_pairs(scorer.tokenizer, ["a"], ["b"]).assembled([np.array([0])], 16, 1, 1)
    params = jax.jit(TeacherForced(config).init)(jax.random.key(0), batch)["params"]
    model = bert.from_params(config, params | {"head": {}}, scorer.tokenizer, extra={"translation": {}})
    evaluator = TranslationEvaluator(model, {"attention": "page.html"})
    monkeypatch.setattr(translation, "translations", None)
    pairs = Pairs([Pair("a", None, "new.en:1", 0)], ReadReport("new.en", 1, 1))
    with pytest.raises(InputError, match=r"score is 'none'.*no attention"):
        evaluator.write_predictions(pathlib.Path("new.txt"), pairs, "txt")


# ---- in a browser ----


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


def choose(browser: Browser, id: str, value: int) -> None:
    browser.run(f"{{$('{id}').value = {value}; $('{id}').dispatchEvent(new Event('change'))}}")


def shown(browser: Browser) -> np.ndarray:
    """The weights in the fields' labels, [rows, columns]."""
    rows = browser.run(
        "[...document.querySelectorAll('#map tbody tr')].map((row) => [...row.querySelectorAll('td')]"
        ".map((cell) => Number(cell.ariaLabel.split(': ').at(-1))))"
    )
    return np.array(rows)


def by_words(found, weights_US: np.ndarray) -> np.ndarray:
    """Summed over the pieces of a word of the source, averaged over those of the target."""
    rows, columns = (np.eye(max(words) + 1)[words] for words in (found.target_words, found.source_words))
    return (rows / rows.sum(0)).T @ weights_US @ columns


def key(browser: Browser, name: str) -> None:
    for kind in ("rawKeyDown", "keyUp"):
        browser.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)


@pytest.mark.slow
def test_the_page_in_a_browser(browser, page, read, tmp_path):
    """What is shown equals the library's weights: of each layer and head and of their means, by words and by pieces;
    the mouse and the keyboard tell a weight; nothing is asked for, and nothing complains."""
    path = tmp_path / "page.html"
    path.write_text(page)
    browser.open(path)
    found = read[0]
    np.testing.assert_allclose(shown(browser), by_words(found, found.weights.mean(0)), rtol=0, atol=0.6e-3)
    browser.run("$('words').click()")
    maps = found.weights.reshape(LAYERS, HEADS, *found.weights.shape[1:])
    for layer, head, wanted in ((1, 0, maps[0].mean(0)), (0, 2, maps[:, 1].mean(0)), (2, 1, maps[1, 0])):
        choose(browser, "layer", layer)
        choose(browser, "head", head)
        np.testing.assert_allclose(shown(browser), wanted, rtol=0, atol=0.6e-3)
    browser.run("$('words').click()")

    box = browser.run("JSON.stringify(document.querySelector('#map tbody tr:nth-child(2) td').getBoundingClientRect())")
    middle = {axis: json.loads(box)[axis] + 5 for axis in ("x", "y")}
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", **middle)
    words = by_words(found, maps[1, 0])
    assert browser.run("$('shown').textContent") == f"“Männer” reads “two” with weight {words[1, 0]:.3f}"
    browser.run("document.querySelector('#map [tabindex=\"0\"]').focus()")
    for name in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowUp"):
        key(browser, name)
    assert browser.run("$('shown').textContent") == f"“Männer” reads “men” with weight {words[1, 1]:.3f}"
    assert browser.run("document.querySelectorAll('#map [tabindex=\"0\"]').length") == 1

    browser.run("$('next').click()")
    assert browser.run("[...document.querySelectorAll('#map th[scope=row]')].map((x) => x.textContent)")[0] == "Hunde"
    assert "alert" in browser.run("document.querySelector('#map').textContent")
    browser.run("$('next').click()")
    assert browser.run("$('next').disabled && !$('before').disabled")
    assert "🙂" in browser.run("[...document.querySelectorAll('#map th[scope=col]')].map((x) => x.textContent)")
    assert (browser.requests, browser.errors) == ([path.as_uri()], [])
