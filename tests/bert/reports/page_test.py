"""The page in a browser: its numbers are those of the files, texts stay text, clicks do what they say."""

import json

import numpy as np
import pytest

from bert.reports import vega
from tests.bert.reports.made_runs import NASTY, SCORES, logged, made_run
from tests.bert.reports.reading import drawn, table

pytestmark = pytest.mark.slow  # opens a browser


def test_the_numbers_are_those_of_the_files(show, tmp_path):
    folder = made_run(tmp_path / "a", "classification", evaluation=SCORES)
    browser = show(folder)
    for split, metric in (("train", "loss"), ("validation", "cross_entropy")):
        got = [(row["step"], row["value"]) for row in drawn(browser, "loss") if row["split"] == split]
        assert got == [(line["step"], line[metric]) for line in logged(folder, split)]
    rows = {row[0]: row[1:] for row in table(browser, "Scores of the validation part")}
    assert rows["accuracy"][:3] == [repr(0.8123456789), "0.7000 to 0.9000", "0.5"]
    assert rows["matthews"] == ["", "", "", "all rows have one class"]
    browser.run("document.querySelector('details.numbers').open = true")
    numbers = table(browser, "train")
    assert [float(row[1]) for row in numbers] == [line["loss"] for line in logged(folder, "train")]


def test_texts_stay_text(show, tmp_path):
    browser = show(made_run(tmp_path / "a", "classification", evaluation=SCORES, text=NASTY))
    assert NASTY in browser.run("document.querySelector('header pre').textContent")
    assert browser.run("document.querySelectorAll('script').length") == 3
    assert browser.run("document.querySelectorAll('b').length") == 0
    assert NASTY in [row[1] for row in table(browser, "All settings")]


def test_each_chart_is_drawn_and_described_and_no_text_is_cut_off(show, tmp_path):
    browser = show(made_run(tmp_path / "a", "classification", evaluation=SCORES))
    charts = browser.run("document.querySelectorAll('.plot').length")
    assert charts == browser.run("document.querySelectorAll('.plot svg').length") >= 6
    assert browser.run("[...document.querySelectorAll('.plot')].every(p => p.ariaLabel)")
    assert browser.run("document.querySelectorAll('table').length") == browser.run(
        "document.querySelectorAll('table > caption').length"
    )
    for width in (1100, 390):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        assert browser.run("document.documentElement.scrollWidth") <= width
    browser.call("Emulation.clearDeviceMetricsOverride")


def test_axes_have_the_numbers_of_their_ticks(show, tmp_path):
    """The labels of an axis are at equal distances; without a precision, that of 0.12 is rounded to 0.1."""
    folder = made_run(tmp_path / "a", "classification", evaluation=SCORES)
    lines = [{"step": 10 * i, "split": "validation", "accuracy": a} for i, a in enumerate((0.0035, 0.05, 0.1112), 1)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    browser = show(folder)
    labels = (
        "[...document.querySelectorAll('.plot .role-axis-label')].map(g => [...g.children].map(t => t.textContent))"
    )
    steps, values = browser.run(labels)
    for axis in (steps, values):
        ticks = [float(label) for label in axis]
        assert np.diff(ticks) == pytest.approx(np.full(len(ticks) - 1, ticks[1] - ticks[0]))
    assert float(values[-1]) >= 0.1112


def test_long_names_do_not_widen_the_page(show, tmp_path):
    long = "x" * 5000
    scores = SCORES["scores"] | {f"f1:{long}": {"value": 0.5}, "f1": {"value": 0.25, "label": long}}
    browser = show(made_run(tmp_path / "a", "classification", evaluation=SCORES | {"scores": scores}, text=long))
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    names = [row[0] for row in table(browser, "Scores of the validation part")]
    assert [len(name) < 90 and "x…x" in name for name in names if name.startswith("f1")] == [True, True]
    assert [row[1] for row in table(browser, "All settings") if row[0] == "text"] == [long]


def test_runs_are_overlaid_and_a_click_on_the_legend_picks_one(show, tmp_path):
    a = made_run(tmp_path / "a", "classification", evaluation=SCORES, epochs=3)
    b = made_run(tmp_path / "b", "classification", seed=1, epochs=4)
    browser = show(a, b)
    assert {row["series"] for row in drawn(browser, "loss")} == {"a", "b"}
    assert ["epochs", "3", "4"] in table(browser, "Settings that are not the same")
    accuracy = next(row for row in table(browser, "Scores of the validation parts") if row[0] == "accuracy")
    assert accuracy[1:] == [repr(0.8123456789), repr(logged(b, "validation")[-1]["accuracy"])]
    opacity = "[...document.querySelectorAll('figure .mark-line path')].slice(0, 4).map(p => p.getAttribute('opacity'))"
    assert set(browser.run(opacity)) == {"1"}
    place = browser.run(
        "(() => { const labels = [...document.querySelectorAll('figure .role-legend-label text')];"
        "const label = labels.find(t => t.textContent === 'a'); label.scrollIntoView({ block: 'center' });"
        "const r = label.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
    browser.run("new Promise(done => setTimeout(done, 200))")
    assert set(browser.run(opacity)) == {"1", "0.12"}


def test_folds_open_on_a_click_and_by_keyboard(show, tmp_path):
    browser = show(made_run(tmp_path / "a", "classification", evaluation=SCORES))
    assert browser.run("document.querySelector('details.numbers').open") is False
    browser.run("document.querySelector('details.numbers summary').click()")
    assert browser.run("document.querySelector('details.numbers table').getBoundingClientRect().height") > 0


def test_a_long_run_stays_small_and_says_that_points_are_left_out(show, tmp_path):
    folder = made_run(tmp_path / "a", "classification", steps=30_000, evaluation=SCORES)
    browser = show(folder)
    train = [row["value"] for row in drawn(browser, "loss") if row["split"] == "train"]
    assert len(train) <= 500
    losses = [line["loss"] for line in logged(folder, "train")]
    assert (min(train), max(train)) == (min(losses), max(losses))
    assert "15,000 points" in browser.run("document.body.textContent")


def test_the_scripts_are_made_once(cache, monkeypatch):
    vega.scripts.cache_clear()
    first = vega.scripts(cache)
    vega.scripts.cache_clear()
    import vl_convert

    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda *_: pytest.fail("made again"))
    assert vega.scripts(cache) == first
