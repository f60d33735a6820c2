"""`Evaluator`, the base class in each task's evaluate.py, and `Evaluation`, the report."""

import abc
import pathlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert.errors import InputError, check_choice, printable
from bert.inference import LoadedModel
from bert.prediction import uncertainty
from bert.prediction.scores import Scorer
from bert.training.evaluate import Metrics
from tasks.files.outputs import check_other_file, write_whole
from tasks.files.reports import ReadReport
from tasks.metrics import class_table, constant_predictions
from tasks.metrics.agreement import AnnotatorScores
from tasks.metrics.class_table import ClassScores
from tasks.metrics.score import Interval, Score, as_json, report_table

PART = 4096  # rows that are predicted and written at a time
SHOWN_WORST, WRITTEN_WORST = 5, 100  # rows in the report, and in the JSON file
SHOWN_ANNOTATORS = 10
OBSERVED = "observed_disagreement"  # of the annotators' votes


class Evaluator(abc.ABC):
    """A finished model on files of its task; each task's evaluate.py has one as ``EVALUATOR``.

    ``changes``: settings of reading files that the command line changes; None: as in training.

    Attributes:
      formats: of files with predictions.
      file_defaults: settings of reading files; training stored those of its files in config.json.
      unit: what is counted in reports, as in the task's job.
    """

    formats: ClassVar[tuple[str, ...]]
    file_defaults: ClassVar[Mapping[str, Any]]
    unit: ClassVar[str] = "rows"

    def __init__(self, model: LoadedModel, changes: Mapping[str, str | None], batch_size: int = 32) -> None:
        self.model = model
        self.scorer: Scorer = model.scorer(batch_size=batch_size, progress=True)
        self.settings = file_settings(model, self.file_defaults, changes)

    @abc.abstractmethod
    def read(self, data: str, *, split: str, labelled: str) -> Any:
        """The examples of a file, or of a ``split`` of GLUE, with ``rows`` and a ``report``; ``labelled``: "needed":
        those that can be scored; "no": all."""

    @abc.abstractmethod
    def check_metrics(self, names: Sequence[str], examples: Any) -> None:
        """Raises InputError for a metric that the examples do not have; the message lists those that they have."""

    @abc.abstractmethod
    def evaluate(self, examples: Any, metrics: Sequence[str] = ()) -> "Evaluation":
        """Scores of the model on labelled examples; ``metrics``: those to report, in this order; empty: all."""

    @abc.abstractmethod
    def predictions(self, examples: Any, *, details: bool, measure: str) -> list[dict[str, Any]]:
        """The prediction for each row, as of ``predict`` in the task's file in bert/prediction/."""

    @abc.abstractmethod
    def contents(
        self, path: pathlib.Path, examples: Any, predictions: list[dict[str, Any]], format: str, details: bool
    ) -> dict[pathlib.Path, str]:
        """The files with the predictions for the examples, in their order: name -> text."""

    def check_writable(self, examples: Any, format: str, rank: str) -> None:
        """Raises InputError where a format cannot hold the examples and their predictions."""
        check_choice("format", format, self.formats)

    def parts(self, examples: Any, format: str) -> Iterator[str] | None:
        """The text of a format in parts of so many rows, each predicted when it is asked for; None: in one part."""
        return None

    def vote_shares(self, examples: Any) -> tuple[np.ndarray, np.ndarray | None] | None:
        """The shares of the annotators' votes, as arguments of `uncertainty.of_rows`; None where there are none."""
        return None

    def written_in(self, examples: Any, format: str) -> Sequence[Hashable]:
        """For each row, which text of the output it is a part of; the texts are counted, and none is divided."""
        return range(len(examples.rows))

    def write_predictions(
        self,
        path: pathlib.Path,
        examples: Any,
        format: str,
        *,
        details: bool = False,
        rank: str = "",
        top: int | None = None,
    ) -> list[pathlib.Path]:
        """Writes predictions; returns what was written.

        Args:
          details: (jsonl) also the probabilities of each token, or the other candidates.
          rank: of `uncertainty.MEASURES`: the least sure rows first, with this measure, which formats without a place
            for it leave out. Beside "disagreement" stands that of the votes, where the examples have them.
          top: only so many rows, or texts of an annotation tool.
        """
        self.check_writable(examples, format, rank)
        parts = None if rank or len(examples.rows) <= PART else self.parts(examples, format)
        if parts is not None:
            check_other_file("--output", path, examples.report.source, *examples.report.beside)
            write_whole(path, parts)
            return [path]
        predictions = self.predictions(examples, details=details, measure=rank)
        if rank:
            if rank == "disagreement" and (shares := self.vote_shares(examples)):
                predictions = uncertainty.added(predictions, rank, *shares, name=OBSERVED)
            order = uncertainty.order(rank, [row[rank] for row in predictions])
            text_N = self.written_in(examples, format)
            first = set(list(dict.fromkeys(text_N[i] for i in order))[:top])
            chosen = [i for i in order if text_N[i] in first]
            examples, predictions = examples.take(chosen), [predictions[i] for i in chosen]
        contents = self.contents(path, examples, predictions, format, details)
        for target in contents:
            check_other_file("--output", target, examples.report.source, *examples.report.beside)
        for target, text in contents.items():
            write_whole(target, text)
        return list(contents)


class Evaluation:
    """The report of an evaluation: ``text`` for people, and ``values``, with more rows, for programs.

    Values stand in the order in which they were added; the worst rows come last in the text.

    Attributes:
      losses: of each row, in the order of the file: what the rows are ranked by, larger is worse.
      row_of: the row of a number, as bert/reports/records.py describes those of predictions/validation.jsonl; it is
        called for the rows that are kept. Without ``keep_rows`` there are none.
      also_kept: rows that are kept whatever their loss.
    """

    def __init__(self, report: ReadReport, *notes: str) -> None:
        self.values: dict[str, Any] = {"source": report.source, "rows": report.as_json()}
        self.losses: Sequence[float] = ()
        self.row_of: Callable[[int], dict[str, Any]] = lambda i: {}
        self.also_kept: Sequence[int] = ()
        self._lines, self._worst = [str(report), *notes], list[str]()

    @property
    def text(self) -> str:
        return "\n".join([*self._lines, *self._worst])

    def add(self, text: str, **values: Any) -> None:
        """Adds a paragraph and values."""
        self._lines += ["", text]
        self.values |= values

    def add_scores(
        self,
        scores: Mapping[str, Score],
        unit: str,
        intervals: Mapping[str, Interval] | None = None,
        positive: str | None = None,
        metrics: Sequence[str] = (),
    ) -> None:
        """Adds the ``metrics``, or all where it is empty."""
        scores = {name: scores[name] for name in metrics or scores}
        self.add(report_table(scores, intervals, positive, unit), scores=as_json(scores, intervals, positive))

    def add_worst(self, heading: str, rows: Sequence[dict[str, Any]], line_of: Callable[[dict[str, Any]], str]) -> None:
        """Adds the worst rows, the worst first, each with its "place" and its "id", if it has one.

        ``line_of``: a row as a line of the report, with its place and id as "place".
        """
        self.values["worst"] = rows[:WRITTEN_WORST]
        shown = [row | {"place": _place_and_id(row)} for row in rows[:SHOWN_WORST]]
        self._worst = ["", heading, *map(line_of, shown)]

    def keep_rows(
        self, losses: Sequence[float], row_of: Callable[[int], dict[str, Any]], also: Sequence[int] = ()
    ) -> None:
        """Says what a run keeps of its rows for the report; see `losses`, `row_of` and `also_kept`."""
        self.losses, self.row_of, self.also_kept = losses, row_of, also

    def add_constant(self, note: Metrics, unit: str) -> None:
        """Adds whether the model gives one answer to everything; ``note``: of `constant_predictions.noted`."""
        sentence = constant_predictions.sentence(note, unit)
        self.values["constant_answer"] = sentence or None
        if sentence:
            self.add(f"{sentence}: {constant_predictions.ADVICE}")

    def add_classes(self, each: ClassScores, heading: str = "class", macro: Mapping[str, Score] | None = None) -> None:
        """Adds a table with a line a class."""
        self.values["classes"] = class_table.as_json(each)
        if macro is not None:
            self.values["macro"] = as_json(macro)
        if each:
            self.add(class_table.table(each, macro, heading))

    def add_annotators(self, scores: AnnotatorScores, unit: str) -> None:
        """Adds F1 with each annotator: all as values; as text, where there are several, those with most rows."""
        each = scores["annotators"]
        self.values["annotators"] = {name: row.f1._asdict() | {unit: row.n_sentences} for name, row in each.items()}
        if len(each) < 2:
            return
        most = sorted(each.items(), key=lambda item: -item[1].n_sentences)[:SHOWN_ANNOTATORS]
        shown = [f"{name} {f1.value:.3f} ({count:,})" for name, (f1, count) in most if f1.value is not None]
        more = f", and {len(each) - len(most):,} more" if len(each) > len(most) else ""
        self.add(printable(f"F1 with each annotator ({unit}): {', '.join(shown)}{more}"))


def file_settings(model: LoadedModel, defaults: Mapping[str, Any], changes: Mapping[str, str | None]) -> dict[str, Any]:
    """How the model's files are read: as in training, with what the command line changes."""
    stored = model.extra.get("files")
    named = {name: value for name, value in changes.items() if value is not None}
    unknown = [name for name in named if name not in defaults]
    if unknown:
        known = ", ".join(_option(name) for name in changes if name in defaults)
        raise InputError(
            f"{_option(unknown[0])} does not apply to {model.source}, of task {model.task}; that takes {known}"
        )
    stored = {name: value for name, value in stored.items() if name in defaults} if isinstance(stored, Mapping) else {}
    switches = [name for name in named if isinstance(defaults[name], bool)]
    for name in switches:
        check_choice(f"--{name}", named[name], ("yes", "no"))
    return {**defaults, **stored, **named, **{name: named[name] == "yes" for name in switches}}


def _option(setting: str) -> str:
    """The option of evaluate and predict; predict's --format is that of its output."""
    return f"--{'input_format' if setting == 'format' else setting}"


def _place_and_id(row: Mapping[str, Any]) -> str:
    return f"{row['place']} (id {cut(str(row['id']))})" if "id" in row else str(row["place"])


def cut(text: str, most: int = 80) -> str:
    """A text on one line of a report, without what would steer a terminal."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 3]}..."
