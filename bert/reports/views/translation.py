"""Translations: scores by the length of the source, the pairs that cost the model most, and a few of all others."""

import pathlib
from typing import Any

from bert.reports.charts import Sheet
from bert.reports.html import Html, number, paragraph, section, table
from bert.reports.runs import Run

WORST, OTHERS = 30, 20  # pairs shown


def sections(run: Run, sheet: Sheet) -> list[Html]:
    del sheet
    lengths = section("Lengths of sources", _lengths(run.evaluation.get("by_length") or []))
    return [lengths, written(run, "Translations", "source", "translation")]


def written(run: Run, title: str, source: str, name: str) -> Html:
    """The pairs that cost the model most, and a few of all others; ``name``: of what the model wrote."""
    ranked = sorted(run.rows, key=lambda row: -(float("inf") if row["loss"] is None else row["loss"]))
    worst, rest = ranked[:WORST], ranked[WORST:]
    others = [rest[i * len(rest) // OTHERS] for i in range(min(OTHERS, len(rest)))] if len(rest) > OTHERS else rest
    why = "The first are those whose references the model finds least likely: other wordings, errors of the data, "
    return section(
        title,
        _pairs(f"The {len(worst)} pairs with the most nats a token", worst, source, name),
        _pairs("Others, from more nats to fewer, at equal distances", others, source, name),
        paragraph(f"{why}and its own.", class_="soft") if worst else "",
    )


def _lengths(rows: list[dict[str, Any]]) -> Html:
    lines = [[row["words"], number(row["pairs"]), number(row["bleu"]), number(row["nll"])] for row in rows]
    header = ["words of the source", "pairs", "BLEU", "nll"]
    return table("BLEU, and nats a token of the reference, by words of the source", header, lines) if rows else Html("")


def _pairs(caption: str, rows: list[dict[str, Any]], source: str, name: str) -> Html:
    lines = [
        [
            pathlib.PurePath(row["place"]).name,
            number(row["loss"]),
            row["text"][0],
            row["truth"],
            row["predicted"][name],
        ]
        for row in rows
    ]
    header = ["place", "nats a token", source, "reference", name]
    return table(caption, header, lines) if rows else Html("")
