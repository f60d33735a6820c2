"""Passages tagged with B, I and O: the model beside the annotators, and passages token by token with their votes."""

import pathlib
from typing import Any

from bert.reports import passages
from bert.reports.charts import COLORS, DIAGONAL, Chart, Sheet
from bert.reports.html import Html, fold, joined, number, section, short, table, tag
from bert.reports.passages import Passage
from bert.reports.runs import Run

_MEASURES = {"loss": "by loss", "annotators": "by disagreement of annotators", "model": "by the model's doubt"}


def sections(run: Run, sheet: Sheet) -> list[Html]:
    return [
        section("Model and annotators", *beside_annotators(run, "passages"), sheet.grid(_doubts(run))),
        section("Passages", _passages(run)),
    ]


def beside_annotators(run: Run, unit: str) -> list[Html]:
    """F1 of the model with annotators, beside that of the annotators with each other."""
    scores, each = run.scores, run.evaluation.get("annotators") or {}
    if len(each) < 2:
        return []
    rows: list[list[Any]] = [
        [words, _value(scores, of_model), _value(scores, of_annotators) if of_annotators else ""]
        for words, of_model, of_annotators in (
            ("F1 with an annotator, mean", "annotator_mean", "annotator_human"),
            ("F1 with the annotator it agrees with most", "annotator_best", ""),
            ("F1 with the majority of the votes", "annotator_majority", ""),
            ("Fleiss' kappa of the tags", "", "annotator_kappa"),
        )
    ]
    if doubts := run.evaluation.get("disagreement"):
        words = "Chance that two annotators tag a token differently"
        rows.append([words, number(doubts["model"]), number(doubts["annotators"])])
    caption = "The model beside the annotators: it cannot be expected to agree with them more than they do themselves"
    lines = [[name, number(row["value"]), number(row[unit])] for name, row in each.items()]
    lines.sort(key=lambda line: line[0])
    named = table("F1 of the model with each annotator", ["annotator", "F1", unit], lines)
    return [
        table(caption, ["", "model", "annotators among each other"], rows),
        fold(f"Each annotator ({len(each)})", named),
    ]


def _value(scores: dict[str, dict[str, Any]], name: str) -> Html | str:
    score = scores.get(name)
    return number(score["value"]) if score else ""


def _doubts(run: Run) -> list[Chart]:
    """The model's doubt against the annotators' disagreement, a point a passage."""
    points = [
        {"annotators": row["disagreement"]["annotators"], "model": row["disagreement"]["model"], "id": row["id"]}
        for row in run.rows
        if None not in row["disagreement"].values()
    ]
    if not points:
        return []
    axes: dict[str, Any] = {
        place: {"field": name, "type": "quantitative", "axis": {"title": words}}
        for place, name, words in (("x", "annotators", "annotators"), ("y", "model", "model"))
    }
    end = max(max(point["annotators"], point["model"]) for point in points)
    diagonal = DIAGONAL | {"data": {"values": [{"annotators": at, "model": at} for at in (0, end)]}}
    tooltip = [{"field": "id", "type": "nominal"}]
    tooltip += [{"field": name, "type": "quantitative", "format": ".4f"} for name in ("annotators", "model")]
    mark = {"type": "point", "filled": True, "size": 26, "opacity": 0.5, "color": COLORS[0]}
    dots = {"mark": mark, "encoding": {"tooltip": tooltip}}
    spec = {"data": {"values": points}, "encoding": axes, "layer": [diagonal, dots], "height": 260}
    note = "Chance that two annotators tag a token differently: by the votes, and by the model. Dashed: equal."
    return [Chart("disagreement", spec, note)]


def _passages(run: Run) -> Html:
    rows = [row for row in run.rows if "passage" in row]
    orders = [
        [row["loss"] for row in rows],
        *([row["disagreement"][name] for row in rows] for name in ("annotators", "model")),
    ]
    return passages.browser(run, map(_passage, passages.interleaved(rows, *orders)), _MEASURES, "questions", _key())


def _passage(row: dict[str, Any]) -> Passage:
    doubts = row["disagreement"]
    facts = [f"loss {short(row['loss'])}"]
    if doubts["annotators"] is not None:
        facts.append(f"disagreement {short(doubts['annotators'])}, model {short(doubts['model'])}")
    place = f"{pathlib.PurePath(row['place']).name}, id {row['id']}"
    heading = joined([tag("strong", row["question"]), *(tag("span", text, class_="soft") for text in (*facts, place))])
    predicted = [(span["text"], f"{span['probability']:.2f}") for span in row["predicted"]]
    below = [
        tag("output", class_="readout"),
        passages.answers("predicted", predicted),
        *(passages.answers(name, [(text, "") for text in texts]) for name, texts in row["truth"].items()),
        fold("Numbers of each token", class_="token-numbers"),
    ]
    return Passage(heading, _text(row["passage"]), joined(below), {"loss": row["loss"], **doubts})


def _text(parts: list[Any]) -> Html:
    """The passage; its style holds the numbers of each token, which passages.js reads."""
    voted = any(isinstance(part, list) and part[1] is not None for part in parts)
    classes = "text tokens" if voted else "text tokens unvoted"
    return tag(
        "div", *map(_part, parts), class_=classes, dir="auto", tabindex=0, role="group",
        aria_label="passage; arrow keys go from token to token",
    )  # fmt: skip


def _part(part: Any) -> Html:
    if not isinstance(part, list):
        return passages.shown(part)
    text, *shares, marks = part
    style = "".join(f"--{name}:{share:.4g};" for name, share in zip("BIbi", shares, strict=True) if share)
    classes = " ".join(filter(None, ["t", "v" if shares[0] else "", passages.span_classes(marks)]))
    return tag("span", passages.shown(text), class_=classes, style=style or None)


def _key() -> Html:
    """How to read a passage, in its own marks."""
    tokens = [["the", 0, 0, 0.02, 0.03, ""], ["old", 0.67, 0, 0.9, 0.05, "GP"], ["town", 0, 0.67, 0.04, 0.5, "gp"]]
    example = tag("span", *(joined([_part(token), " "]) for token in tokens), class_="text tokens", aria_hidden="true")
    words = (
        "Shade: share of the annotators' votes for B (also underlined) and for I. Line above: span of the majority; "
        "dashed line below: predicted span. Bar below: the model's p of B, I and O, from left to right."
    )
    box = tag("label", tag("input", type="checkbox", autocomplete="off"), " Numbers below each token (B, I, O)")
    return joined([example, words, " ", box])
