"""The report of one run, or of several beside each other, as one HTML file without any connection."""

import itertools
import pathlib
import shlex
from collections.abc import Sequence
from typing import Any

from bert import files
from bert.metric_names import is_note
from bert.pages import template
from bert.reports import curves, settings, vega, views
from bert.reports.charts import CONFIG, Sheet
from bert.reports.html import Html, clipped, fold, interval, joined, number, paragraph, section, short, table, tag
from bert.reports.runs import Run
from bert.training import run_directory

TABLE_ROWS = 100  # of a split, in the table behind the curves


def page(runs: Sequence[Run], cache: pathlib.Path | None = None) -> str:
    """The page. ``cache``: see `vega.scripts`. Raises InputError where the charts' package is not installed."""
    sheet, several = Sheet(), len(runs) > 1
    charts, note = curves.charts(runs)
    missing = [tag("li", remark) for remark in remarks(runs)]
    parts = [
        _header(runs),
        section("Remarks", tag("ul", *missing)) if missing else "",
        section("Settings that differ", _differing(runs)) if several else "",
        section("Scores", _side_by_side(runs) if several else _scores_of(runs[0])),
        section("Curves", sheet.grid(charts), paragraph(note, class_="soft") if note else "", *_numbers(runs)),
    ]
    for run in runs:
        about = _about(run, sheet)
        parts.append(fold(f"Run {run.name}", *about, class_="run") if several else joined(about))
    title = f"Report of {', '.join(run.name for run in runs)}"
    content = {
        "TITLE": tag("title", title),
        "STYLE": template.read(__package__, "page.css", "passages.css"),
        "BODY": joined(part for part in parts if part),
        "CHARTS": template.island({"config": CONFIG, "specs": sheet.specs}),
        "VEGA": vega.scripts(cache),
        "SCRIPT": template.read(__package__, "page.js", "passages.js"),
    }
    return template.filled(__package__, "page.html", content)


def remarks(runs: Sequence[Run]) -> list[str]:
    """What is missing in the runs, and what cannot be compared, a sentence each."""
    several = len(runs) > 1
    sentences = [f"{run.name}: {remark}" if several else remark for run in runs for remark in run.remarks]
    for run in runs:
        if run.task != "pretraining" and run.start and not run.start.get("metric"):
            sentences.append(
                f"{run.name}: no validation part was held out, so there are no scores of rows that are new."
            )
    tasks = list(dict.fromkeys(run.task for run in runs))
    if len(tasks) > 1:
        sentences.append(
            f"The runs are of different tasks ({', '.join(tasks)}): compare their settings and rates. Metrics of the "
            "same name, such as loss, measure different things."
        )
    elif len({run.settings.get(run_directory.DATA) for run in runs}) > 1:
        sentences.append("The runs have different data: their scores compare where the validation part is the same.")
    return sentences


def best_of(run: Run) -> tuple[str, dict[str, Any]] | None:
    """The metric that chose the model, or the loss, and its score."""
    scores = run.scores
    name = next((n for n in (run.start.get("metric"), run.start.get("loss"), "loss") if n in scores), None)
    return (str(name), scores[name]) if name else None


def facts(run: Run) -> list[tuple[str, str]]:
    """What was trained, on what, when: names and values, of what the run says."""
    start, values = run.start, run.settings
    encoder = values.get("encoder")
    encoder = encoder if isinstance(encoder, dict) else {}
    sizes = [f"{words} {encoder[key]:,}" for key, words in _SIZES.items() if type(encoder.get(key)) is int]
    best = best_of(run)
    versions: dict[str, str] = start.get("versions") or {}
    times = [t for t in (run.starts[0].get("time") if run.starts else None, run.evaluation.get("time")) if t]
    pairs = [
        ("task", run.task + (f", {values['glue']}" if values.get("glue") else "")),
        ("model", ", ".join([str(encoder.get("model_type", "")), *sizes]).strip(", ")),
        ("started from", values.get("init_from") or "random weights"),
        ("data", values.get("data") or ""),
        (
            "steps",
            f"{run.steps:,}" + (f"; the model is of step {at:,}" if (at := _model_step(run)) is not None else ""),
        ),
        ("score", _score(*best) if best else ""),
        ("started", str(times[0]).replace("T", " ") if times else ""),
        ("ended", str(times[1]).replace("T", " ") if len(times) > 1 else ""),
        ("on", "; ".join([start.get("devices", ""), ", ".join(f"{k} {v}" for k, v in versions.items())]).strip("; ")),
    ]
    return [(name, str(value)) for name, value in pairs if value]


_SIZES = {
    "num_hidden_layers": "layers", "hidden_size": "width", "num_attention_heads": "heads", "vocab_size": "vocabulary",
}  # fmt: skip


def _model_step(run: Run) -> int | None:
    step = run.evaluation.get("step")
    return step if type(step) is int and step != run.steps else None


def _header(runs: Sequence[Run]) -> Html:
    if len(runs) > 1:
        rows = [[run.name, *(dict(facts(run)).get(name, "") for name in ("task", "steps", "score"))] for run in runs]
        parts = tag("h1", f"{len(runs)} runs"), table("The runs", ["run", "task", "steps", "score"], rows)
        return tag("header", *parts)
    (run,) = runs
    lines = itertools.chain.from_iterable((tag("dt", name), tag("dd", value)) for name, value in facts(run))
    command = run.start.get("command")
    words = shlex.join(map(str, command)) if isinstance(command, list) else ""
    again = joined([paragraph("The command:"), tag("pre", words, tabindex=0)]) if words else ""
    return tag("header", tag("h1", run.name), tag("dl", *lines), again)


def _score(name: str, score: dict[str, Any]) -> str:
    between = f" (95 % interval {interval(score)})" if interval(score) else ""
    return f"{curves.title(name)} {short(score.get('value'))}{between}"


def _scores_of(run: Run) -> Html:
    baseline = run.evaluation.get("baseline") or {}
    header = ["metric", "model", "95 % interval", *(["baseline"] if baseline else []), ""]
    rows = []
    for name, score in run.scores.items():
        beside: list[Any] = []
        if baseline:
            beside = [number(baseline[name], curves.shown(name, baseline[name])) if name in baseline else ""]
        rows.append(
            [
                _title(name, score),
                number(score.get("value"), curves.shown(name, score.get("value"))),
                interval(score),
                *beside,
                score.get("reason") or "",
            ]
        )
    if not rows:
        return paragraph("There are no scores: no evaluation has been logged.")
    scored, unit = run.evaluation.get("rows_scored"), run.evaluation.get("unit", "rows")
    of = f" on {scored:,} {unit}" if scored else ""
    what = run.evaluation.get("baseline_is")
    note = paragraph(f"Baseline: {what}.", class_="soft") if baseline and what else ""
    constant = run.evaluation.get("constant_answer")
    warning = paragraph(f"{constant}.", class_="warning") if constant else ""
    return joined([warning, table(f"Scores of the validation part{of}", header, rows), note])


def _title(name: str, score: dict[str, Any]) -> str:
    return f"{name} of {clipped(score['label'])}" if score.get("label") else curves.title(name)


def _side_by_side(runs: Sequence[Run]) -> Html:
    names = list(dict.fromkeys(name for run in runs for name in run.scores))
    rows = []
    for name in names:
        cells: list[Any] = []
        for run in runs:
            score = run.scores.get(name)
            if score is None:
                cells.append("–")
                continue
            value = score.get("value")
            between = tag("small", interval(score)) if interval(score) else ""
            cells.append(number(value, joined([curves.shown(name, value), between])))
        rows.append([curves.title(name), *cells])
    if not rows:
        return paragraph("There are no scores: no evaluation has been logged.")
    return table("Scores of the validation parts, with 95 % intervals", ["metric", *(run.name for run in runs)], rows)


def _differing(runs: Sequence[Run]) -> Html:
    rows = [[name, *map(settings.shown, values)] for name, values in settings.differing(runs)]
    if not rows:
        return paragraph("All settings are the same.")
    return table("Settings that are not the same in all runs", ["setting", *(run.name for run in runs)], rows)


def _numbers(runs: Sequence[Run]) -> list[Html]:
    """The tables behind the curves."""
    tables = []
    for name, split, series in [(run.name, split, run.splits[split]) for run in runs for split in run.splits]:
        at = {metric: dict(points) for metric, points in series.items() if not is_note(metric)}
        steps = sorted({step for points in at.values() for step in points})
        count = min(len(steps), TABLE_ROWS)
        few = [steps[i * (len(steps) - 1) // max(1, count - 1)] for i in range(count)]
        chosen = f", {len(few)} of {len(steps):,} lines" if len(few) < len(steps) else ""
        caption = (f"{name}: " if len(runs) > 1 else "") + f"{split}{chosen}"
        rows = [[f"{step:,}", *(number(p[step]) if step in p else "" for p in at.values())] for step in few]
        tables.append(table(caption, ["step", *map(curves.title, at)], rows))
    return [fold("The numbers", *tables, class_="numbers")] if tables else []


def _about(run: Run, sheet: Sheet) -> list[Html]:
    """What stands below the curves of one run."""
    data = run.start.get("data")
    return [
        *views.sections(run, sheet),
        section("Data", tag("pre", data, tabindex=0)) if data else Html(""),
        section("Settings", *_settings(run)),
    ]


def _settings(run: Run) -> list[Html]:
    changed, every = settings.changed(run), settings.of(run)
    parts = []
    if changed is not None:
        rows = [[name, settings.shown(value)] for name, value in changed.items()]
        what = table("Settings that differ from the recipe", ["setting", "value"], rows) if rows else paragraph("None.")
        parts.append(fold(f"Different from the recipe ({len(rows)})", what))
    rows = [[name, settings.shown(value)] for name, value in every.items()]
    parts.append(fold(f"All settings ({len(rows)})", table("All settings", ["setting", "value"], rows)))
    return parts


def write(runs: Sequence[Run], path: pathlib.Path, cache: pathlib.Path | None = None) -> None:
    """Writes the page; OSError where it cannot."""
    files.write(path, page(runs, cache))
