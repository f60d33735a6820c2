"""Answers in their passages: scores by threshold and by kind of question, and the worst answers with their places."""

import pathlib
from typing import Any

from bert.reports import passages
from bert.reports.charts import SOFT, Chart, Sheet, legend, series_scale
from bert.reports.html import Html, joined, number, section, short, table, tag
from bert.reports.passages import Passage
from bert.reports.runs import Run
from bert.reports.views.classification import calibration_chart

_MEASURES = {"loss": "the surest of the wrong first", "probability": "by probability", "f1": "right ones first"}


def sections(run: Run, sheet: Sheet) -> list[Html]:
    values = run.evaluation
    charts = [_thresholds(values["thresholds"])] if (values.get("thresholds") or {}).get("points") else []
    if calibration := (values.get("curves") or {}).get("calibration"):
        charts.append(calibration_chart(calibration))
    return [
        section("Threshold and calibration", sheet.grid(charts)),
        section("Kinds of questions", *(_group(name, groups) for name, groups in (values.get("groups") or {}).items())),
        section("Answers", _answers(run)),
    ]


def _thresholds(curve: dict[str, Any]) -> Chart:
    rows = [
        {"threshold": threshold, "score": value, "measure": name}
        for threshold, exact, f1 in curve["points"]
        for name, value in (("F1", f1), ("exact match", exact))
    ]
    color = {"field": "measure", "type": "nominal", "scale": series_scale(["F1", "exact match"]), "legend": legend()}
    dash = {"field": "measure", "type": "nominal", "legend": None, "sort": ["F1", "exact match"]}
    x = {"field": "threshold", "type": "quantitative", "axis": {"title": "threshold"}, "scale": {"zero": False}}
    y = {"field": "score", "type": "quantitative", "axis": {"title": "score"}, "scale": {"zero": False}}
    tooltip = [{"field": name, "type": "quantitative", "format": ".4~f"} for name in ("threshold", "score")]
    line = {
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.75},
        "encoding": {
            "color": color,
            "strokeDash": dash,
            "tooltip": [{"field": "measure", "type": "nominal"}, *tooltip],
        },
    }
    chosen = {
        "data": {"values": [{"threshold": curve["chosen"]}]},
        "mark": {"type": "rule", "color": SOFT, "strokeDash": [2, 2]},
        "encoding": {"y": None, "x": {"field": "threshold", "type": "quantitative"}},
    }
    spec = {"data": {"values": rows}, "encoding": {"x": x, "y": y}, "layer": [line, chosen], "height": 260}
    note = (
        f"No answer is given where its score exceeds the best span's by more. Vertical line: {short(curve['chosen'])}, "
        "which was chosen in training."
    )
    return Chart("threshold of no answer", spec, note)


def _group(name: str, groups: dict[str, dict[str, float]]) -> Html:
    rows = [[key, number(row["n"]), number(row["exact"]), number(row["f1"])] for key, row in groups.items()]
    return table(f"Scores by {name}", [name, "questions", "exact match", "F1"], rows)


def _answers(run: Run) -> Html:
    rows = [row for row in run.rows if "passage" in row]
    ranked = map(_passage, passages.interleaved(rows, [row["loss"] for row in rows]))
    return passages.browser(run, ranked, _MEASURES, "questions", _key())


def _passage(row: dict[str, Any]) -> Passage:
    answer, f1 = row["predicted"], row["f1"]
    verdict = "right" if row["exact"] == 100 else f"F1 {f1:.0f} %"
    facts = [verdict, f"probability {answer['probability']:.2f}"]
    if answer.get("null_odds") is not None:
        facts.append(f"odds of no answer {short(answer['null_odds'])}")
    place = f"{pathlib.PurePath(row['place']).name}, id {row['id']}"
    heading = joined([tag("strong", row["question"]), *(tag("span", text, class_="soft") for text in (*facts, place))])
    texts = [(text, "") for text in dict.fromkeys(row["truth"]) if text]
    predicted = [(answer["answer"], "")] if answer["start"] is not None else []
    below = joined([passages.answers("predicted", predicted), passages.answers("annotators", texts)])
    ranks = {"loss": row["loss"], "probability": answer["probability"], "f1": f1}
    return Passage(heading, tag("div", *map(_part, row["passage"]), class_="text", dir="auto"), below, ranks)


def _part(part: Any) -> Html:
    if not isinstance(part, list):
        return passages.shown(part)
    text, marks = part
    return tag("span", passages.shown(text), class_=passages.span_classes(marks))


def _key() -> Html:
    words = "Line above: an annotator's answer. Dashed line below: the predicted one."
    both = tag("span", tag("span", "right", class_="g G p P"), " ", tag("span", "missed", class_="g G"), class_="text")
    return joined([both, " ", tag("span", "spurious", class_="p P"), " ", words])
