"""Answers in their passages, and the curve of thresholds: the numbers are those of the official scores."""

import json

import numpy as np
import pytest

from bert.prediction.squad import SquadOptions
from bert.reports import page, runs
from tasks.metrics import span_metrics
from tasks.squad import report_rows
from tests.bert.prediction.table_model import answerer
from tests.bert.reports.made_runs import NASTY
from tests.bert.reports.reading import drawn, table
from tests.bert.reports.scored_files import ODD, scored

pytestmark = pytest.mark.slow  # opens a browser

READING = SquadOptions(max_length=24, window_step=6, max_question=8, no_answer=True, threshold=1.0, best=3)
CITY = f"In  PARIS \r\n the city . {NASTY} in France"


def squad(*rows) -> str:
    """(id, question, context, answers as texts of it) each."""
    paragraphs = [
        {"context": context, "qas": [{"id": id, "question": question, "answers": [
            {"text": text, "answer_start": context.index(text)} for text in answers]}]}
        for id, question, context, answers in rows
    ]  # fmt: skip
    return json.dumps({"version": "2", "data": [{"title": "t", "paragraphs": paragraphs}]})


ROWS = [
    ("right", NASTY, CITY, ["PARIS", "PARIS \r\n the city"]),
    ("late", "Where is it?", "a " * 900 + "city of mary", ["city of mary"]),
    ("silent", "Where?", "the mat is in France", ["France"]),
    ("none", "", "the mat is in France", []),
    ("wrong", "Who is it?", "john in paris", []),
    ("odd", "Where?", ODD, ["\U0001f469\u200d\U0001f680 cafe\u0301"]),
]


@pytest.fixture(scope="module")
def model():
    return answerer({"paris": 8.0, "city": 3.0}, {"paris": 2.5, "city": 2.0}, nothing=6.0, extra=READING.to_json())


@pytest.fixture
def opened(show, model, tmp_path):
    (tmp_path / "dev.json").write_text(squad(*ROWS))
    folder, found = scored(tmp_path / "a", "squad", model, str(tmp_path / "dev.json"))
    return show(folder), found


def passage(id: str) -> str:
    return f"[...document.querySelectorAll('.passage')].find(p => p.textContent.includes('id {id}'))"


def marked(browser, id: str, mark: str) -> str:
    return browser.run(f"[...{passage(id)}.querySelectorAll('.text .{mark}')].map(t => t.textContent).join('')")


def test_answers_stand_in_their_passages(opened, model):
    browser, found = opened
    order = browser.run(
        "[...document.querySelectorAll('.passage .heading')].map(h => h.textContent.match(/id (\\w+)/)[1])"
    )
    losses = {row[0]: found.row_of(i)["loss"] for i, row in enumerate(ROWS)}
    assert order == sorted(losses, key=lambda id: -losses[id])
    for id, question, context, golds in ROWS:
        (told,) = model.predict([(question, context)])
        assert marked(browser, id, "p") == told["answer"].replace("\r\n", "\n")
        assert f"probability {told['probability']:.2f}" in browser.run(f"{passage(id)}.textContent")
        if golds:
            assert marked(browser, id, "g") == max(golds, key=len).replace("\r\n", "\n")
    assert browser.run(f"{passage('right')}.querySelector('.text').textContent") == CITY.replace("\r\n", "\n")
    assert browser.run("document.querySelectorAll('script').length") == 3
    late = browser.run(f"{passage('late')}.querySelector('.text').textContent")
    assert late.startswith(" … ")
    assert len(late) < 400


def test_the_curve_of_thresholds_is_that_of_the_official_scores(opened, model):
    browser, found = opened
    rows = drawn(browser, "threshold of no answer")
    answers = {id: golds for id, _, _, golds in ROWS}
    told = model.predict([(question, context) for _, question, context, _ in ROWS], details=True)
    spans = {
        id: next(c["answer"] for c in one["candidates"] if c["start"] is not None)
        for id, one in zip(answers, told, strict=True)
    }
    odds = {id: one["null_odds"] for id, one in zip(answers, told, strict=True)}
    assert {row["threshold"] for row in rows} == set(odds.values())
    for row in rows:
        official = span_metrics.squad_scores(answers, spans, odds, row["threshold"])
        assert row["score"] == pytest.approx(official[{"F1": "f1", "exact match": "exact"}[row["measure"]]])
    assert found.values["thresholds"]["chosen"] == READING.threshold


def test_kinds_of_questions_have_their_scores(opened):
    browser, found = opened
    shown = {row[0]: [float(value) for value in row[1:]] for row in table(browser, "Scores by words of the answer")}
    assert sum(row[0] for row in shown.values()) == len(ROWS)
    f1 = {row[0]: found.row_of(i)["f1"] for i, row in enumerate(ROWS)}
    assert shown["no answer"][2] == pytest.approx((f1["none"] + f1["wrong"]) / 2)
    assert shown["3 to 5"][2] == pytest.approx(f1["late"])
    words = {row[0]: float(row[1]) for row in table(browser, "Scores by first word")}
    assert words["where?"] == 2


@pytest.mark.parametrize(
    ("golds", "predicted", "parts"),
    [
        ([(0, 2)], [(1, 3)], [["a", "G"], ["b", "gP"], ["c", "p"], "def"]),
        ([(0, 2), (2, 4)], [], [["ab", "G"], ["cd", "G"], "ef"]),
        ([], [], ["abcdef"]),
    ],
)
def test_marks_are_cut_where_spans_begin_and_end(golds, predicted, parts):
    assert report_rows.passage("abcdef", golds, predicted) == parts


def test_of_many_questions_the_worst_are_shown(tmp_path, model):
    rng = np.random.default_rng(0)
    rows = []
    for i in range(3000):
        context = " ".join(rng.choice(["in", "mat", "and", "city", "paris"], 5))
        rows.append((f"q{i}", "Where?", context, [context.split()[0]]))
    (tmp_path / "dev.json").write_text(squad(*rows))
    folder, found = scored(tmp_path / "a", "squad", model, str(tmp_path / "dev.json"))
    made = page.page([runs.read(folder, "a")])
    assert len(made.encode()) < 5_000_000
    assert f"id q{int(np.argmax(found.losses))}<" in made
    assert "of 3,000 questions, the most telling ones" in made
    assert len(found.values["thresholds"]["points"]) <= report_rows.POINTS
