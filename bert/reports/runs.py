"""A run as its report sees it: what is in its folder, and remarks on what is not, or cannot be read."""

import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from bert import json_files
from bert.errors import InputError
from bert.reports import forms, records
from bert.training import run_directory, tracking

Point = tuple[int, float | None]  # step, value
Series = dict[str, list[Point]]  # metric -> points
NO_METRICS = ("step", "split")


@dataclasses.dataclass(frozen=True)
class Run:
    """Attributes:
    name: as it was given.
    settings: of config.json, dotted name -> value.
    starts: of starts.jsonl, the last one last.
    splits: "train" and "validation" -> the curves of their metrics.
    evaluation: of evaluation.json; empty where the run has not ended.
    rows: of predictions/validation.jsonl.
    remarks: what is missing or cannot be read, a sentence each.
    """

    name: str
    directory: pathlib.Path
    settings: dict[str, Any]
    starts: list[dict[str, Any]]
    splits: dict[str, Series]
    evaluation: dict[str, Any]
    rows: list[dict[str, Any]]
    remarks: list[str]

    @property
    def task(self) -> str:
        """Its name in bert/prediction/, or "pretraining"."""
        return str(self.settings.get("task") or "pretraining")

    @property
    def start(self) -> dict[str, Any]:
        """The last start; empty where none is noted."""
        return self.starts[-1] if self.starts else {}

    @property
    def steps(self) -> int:
        """The last step that is logged."""
        return max(
            (step for series in self.splits.values() for points in series.values() for step, _ in points), default=0
        )

    @property
    def scores(self) -> dict[str, dict[str, Any]]:
        """Metric -> {"value", ...} at the end; of a run that has not ended those of its last evaluation."""
        if scores := self.evaluation.get("scores"):
            return dict(scores)
        held = self.splits.get("validation", {})
        return {name: {"value": points[-1][1]} for name, points in held.items()}


def read_all(paths: Sequence[str]) -> list[Run]:
    """The runs of these folders; a folder with runs of several seeds stands for all of them.

    Raises InputError for a folder without a run, and for one that is given twice.
    """
    names: dict[pathlib.Path, str] = {}
    for name in paths:
        for folder, called in _runs_in(name):
            place = folder.resolve()
            if place in names:
                also = "" if called == names[place] else f" (as {names[place]}, too)"
                raise InputError(f"{called}: is given twice{also}; give each run once")
            names[place] = called
    return [read(pathlib.Path(called), called) for called in names.values()]


def _runs_in(name: str) -> Iterator[tuple[pathlib.Path, str]]:
    folder = pathlib.Path(name)
    seeds = sorted(folder.glob("seed-*/" + run_directory.CONFIG), key=lambda path: (len(path.parent.name), path))
    if seeds and not (folder / run_directory.CONFIG).exists():
        for path in seeds:
            yield path.parent, str(pathlib.Path(name) / path.parent.name)
    else:
        yield folder, name


def read(folder: pathlib.Path, name: str) -> Run:
    """The run in a folder. Raises InputError where there is none."""
    settings = run_directory.read(folder)
    if run_directory.DATA not in settings:
        beside = f"; its run may be {folder.parent}" if (folder.parent / run_directory.METRICS).exists() else ""
        raise InputError(
            f"{folder}: is no run ({run_directory.CONFIG} is of a model); name the folder of a run{beside}"
        )
    remarks: list[str] = []
    splits = _curves(folder / run_directory.METRICS, remarks)
    read = [forms.start(line) for line in _lines(folder / records.STARTS, remarks)]
    _remark(records.STARTS, [key for _, dropped in read for key in dropped], remarks)
    evaluation = _evaluation(folder / records.EVALUATION, remarks)
    rows = list(_lines(folder / records.VALIDATION, remarks, forms.is_row))
    return Run(name, folder, settings, [start for start, _ in read], splits, evaluation, rows, remarks)


def _evaluation(path: pathlib.Path, remarks: list[str]) -> dict[str, Any]:
    try:
        evaluation, dropped = forms.evaluation(json_files.read_object(path))
    except FileNotFoundError:
        what = "the run is still going, was stopped, or is of an earlier version"
        remarks.append(f"{path.name} is not there: {what}; the scores are those of the last evaluation.")
        return {}
    except InputError as error:
        remarks.append(f"{error}; the scores are those of the last evaluation.")
        return {}
    _remark(path.name, dropped, remarks)
    return evaluation


def _remark(file: str, dropped: Sequence[str], remarks: list[str]) -> None:
    """Says which keys of a file are left out."""
    if names := list(dict.fromkeys(dropped)):
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        remarks.append(f"{file}: {', '.join(names[:3])}{more} cannot be read (edited or damaged); left out.")


def _curves(path: pathlib.Path, remarks: list[str]) -> dict[str, Series]:
    splits: dict[str, Series] = {}
    unread = 0
    for _, row in tracking.read_log(path) if path.exists() else ():
        if row is None or not forms.is_step(row["step"]):
            unread += 1
            continue
        series = splits.setdefault(row["split"], {})
        for metric, value in row.items():
            if metric not in NO_METRICS and (value is None or type(value) in (int, float)):
                series.setdefault(metric, []).append((row["step"], forms.number(value)))
    if not path.exists():
        remarks.append(f"{path.name} is not there: the run has not reached its first logged step, or it was removed.")
    elif not splits and not unread:
        remarks.append(f"{run_directory.METRICS} has no line yet: the run has not reached its first logged step.")
    if unread:
        remarks.append(f"{unread:,} line(s) of {run_directory.METRICS} cannot be read and are left out.")
    return splits


def _lines(
    path: pathlib.Path, remarks: list[str], is_right: Callable[[Mapping[str, Any]], bool] = lambda line: True
) -> Iterator[dict[str, Any]]:
    """The objects of a file with one a line, those that are right; none where it is not there."""
    if not path.is_file():
        return
    unread = 0
    for line in path.read_bytes().split(b"\n"):
        if not line:
            continue
        try:
            value = json.loads(line.decode())
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, dict) and is_right(value):
            yield value
        else:
            unread += 1
    if unread:
        remarks.append(f"{unread:,} line(s) of {path.name} cannot be read and are left out.")
