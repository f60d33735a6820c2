"""Sentences on the page: tags, probabilities and votes are those of the file and of `predict`; errors are named."""

import json

import numpy as np
import pytest

from bert.prediction.tagging import TaggingOptions
from bert.reports import page, runs
from tests.bert.prediction.table_model import tagger
from tests.bert.reports.made_runs import NASTY
from tests.bert.reports.reading import drawn, table
from tests.bert.reports.scored_files import jsonl, scored

pytestmark = pytest.mark.slow  # opens a browser

LABELS = ("O", "B-LOC", "I-LOC", "B-PER")
NAMES = {"new": "B-LOC", "york": "I-LOC", "paris": "B-LOC", "john": "B-PER"}
READING = TaggingOptions(max_length=16, window_step=6)
ROWS = [
    {"id": "label", "tokens": ["john", "in", "paris"], "tags": ["B-PER", "O", "B-PER"]},
    {"id": "right", "tokens": ["New", "YORK", NASTY], "tags": ["B-LOC", "I-LOC", "O"]},
    {"id": "borders", "tokens": ["new", "york", "\u0645\u0631\u062d\u0628\u0627"], "tags": ["B-LOC", "O", "O"]},
    {"id": "none", "tokens": ["cafe\u0301", "paris", "mat"], "tags": ["O", "O", "B-PER"]},
    {"id": "long", "tokens": ["a"] * 900 + ["paris"], "tags": ["O"] * 900 + ["B-LOC"]},
]


@pytest.fixture(scope="module")
def model():
    return tagger(LABELS, NAMES, extra=READING.to_json())


@pytest.fixture
def opened(show, model, tmp_path):
    folder, found = scored(tmp_path / "a", "tagging", model, jsonl(tmp_path / "held.jsonl", ROWS))
    return show(folder), found


def passage(id: str) -> str:
    return f"[...document.querySelectorAll('.passage')].find(p => p.textContent.includes('id {id}'))"


def words(browser, id: str) -> list[list]:
    """[word, tag, predicted tag, probability, votes] of each word."""
    numbers = "[t.textContent, t.dataset.truth, t.dataset.predicted, Number(t.dataset.p), t.dataset.votes ?? null]"
    return browser.run(f"[...{passage(id)}.querySelectorAll('.t')].map(t => {numbers})")


def test_words_have_their_tags_and_probabilities(opened, model):
    browser, _ = opened
    for row in ROWS[:4]:
        (told,) = model.predict([row])
        got = words(browser, row["id"])
        expected = zip(row["tokens"], row["tags"], told["tags"], strict=True)
        assert [word[:3] for word in got] == list(map(list, expected))
        assert [word[3] for word in got] == pytest.approx(told["probabilities"], abs=1e-4)
        wrong = browser.run(f"[...{passage(row['id'])}.querySelectorAll('.wrong')].map(t => t.textContent)")
        both = zip(row["tokens"], row["tags"], told["tags"], strict=True)
        assert wrong == [word for word, truth, said in both if truth != said]
    assert browser.run("document.querySelectorAll('script').length") == 3
    assert len(words(browser, "long")) < 50
    assert browser.run(f"{passage('long')}.querySelectorAll('.cut').length") == 1


def test_errors_are_named_and_counted(opened):
    browser, found = opened
    for id, said in {
        "label": "wrong label: paris PER, predicted paris LOC",
        "borders": "wrong borders: new LOC, predicted new york LOC",
        "none": "spurious: nothing, predicted paris LOC",
    }.items():
        assert said in browser.run(f"{passage(id)}.querySelector('.below').textContent")
    shown = {row[0]: int(row[1]) for row in table(browser, "Entities of the majority")}
    assert shown == found.values["errors"]
    assert (shown["right"], shown["missed"], shown["spurious"], shown["wrong label"]) == (3, 1, 1, 1)
    cells = {(cell["truth"], cell["predicted"]): cell["rows"] for cell in drawn(browser, "confusion matrix")}
    assert (cells["PER", "LOC"], cells["LOC", "LOC"], cells["(none)", "LOC"], cells["PER", "(none)"]) == (1, 3, 1, 1)
    each = {row[0]: row[1:] for row in table(browser, "Scores of each type")}
    for name, scores in found.values["classes"].items():
        assert float(each[name][0]) == scores["precision"]["value"]
    bins = drawn(browser, "calibration")
    assert sum(row["rows"] for row in bins) == sum(len(row["tokens"]) for row in ROWS)


def test_the_numbers_of_a_word_are_read_out_and_listed(opened):
    browser, _ = opened
    browser.run(f"{passage('label')}.querySelector('.words').focus()")
    for key in ("ArrowRight", "ArrowRight"):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=key)
    said = browser.run(f"{passage('label')}.querySelector('.readout').textContent")
    assert said.split() == ["paris", "truth", "B-PER", "predicted", "B-LOC", "p", "0.9000", "votes"]
    browser.run(f"{passage('label')}.querySelector('.token-numbers summary').click()")
    browser.run("new Promise(done => setTimeout(done, 50))")
    cells = "[...r.cells].map(c => c.textContent)"
    rows = browser.run(f"[...{passage('label')}.querySelector('tbody').rows].map(r => {cells})")
    assert rows[2] == ["paris", "B-PER", "B-LOC", "0.9000", ""]


def test_votes_of_a_crowd_are_shaded(show, model, tmp_path):
    (tmp_path / "crowd.txt").write_text("in O O O\nparis B-LOC O B-PER\n\njohn B-PER B-PER ?\n")
    folder, _ = scored(tmp_path / "a", "tagging", model, str(tmp_path / "crowd.txt"), tags="1-")
    browser = show(folder)
    each = "[t.textContent, t.style.getPropertyValue('--V'), t.dataset.votes]"
    votes = browser.run(f"[...document.querySelectorAll('.passage .t')].map(t => {each})")
    assert [each for each in votes if each[0] == "paris"] == [["paris", "0.6667", "O 1, B-LOC 1, B-PER 1"]]
    assert table(browser, "The model beside the annotators")[0][0] == "F1 with an annotator, mean"


def test_tags_that_mark_no_entities_have_their_confusion(show, tmp_path):
    extra = READING.to_json() | {"files": {"scheme": "plain"}}
    tags = tagger(("DET", "NOUN"), {"mat": "NOUN"}, other="DET", extra=extra)
    rows = [{"tokens": ["the", "mat", "cat"], "tags": ["DET", "NOUN", "NOUN"]}]
    folder, _ = scored(tmp_path / "a", "tagging", tags, jsonl(tmp_path / "held.jsonl", rows))
    browser = show(folder)
    cells = {(cell["truth"], cell["predicted"]): cell["rows"] for cell in drawn(browser, "confusion matrix")}
    assert cells == {("DET", "DET"): 1, ("DET", "NOUN"): 0, ("NOUN", "DET"): 1, ("NOUN", "NOUN"): 1}


def test_of_many_sentences_the_worst_are_shown(tmp_path, model):
    rng = np.random.default_rng(0)
    rows = [{"id": f"s{i}", "tokens": rng.choice(list(NAMES), 8).tolist(), "tags": ["O"] * 8} for i in range(3000)]
    folder, found = scored(tmp_path / "a", "tagging", model, jsonl(tmp_path / "held.jsonl", rows))
    made = page.page([runs.read(folder, "a")])
    assert len(made.encode()) < 5_000_000
    assert f"id s{int(np.argmax(found.losses))}<" in made
    assert "of 3,000 sentences, the most telling ones" in made
    assert json.loads((folder / "evaluation.json").read_text())["rows_scored"] == 3000
