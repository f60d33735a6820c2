"""Pretraining: the masks of the probes, filled before and after training."""

from bert.reports.charts import Sheet
from bert.reports.html import Html, joined, section, table, tag
from bert.reports.runs import Run


def sections(run: Run, sheet: Sheet) -> list[Html]:
    del sheet
    probes = run.evaluation.get("probes") or []
    rows = [[probe["text"], _words(probe["before"]), _words(probe["after"])] for probe in probes]
    caption = "The likeliest words for each [MASK] of config.probes, with their probabilities"
    return [section("Filled masks", table(caption, ["text", "before training", "after"], rows) if rows else "")]


def _words(answer: list[tuple[str, float]] | None) -> Html:
    return joined([tag("small", f"{word} {p:.2f}") for word, p in answer or ()])
