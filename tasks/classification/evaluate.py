"""A finished classifier on a file: every metric with an interval, the confusion matrix, the worst rows; predictions.

Scores are in tasks/metrics/classification_metrics.py, files in sources.py. Every row of the file is scored, or
predicted, exactly once.
"""

import csv
import io
import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert.errors import InputError, printable
from bert.inference import LoadedModel
from bert.prediction.classification import answers, options_of
from tasks import evaluation
from tasks.classification import glue, sources
from tasks.evaluation import Evaluation
from tasks.files.examples import TextExamples
from tasks.files.records import comma_names
from tasks.metrics import class_table, classification_metrics, constant_predictions

FORMATS = ("csv", "tsv", "jsonl", "glue")


def settings_of(model: LoadedModel, changes: Mapping[str, str | None]) -> dict[str, Any]:
    """How the model's files are read: as it was trained, with what the command line changes."""
    defaults = {"glue": "", "votes": False, "separator": ",", "normalize": False, "columns": "", "delimiter": ""}
    defaults |= {"quoting": "auto", "encoding": "utf-8", "ragged": "refuse", "text": "", "label": ""}
    settings = evaluation.file_settings(model, defaults, changes)
    settings["ragged"] = changes.get("ragged") or "refuse"  # never from training: the answers are one each row
    if changes.get("text") or changes.get("label"):
        settings["glue"] = ""  # a table, then
    return settings


def read_examples(
    model: LoadedModel, settings: Mapping[str, Any], data: str, split: str, labelled: str
) -> TextExamples:
    """The rows of a file, with targets in the order of the model's scores where ``labelled`` asks for them."""
    options = options_of(model.extra, model.labels, model.config)
    labels = () if options.kind == "number" else model.labels
    columns = comma_names(settings["text"])
    if options.text and columns and len(columns) != len(options.text):
        raise InputError(
            f"--text names {len(columns)} columns ({', '.join(columns)}); the model reads {len(options.text)}: "
            f"{', '.join(options.text)}"
        )
    if labelled == "no" and not settings["label"]:
        settings = dict(settings) | {"label": "label"}  # not looked at
    return sources.read_part(settings, data, options.kind, labels, split=split, labelled=labelled, without_text=True)


def evaluate(model: LoadedModel, examples: TextExamples, *, batch_size: int = 32, resamples: int = 1000) -> Evaluation:
    """Scores of the model on labelled examples.

    Raises:
      InputError: there are no labels.
    """
    if examples.targets is None:
        raise InputError(f"{examples.report.source}: has no labels, so there is nothing to compare with; use predict")
    options = options_of(model.extra, model.labels, model.config)
    predicted_NC = model.probabilities(examples.texts, batch_size=batch_size)
    scored = model.extra.get("scored") or {}
    names = tuple(scored.get("metrics") or ())
    names += tuple(n for n in classification_metrics.default_metrics(options.kind, examples.labels) if n not in names)
    arguments, threshold = (examples.targets, predicted_NC, options.kind, examples.labels), options.threshold
    positive = scored.get("positive") or classification_metrics.rarer_label(examples.targets, examples.labels)
    scores = classification_metrics.score(names, *arguments, positive=positive, threshold=threshold)
    intervals = classification_metrics.bootstrap(
        names, *arguments, positive=positive, threshold=threshold, resamples=resamples
    )
    worst = classification_metrics.worst_rows(examples.targets, predicted_NC, options.kind)
    losses_N = classification_metrics.row_losses(examples.targets, predicted_NC, options.kind)
    told = answers(predicted_NC, model.labels, options)
    rows = [
        {"place": examples.places[i], "loss": float(losses_N[i]), "truth": _truth(examples, i), "predicted": told[i]}
        | {"text": list(examples.texts[i])}
        for i in map(int, worst)
    ]
    values: dict[str, Any] = {
        "source": examples.report.source,
        "rows": examples.report.as_json(),
        "scores": classification_metrics.as_json(scores, intervals, positive),
        "worst": rows,
    }
    text = [str(examples.report), "", classification_metrics.report_table(scores, intervals, positive)]
    constant = classification_metrics.constant_answer(*arguments, threshold)
    evaluation.add_constant(text, values, constant_predictions.noted(constant, len(examples.texts)), model.task)
    if options.kind != "number":
        each, macro = class_table.of_classes(*arguments, threshold)
        values |= {"classes": class_table.as_json(each), "macro": classification_metrics.as_json(macro)}
        text += ["", class_table.table(each, macro)]
    if options.kind == "class":
        counts_CC = classification_metrics.confusion(examples.targets, predicted_NC)
        values["confusion"] = {"labels": list(examples.labels), "counts": counts_CC.tolist()}
        text += ["", confusion_table(counts_CC, examples.labels)]
    text += ["", "worst rows:"] + [
        printable(
            f"{row['loss']:8.3f}  {row['place']}  truth {_shown(row['truth'])}, "
            f"predicted {_shown(_short(row['predicted']))}: "
        )
        + evaluation.cut(" | ".join(row["text"]))
        for row in rows[: evaluation.SHOWN_WORST]
    ]
    return Evaluation("\n".join(text), values)


def _truth(found: TextExamples, i: int) -> Any:
    assert found.targets is not None
    target_C = found.targets[i]
    if found.kind == "number":
        return float(target_C[0])
    present = {name: round(float(share), 4) for name, share in zip(found.labels, target_C, strict=True) if share}
    whole = all(share == 1 for share in present.values())
    if not whole:
        return present
    return list(present) if found.kind == "classes" else next(iter(present))


def _short(answer: Mapping[str, Any]) -> Any:
    return next(answer[name] for name in ("label", "labels", "value") if name in answer)


def _shown(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value  # about what float32 holds


def confusion_table(counts_CC: np.ndarray, labels: Sequence[str], most: int = 12) -> str:
    """Rows: true classes, columns: predicted ones; of many classes only the JSON file has all."""
    if len(labels) > most:
        return f"confusion matrix: {len(labels)} classes, in the JSON file"
    labels = list(map(printable, labels))
    width = max(12, *(len(name) + 2 for name in labels))
    lines = ["truth \\ predicted".ljust(width + 6) + "".join(name.rjust(width) for name in labels)]
    lines += [
        name.ljust(width + 6) + "".join(f"{count:{width},}" for count in row)
        for name, row in zip(labels, counts_CC.tolist(), strict=True)
    ]
    return "\n".join(lines)


def write_predictions(
    path: pathlib.Path,
    model: LoadedModel,
    found: TextExamples,
    settings: Mapping[str, Any],
    format: str,
    batch_size: int,
    details: bool = False,
) -> list[pathlib.Path]:
    """The input's rows in the input's order with what the model says of each; under its name only when complete.

    csv and tsv: the row's columns, then ``predicted`` and a column ``p_LABEL`` a class (a number: ``predicted`` alone).
    jsonl: the row with the answer of `LoadedModel.predict` under "predicted". glue: a submission file.
    Returns what was written.
    """
    del details  # every answer has its probabilities already
    evaluation.check_format(format, FORMATS)
    options = options_of(model.extra, model.labels, model.config)
    if format != "glue" and found.rows:
        _check_own_columns(found, settings, ["predicted"] if format == "jsonl" else _added(options.kind, model.labels))
    told = answers(model.probabilities(found.texts, batch_size=batch_size), model.labels, options)
    if format == "glue":
        if not settings["glue"]:
            raise InputError("format is glue, but the model was not trained on a task of GLUE; use csv, tsv or jsonl")
        pairs = [(row["index"], _short(answer)) for row, answer in zip(found.rows, told, strict=True)]
        text = "\n".join(glue.submission(settings["glue"], pairs)) + "\n"
    elif format == "jsonl":
        text = evaluation.json_lines(row | {"predicted": answer} for row, answer in zip(found.rows, told, strict=True))
    else:
        text = _delimited(found.rows, told, "," if format == "csv" else "\t", settings["separator"])
    evaluation.write_whole(path, text)
    return [path]


def _check_own_columns(found: TextExamples, settings: Mapping[str, Any], added: Sequence[str]) -> None:
    """Refuses to replace what the model reads or learnt from; columns of an earlier prediction may be replaced."""
    for name in (*comma_names(settings["text"]), *comma_names(settings["label"])):
        if name in added and any(name in row for row in found.rows):
            raise InputError(
                f"{found.report.source}: the answers go into the column {name!r}, which holds the model's texts or "
                "labels; rename it in the file, and say its name with --text or --label"
            )


def _added(kind: str, labels: Sequence[str]) -> list[str]:
    """The columns of answers in csv and tsv."""
    return ["predicted", *(f"p_{name}" for name in labels if kind != "number")]


def _delimited(
    rows: Sequence[Mapping[str, Any]], told: Sequence[Mapping[str, Any]], delimiter: str, separator: str
) -> str:
    shares = list(told[0].get("probabilities", {})) if told else []
    added = ["predicted", *(f"p_{name}" for name in shares)]  # in place of those of an earlier prediction
    columns = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in added]
    lines = [_line([*columns, *added], delimiter)]
    for row, answer in zip(rows, told, strict=True):
        chosen = _short(answer)
        shown = _names(chosen, separator) if isinstance(chosen, list) else chosen
        cells = [_cell(row.get(name, "")) for name in columns]
        lines.append(_line([*cells, shown, *(f"{answer['probabilities'][name]:.6f}" for name in shares)], delimiter))
    return "".join(lines)


def _line(cells: Sequence[Any], delimiter: str) -> str:
    out = io.StringIO()
    # The module quotes what is in its line terminator, and a lone CR would end a line for whoever reads the file.
    csv.writer(out, delimiter=delimiter, lineterminator="\r\n").writerow(cells)
    return out.getvalue().removesuffix("\r\n").replace("\0", "\ufffd") + "\n"


def _cell(value: Any) -> Any:
    """Lists and objects as JSON, which is read back as such."""
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (list, dict)) else value


def _names(labels: Sequence[str], separator: str) -> str:
    """Several labels in a cell, as `labels.sets` reads them: a JSON list where a name has the separator in it."""
    if any(separator in name or name.startswith("[") for name in labels):
        return json.dumps(labels, ensure_ascii=False)
    return separator.join(labels)
