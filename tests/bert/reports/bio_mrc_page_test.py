"""Passages on the page: votes and probabilities are those of the file and of `predict`; texts stay text; clicks."""

import json

import numpy as np
import pytest

from bert.prediction.bio_mrc import BioMrcOptions
from bert.reports import page, runs
from tests.bert.prediction.table_model import tagger
from tests.bert.reports.made_runs import NASTY
from tests.bert.reports.reading import drawn, table
from tests.bert.reports.scored_files import ODD, asked, jsonl, scored

pytestmark = pytest.mark.slow  # opens a browser

READING = BioMrcOptions(max_length=24, window_step=6, max_question=8)
CITY = f"In  PARIS \r\n the City . {NASTY} in France"
ROWS = [
    asked("right", CITY, NASTY, anna=["PARIS \r\n the City", "France"], ben=["PARIS \r\n the City", "France"]),
    asked("half", "in paris and france", anna=["paris"], ben=[], cleo=["paris"]),
    asked("odd", ODD, anna=["\U0001f469\u200d\U0001f680 cafe\u0301"], ben=[]),
    asked("long", "a " * 900 + "in france", anna=["france"]),
]


@pytest.fixture(scope="module")
def model():
    return tagger(("O", "I", "B"), {"paris": "B", "france": "B", "city": "I", "the": "I"}, extra=READING.to_json())


@pytest.fixture
def opened(show, model, tmp_path):
    folder, found = scored(tmp_path / "a", "bio_mrc", model, jsonl(tmp_path / "held.jsonl", ROWS))
    return show(folder), found


def tokens(browser, id: str) -> list[tuple[str, dict[str, float]]]:
    """Text, and the numbers in the style, of each token of a passage."""
    return [
        (text, dict(zip("BIbi", numbers, strict=True)))
        for text, numbers in browser.run(
            f"[...{passage(id)}.querySelectorAll('.t')].map(t => [t.textContent, "
            "['--B', '--I', '--b', '--i'].map(n => Number(t.style.getPropertyValue(n) || 0))])"
        )
    ]


def passage(id: str) -> str:
    return f"[...document.querySelectorAll('.passage')].find(p => p.textContent.includes('id {id}'))"


def test_each_token_has_its_votes_and_probabilities(opened, model):
    browser, _ = opened
    for row in ROWS[:3]:
        (told,) = model.predict([(row["question"], row["context"])], details=True)
        got = tokens(browser, row["id"])
        assert len(got) == len(told["tokens"])
        for (text, numbers), token in zip(got, told["tokens"], strict=True):
            assert text == row["context"][token["start"] : token["end"]]
            assert [numbers["b"], numbers["i"]] == pytest.approx([token["B"], token["I"]], abs=1e-4)
    half = dict(tokens(browser, "half"))
    assert half["paris"]["B"] == pytest.approx(2 / 3, abs=1e-4)
    assert (half["in"]["B"], half["france"]["B"], half["paris"]["I"]) == (0, 0, 0)
    spans = "[...{}.querySelectorAll('.{}')].map(t => t.textContent)"
    assert browser.run(spans.format(passage("half"), "g")) == ["paris"]
    assert browser.run(spans.format(passage("half"), "P")) == ["paris", "france"]


def test_texts_stay_text_and_read_as_they_are_written(opened):
    browser, _ = opened
    assert browser.run("document.querySelectorAll('script').length") == 3
    shown = browser.run(f"{passage('right')}.querySelector('.text').textContent")
    assert shown == CITY.replace("\r\n", "\n")
    odd = browser.run(f"{passage('odd')}.querySelector('.text').textContent")
    assert odd == ODD.replace("\r\n", "\n").replace("\u202e", "\\u202e").replace("\u202c", "\\u202c")
    assert browser.run(f"getComputedStyle({passage('odd')}.querySelector('.text')).direction") == "rtl"


def test_of_a_long_passage_the_marked_stretches_are_shown(opened):
    browser, _ = opened
    got = tokens(browser, "long")
    assert len(got) < 200
    assert got[-1][0] == "france"
    assert browser.run(f"{passage('long')}.querySelectorAll('.cut').length") == 1


def test_filter_order_and_the_numbers_of_tokens(opened):
    browser, found = opened
    order = (
        "[...document.querySelectorAll('.passage')].filter(p => !p.hidden)"
        ".map(p => p.querySelector('.heading').textContent.match(/id (\\w+)/)[1])"
    )
    losses = {row["id"]: found.row_of(i)["loss"] for i, row in enumerate(ROWS)}
    assert browser.run(order) == sorted(losses, key=lambda id: -losses[id])
    change = (
        "(e => {{ e.value = {}; e.dispatchEvent(new Event('{}', {{bubbles: true}})) }})(document.querySelector('{}'))"
    )
    browser.run(change.format("'annotators'", "change", ".passages select"))
    doubts = {row["id"]: found.row_of(i)["disagreement"]["annotators"] for i, row in enumerate(ROWS)}
    assert browser.run(order)[:2] == sorted(doubts, key=lambda id: -(doubts[id] or 0))[:2]
    browser.run(change.format("'PARIS'", "input", ".passages input[type=search]"))
    assert set(browser.run(order)) == {"right", "half", "odd"}
    assert browser.run("document.querySelector('.passages output').textContent") == "3 of these 4 contain the text."
    browser.run(f"{passage('half')}.querySelector('.tokens').focus()")
    for _ in range(2):
        for kind in ("keyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight")
    assert browser.run(f"{passage('half')}.querySelector('.readout').textContent").split()[:4] == [
        "and",
        "votes",
        "B",
        "0.0000",
    ]
    browser.run(f"{passage('half')}.querySelector('.token-numbers summary').click()")
    browser.run("new Promise(done => setTimeout(done, 50))")
    rows = browser.run(
        f"[...{passage('half')}.querySelector('tbody').rows].map(r => [...r.cells].map(c => c.textContent))"
    )
    assert rows[1] == ["paris", "0.6667", "0.0000", "0.3333", "0.9000", "0.0500", "0.0500"]
    browser.run("document.querySelector('.passages input[type=checkbox]').click()")
    below = browser.run(f"{passage('half')}.querySelectorAll('.t')[1].dataset.below")
    assert below == ".90\n.05\n.05"


def test_the_model_stands_beside_the_annotators(opened):
    browser, found = opened
    rows = {row[0]: row[1:] for row in table(browser, "The model beside the annotators")}
    scores = found.values["scores"]
    assert [float(value) for value in rows["F1 with an annotator, mean"]] == [
        scores["annotator_mean"]["value"], scores["annotator_human"]["value"]
    ]  # fmt: skip
    points = {row["id"]: (row["annotators"], row["model"]) for row in drawn(browser, "disagreement")}
    assert set(points) == {"right", "half", "odd"}  # of "long" there is one annotator
    shares = np.array([[0, 1], [2 / 3, 1 / 3], [0, 1], [0, 1]])
    assert points["half"][0] == pytest.approx((1 - (shares**2).sum(1)).mean(), abs=1e-6)
    means = found.values["disagreement"]
    assert means["model"] == pytest.approx(np.mean([model for _, model in points.values()]))


def test_of_many_passages_the_worst_and_the_most_disputed_are_kept(tmp_path, model):
    rng = np.random.default_rng(0)
    words = ["in", "paris", "and", "france", "the", "city", "mat"]
    rows = []
    for i in range(3000):
        context = " ".join(rng.choice(words, 6))
        marks = {"anna": ["paris"], "ben": []} if i == 1777 else {"anna": []}
        rows.append(asked(f"q{i}", context + " paris", **marks))
    folder, found = scored(tmp_path / "a", "bio_mrc", model, jsonl(tmp_path / "held.jsonl", rows))
    run = runs.read(folder, "a")
    assert len(run.rows) < 2200
    assert "q1777" in {row["id"] for row in run.rows if "passage" in row}  # the only one with two annotators
    made = page.page([run])
    assert len(made.encode()) < 5_000_000
    worst = int(np.argmax(found.losses))
    assert f"id q{worst}" in made
    assert "of 3,000 questions, the most telling ones" in made
    assert json.loads((folder / "evaluation.json").read_text())["rows_scored"] == 3000
