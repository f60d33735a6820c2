"""Translations on the page: scores by length, and the pairs, the costliest first, are those of the run's files."""

import re

from bert.reports import runs, views
from bert.reports.charts import Sheet
from bert.reports.html import escaped
from tests.bert.reports.made_runs import NASTY, made_run

LENGTHS = [
    {"words": "1-8", "pairs": 1234, "bleu": 41.25, "nll": 1.5},
    {"words": "17+", "pairs": 0, "bleu": None, "nll": None},
]


def test_lengths_and_pairs(tmp_path):
    rows = [
        {"place": f"/data/a.en:{i}", "loss": i / 10, "text": [f"source {i}"], "truth": f"reference {i}",
         "predicted": {"translation": NASTY if i == 79 else f"text {i}"}}
        for i in range(80)
    ]  # fmt: skip
    values = {"task": "translation", "scores": {}, "by_length": LENGTHS}
    run = runs.read(made_run(tmp_path / "a", "translation", evaluation=values, rows=rows), "a")
    lengths, pairs = views.sections(run, Sheet())
    for shown in ("1-8", "1,234", "41.2500", "1.5000", "17+", "undefined"):
        assert shown in lengths
    shown = [int(number) for number in re.findall(r"a\.en:(\d+)", pairs)]
    assert shown[:30] == list(range(79, 49, -1))
    assert shown[30:] == sorted(shown[30:], reverse=True)
    assert (len(shown), len(set(shown)), max(shown[30:])) == (50, 50, 49)
    for number in shown[1:]:
        assert all(f"{what} {number}<" in pairs for what in ("source", "reference", "text"))
    assert escaped(NASTY) in pairs
    assert "<script" not in pairs


def test_an_older_run_has_no_lengths(tmp_path):
    run = runs.read(made_run(tmp_path / "a", "translation", evaluation={"task": "translation", "scores": {}}), "a")
    assert not any(views.sections(run, Sheet()))
