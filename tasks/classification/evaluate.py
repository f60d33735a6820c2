"""Evaluates classifiers on files: metrics with intervals, confusion matrix, worst rows; writes predictions.

Metrics: tasks/metrics/classification_metrics.py. Files: sources.py. Every row of the file is scored or predicted
exactly once.
"""

import dataclasses
import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert.errors import InputError, printable
from bert.inference import LoadedModel
from bert.prediction import classification, uncertainty
from bert.prediction.classification import ClassificationOptions
from bert.progress import progress
from tasks import evaluation
from tasks.classification import glue, sources
from tasks.evaluation import OBSERVED, Evaluation
from tasks.files import outputs
from tasks.files.examples import TextExamples
from tasks.files.records import comma_names, id_column
from tasks.metrics import class_curves, class_table, classification_metrics, constant_predictions, weighted_metrics

_CHOSEN = ("label", "labels", "value")  # what an answer may have of `classification.answers`
_OF_ANSWERS = (*_CHOSEN, "probabilities")


class ClassificationEvaluator(evaluation.Evaluator):
    """See `tasks.evaluation.Evaluator`.

    Formats. csv and tsv: the row's columns, then ``predicted`` and a column ``p_LABEL`` a class (a number:
    ``predicted`` alone), and the uncertainty. jsonl: the row with the answer of `LoadedModel.predict` under
    "predicted". glue: a submission file.
    """

    formats: ClassVar[tuple[str, ...]] = ("csv", "tsv", "jsonl", "glue")
    file_defaults: ClassVar = {
        "glue": "", "votes": False, "separator": ",", "normalize": False, "columns": "", "delimiter": "",
        "quoting": "auto", "encoding": "utf-8", "ragged": "refuse", "text": "", "label": "",
    }  # fmt: skip

    def __init__(self, model: LoadedModel, changes: Mapping[str, str | None], batch_size: int = 32) -> None:
        super().__init__(model, changes, batch_size)
        self.options = self._options_of(model)
        self.settings["ragged"] = changes.get("ragged") or "refuse"  # never from training: the answers are one each row
        if changes.get("text") or changes.get("label"):
            self.settings["glue"] = ""  # a table, then

    def _options_of(self, model: LoadedModel) -> ClassificationOptions:
        return classification.options_of(model.extra, model.labels, model.config)

    def read(self, data: str, *, split: str, labelled: str) -> TextExamples:
        """The rows of a file, with targets in the order of the model's scores where ``labelled`` asks for them."""
        settings, options = self.settings, self.options
        columns = comma_names(settings["text"])
        if options.text and columns and len(columns) != len(options.text):
            raise InputError(
                f"--text names {len(columns)} columns ({', '.join(columns)}); the model reads {len(options.text)}: "
                f"{', '.join(options.text)}"
            )
        if labelled != "needed" and not settings["label"]:
            labelled, settings = "no", settings | {"label": "label"}  # which is not read
        labels = () if options.kind == "number" else self.model.labels
        return sources.read_part(
            settings, data, options.kind, labels, split=split, labelled=labelled, without_text=True
        )

    def check_metrics(self, names: Sequence[str], examples: TextExamples) -> None:
        positive = self._positive(examples)
        classification_metrics.check_names(names, self.options.kind, examples.labels, positive)

    def evaluate(self, examples: TextExamples, metrics: Sequence[str] = (), *, resamples: int = 1000) -> Evaluation:
        """Raises InputError where there are no labels."""
        targets, options = examples.targets, self.options
        if targets is None:
            raise InputError(f"{examples.report.source}: has no labels to compare with; use predict")
        kind, threshold = options.kind, options.threshold
        predicted_NC = self._probabilities(examples)
        logged = (self.model.extra.get("scored") or {}).get("metrics") or ()
        usual = (*logged, *classification_metrics.default_metrics(kind, examples.labels))
        names = tuple(dict.fromkeys(metrics or usual))
        arguments = (targets, predicted_NC, kind, examples.labels)
        positive = self._positive(examples)
        scores = classification_metrics.score(names, *arguments, positive=positive, threshold=threshold)
        intervals = classification_metrics.bootstrap(
            names, *arguments, positive=positive, threshold=threshold, resamples=resamples
        )
        losses_N = weighted_metrics.row_losses(targets, predicted_NC, kind)
        answers = classification.answers(predicted_NC, self.model.labels, options)

        def row_of(i: int) -> dict[str, Any]:
            known = {"place": examples.places[i], **self._id(examples.rows[i]), "loss": float(losses_N[i])}
            return known | {"truth": _truth(examples, i), "predicted": answers[i], "text": list(examples.texts[i])}

        worst = [row_of(int(i)) for i in classification_metrics.worst_rows(targets, predicted_NC, kind)]
        result = Evaluation(examples.report)
        result.keep_rows(losses_N.tolist(), row_of)
        result.add_scores(scores, self.unit, intervals, positive)
        result.add_worst("worst rows:", worst, _report_line)
        constant = classification_metrics.constant_answer(*arguments, threshold)
        result.add_constant(constant_predictions.noted(constant, len(examples.texts)), self.unit)
        if kind != "number":
            each, macro = class_table.of_classes(*arguments, threshold)
            result.add_classes(each, macro=macro)
            result.values["curves"] = class_curves.of_classes(targets, predicted_NC, kind, examples.labels)
        else:
            result.values |= class_curves.residuals(targets, predicted_NC)
        if kind == "class":
            counts_CC = classification_metrics.confusion(targets, predicted_NC)
            values = {"labels": list(examples.labels), "counts": counts_CC.tolist()}
            result.add(confusion_table(counts_CC, examples.labels), confusion=values)
        return result

    def predictions(self, examples: TextExamples, *, details: bool, measure: str) -> list[dict[str, Any]]:
        del details  # every answer has its probabilities already
        return classification.read(self.scorer, examples.texts, self.options, measure=measure)

    def check_writable(self, examples: TextExamples, format: str, rank: str) -> None:
        """Refuses to replace what the model reads or learnt from; columns of an earlier prediction may be replaced."""
        super().check_writable(examples, format, rank)
        if format == "glue":
            if not self.settings["glue"]:
                raise InputError("format is glue, but the model is of no task of GLUE; use csv, tsv, jsonl")
            if rank:
                raise InputError("format is glue, whose submissions keep the order of the file; use csv, tsv, jsonl")
        added = {"predicted"}
        if format in ("csv", "tsv"):
            added |= {f"p_{name}" for name in self.model.labels if self.options.kind != "number"} | {rank, OBSERVED}
        for name in (*comma_names(self.settings["text"]), *comma_names(self.settings["label"])):
            if name in added and any(name in row for row in examples.rows):
                raise InputError(
                    f"{examples.report.source}: the answers go into the column {name!r}, which holds the model's texts "
                    "or labels; rename it in the file, and say its name with --text or --label"
                )

    def vote_shares(self, examples: TextExamples) -> tuple[np.ndarray, None] | None:
        targets = examples.targets
        if targets is None or examples.kind != "class" or not (self.settings["votes"] or (targets.max(1) < 1).any()):
            return None
        return targets, None

    def contents(
        self, path: pathlib.Path, examples: TextExamples, predictions: list[dict[str, Any]], format: str, details: bool
    ) -> dict[pathlib.Path, str]:
        del details
        rows = examples.rows
        if format == "glue":
            pairs = [(row["index"], _short(answer)) for row, answer in zip(rows, predictions, strict=True)]
            return {path: "\n".join(glue.submission(self.settings["glue"], pairs)) + "\n"}
        return {path: self._table(rows, predictions, format, outputs.columns_of(rows))}

    def parts(self, examples: TextExamples, format: str) -> Iterator[str] | None:
        return None if format == "glue" or examples.pictures is not None else self._parts(examples, format)

    def _parts(self, examples: TextExamples, format: str) -> Iterator[str]:
        encoded = classification.encode(examples.texts, self.scorer.tokenizer, self.options.max_length)
        scorer, columns = dataclasses.replace(self.scorer, progress=False), outputs.columns_of(examples.rows)
        with progress(len(encoded), "row", shown=self.scorer.progress) as done:
            for start in range(0, len(encoded), evaluation.PART):
                rows = examples.rows[start : start + evaluation.PART]
                chosen = encoded.take(range(start, start + len(rows)))
                p_NC = classification.probabilities(scorer, chosen, self.options)
                answers = classification.answers(p_NC, self.model.labels, self.options)
                yield self._table(rows, answers, format, columns, header=start == 0)
                done(len(rows))

    def _table(
        self,
        rows: Sequence[dict[str, Any]],
        answers: Sequence[Mapping[str, Any]],
        format: str,
        columns: Sequence[str],
        header: bool = True,
    ) -> str:
        """Rows with their answers; ``columns``: of all rows of the file. ``header``: whether a csv begins here."""
        if format == "jsonl":
            predicted = (row | {"predicted": answer} for row, answer in zip(rows, answers, strict=True))
            return outputs.json_lines(predicted)
        read = {*comma_names(self.settings["text"]), *comma_names(self.settings["label"])}
        lines = _delimited(rows, answers, columns, "," if format == "csv" else "\t", self.settings["separator"], read)
        return "".join(lines if header else lines[1:])

    def _positive(self, examples: TextExamples) -> str | None:
        """The class that f1 is of."""
        stored = (self.model.extra.get("scored") or {}).get("positive")
        if stored or examples.targets is None:
            return stored
        return classification_metrics.rarer_label(examples.targets, examples.labels)

    def _id(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The id of a row as "id"; nothing where it has none."""
        read = (*comma_names(self.settings["text"]), *comma_names(self.settings["label"]))
        column = id_column(name for name in row if name not in read)
        return {} if column is None or row[column] in (None, "") else {"id": row[column]}

    def _probabilities(self, examples: TextExamples) -> np.ndarray:
        encoded = classification.encode(examples.texts, self.scorer.tokenizer, self.options.max_length)
        return classification.probabilities(self.scorer, encoded, self.options)


def _report_line(row: dict[str, Any]) -> str:
    truth, predicted = _shown(row["truth"]), _shown(_short(row["predicted"]))
    start = printable(f"{row['loss']:8.3f}  {row['place']}  truth {truth}, predicted {predicted}: ")
    return start + evaluation.cut(" | ".join(row["text"]))


def _truth(examples: TextExamples, i: int) -> Any:
    assert examples.targets is not None
    target_C = examples.targets[i]
    if examples.kind == "number":
        return float(target_C[0])
    present = {name: round(float(share), 4) for name, share in zip(examples.labels, target_C, strict=True) if share}
    whole = all(share == 1 for share in present.values())
    if not whole:
        return present
    return list(present) if examples.kind == "classes" else next(iter(present))


def _short(answer: Mapping[str, Any]) -> Any:
    return next(answer[name] for name in _CHOSEN if name in answer)


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


def _delimited(
    rows: Sequence[Mapping[str, Any]],
    answers: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    delimiter: str,
    separator: str,
    read: set[str],
) -> list[str]:
    """The header, and a line a row with its answer, without those of an earlier prediction; columns that the model has
    ``read`` stay."""
    first = answers[0] if answers else {}
    shares, measures = list(first.get("probabilities", {})), [name for name in first if name not in _OF_ANSWERS]
    answered = ["predicted", *(f"p_{name}" for name in shares)]
    added = [*answered, *measures]
    ranked = {*uncertainty.MEASURES, OBSERVED} - read if shares and {*answered} <= {*columns} else set()
    columns = [name for name in columns if name not in added and name not in ranked]
    lines = [outputs.table_line([*columns, *added], delimiter)]
    for row, answer in zip(rows, answers, strict=True):
        chosen = _short(answer)
        shown = _names(chosen, separator) if isinstance(chosen, list) else chosen
        cells = [row.get(name, "") for name in columns]
        numbers = [*(answer["probabilities"][name] for name in shares), *(answer[name] for name in measures)]
        cells += [shown, *("" if number is None else f"{number:.6f}" for number in numbers)]
        lines.append(outputs.table_line(cells, delimiter))
    return lines


def _names(labels: Sequence[str], separator: str) -> str:
    """Several labels in a cell, as `labels.sets` reads them: a JSON list where a name has the separator in it."""
    if any(separator in name or name.startswith("[") for name in labels):
        return json.dumps(labels, ensure_ascii=False)
    return separator.join(labels)


EVALUATOR = ClassificationEvaluator
