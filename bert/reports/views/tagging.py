"""Tagged sentences: scores of each type of entity, errors, confused types, calibration, and sentences word by word."""

import itertools
import pathlib
from typing import Any

from bert import bio_tags
from bert.reports import passages
from bert.reports.charts import Sheet
from bert.reports.html import Html, joined, number, section, short, table, tag
from bert.reports.passages import Passage
from bert.reports.runs import Run
from bert.reports.views.bio_mrc import beside_annotators
from bert.reports.views.classification import calibration_chart, classes, confusion

_MEASURES = {"wrong": "most wrong words first", "loss": "by loss"}


def sections(run: Run, sheet: Sheet) -> list[Html]:
    values, errors = run.evaluation, run.evaluation.get("errors")
    what, unit = ("type", "entities") if errors else ("tag", "words")
    calibration = (values.get("curves") or {}).get("calibration")
    return [
        section("Model and annotators", *beside_annotators(run, "sentences")),
        section(f"Each {what}", classes(values.get("classes") or {}, {}, what), _errors(errors or {})),
        section(f"Which {what}s are confused", *confusion(values.get("confusion"), sheet, what, unit)),
        section("Calibration", sheet.grid([calibration_chart(calibration)] if calibration else [])),
        section("Sentences", _sentences(run)),
    ]


def _errors(errors: dict[str, int]) -> Html:
    total = sum(errors.values()) or 1
    rows = [[kind, number(count), number(count / total, f"{count / total:.1%}")] for kind, count in errors.items()]
    return (
        table("Entities of the majority's and the model's tags", ["", "entities", "share"], rows) if rows else Html("")
    )


def _sentences(run: Run) -> Html:
    rows = [row for row in run.rows if "sentence" in row]
    chosen = passages.interleaved(rows, *([row[name] for row in rows] for name in ("wrong", "loss")))
    return passages.browser(run, map(_passage, chosen), _MEASURES, "sentences", _key())


def _passage(row: dict[str, Any]) -> Passage:
    place = pathlib.PurePath(row["place"]).name + (f", id {row['id']}" if "id" in row else "")
    facts = [f"{row['wrong']:,} of {len(row['truth']):,} words wrong", f"loss {short(row['loss'])}"]
    heading = joined([tag("strong", place), *(tag("span", text, class_="soft") for text in facts)])
    below = [
        tag("output", class_="readout"),
        *(tag("p", tag("strong", kind), ": ", _error(truth, guess)) for kind, truth, guess in row.get("errors", ())),
        tag("details", tag("summary", "Numbers of each word"), class_="token-numbers"),
    ]
    return Passage(heading, _text(row["sentence"]), joined(below), {"wrong": row["wrong"], "loss": row["loss"]})


def _error(truth: list[str] | None, predicted: list[str] | None) -> Html:
    """Such as "Paris" PER, predicted "Paris" LOC."""
    shown = [[tag("q", passages.shown(mark[1])), " ", mark[0]] if mark else ["nothing"] for mark in (truth, predicted)]
    return joined([*shown[0], ", predicted ", *shown[1]])


def _text(parts: list[list[Any] | None]) -> Html:
    truth, predicted = (_marks([part[i] if part else None for part in parts]) for i in (1, 2))
    words = [
        passages.shown(None) if part is None else _word(part, *marks)
        for part, *marks in zip(parts, truth, predicted, strict=True)
    ]
    spaced = itertools.chain.from_iterable((" ", word) for word in words)
    return tag(
        "div", *list(spaced)[1:], class_="text words", dir="auto", tabindex=0, role="group",
        aria_label="sentence; arrow keys go from word to word",
    )  # fmt: skip


def _marks(tags: list[str | None]) -> list[tuple[str, str]]:
    """For each tag where it stands in its entity ("first", "in" or ""), and the type behind the last word."""
    marks = [("", "")] * len(tags)
    known = [label or "O" for label in tags]
    if all(map(bio_tags.is_tag, known)):
        for kind, first, stop in bio_tags.spans(known):
            for k in range(first, stop):
                marks[k] = ("first" if k == first else "in", (kind or "entity") if k == stop - 1 else "")
    return marks


def _word(part: list[Any], true_mark: tuple[str, str], predicted_mark: tuple[str, str]) -> Html:
    word, gold, predicted, p, share, votes = part
    marks = {"gold": true_mark, "said": predicted_mark}
    letters = "".join(
        {"first": letter.upper(), "in": letter, "": ""}[where]
        for letter, (where, _) in zip("gp", marks.values(), strict=True)
    )
    wrong = "wrong" if gold not in (None, predicted) else ""
    counted = ", ".join(f"{name} {count:g}" for name, count in votes.items()) if votes else None
    text = tag(
        "span", passages.shown(word), class_=" ".join(filter(None, ["t", wrong, passages.span_classes(letters)])),
        style=f"--V:{share:.4g}" if share else None, data_truth=gold, data_predicted=predicted, data_p=f"{p:.4f}",
        data_votes=counted,
    )  # fmt: skip
    chips = [tag("span", **{f"data_{name}": kind}) for name, (_, kind) in marks.items() if kind]
    return joined([text, *chips])


def _key() -> Html:
    example = [_word(["New", "B-LOC", "B-LOC", 0.9, 0, None], ("first", ""), ("first", "")), " "]
    example += [_word(["York", "I-LOC", "I-LOC", 0.9, 0, None], ("in", "true type"), ("in", "predicted type"))]
    words = (
        " Line and type above: entity of the annotators (of several: of most). Dashed line and type below: predicted. "
        "Frame: wrong tag. Shade: share of the votes for an entity."
    )
    return joined([tag("span", *example, class_="text words", aria_hidden="true"), words])
