"""The files that a run leaves for its report: how they are written, and what they hold.

starts.jsonl, an object a line for each start of the run, the last one on top of what was there:

  time       of the start, ISO 8601 with the offset from UTC
  command    words of the command line
  changed    dotted name -> value of the settings that differ from the recipe's file
  versions   of bert-jax, jax and Python
  devices    kind and number, such as "cpu x 1"
  data       text: what was read, kept and dropped
  loss       name of the validation metric that is the loss; "" without a validation part
  metric     name of the validation metric that chooses the model; "" where none does

evaluation.json, one object, of the model in model/ on the validation part:

  time, task, step   when it was written; the task; the optimizer step of the model
  unit               what the metric n counts
  scores             metric -> {"value": number or null, "reason": why it is null or a note} and, where there is an
                     interval, "low", "high", "resamples", "left_out"
  baseline           metric -> number: the scores of the model that the task compares with; what it is: "baseline_is"
  rows_scored, rows_kept   how many rows were scored, and how many of them are in predictions/validation.jsonl
  ...                whatever else the task's evaluation has (`tasks.evaluation.Evaluation.values`) for views/TASK.py

predictions/validation.jsonl, an object a line, in the order of the file. A task says what they are where it scores them
(`tasks.evaluation.Evaluation.keep_rows`). Every task has these keys, and any others that its view draws:

  place              where the row stands: "file.csv:12"
  id                 of the row, where it has one
  loss               larger is worse; what the rows are ranked by
  truth, predicted   as in the task's report

Of more than `KEPT` rows the worst half of that number is kept, and others at equal distances; and those that a task
names (`Evaluation.also_kept`).
"""

import datetime
import math
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bert import files

STARTS, EVALUATION, PREDICTIONS, REPORT = "starts.jsonl", "evaluation.json", "predictions", "report.html"
VALIDATION = f"{PREDICTIONS}/validation.jsonl"
KEPT = 2000  # rows of a validation part; some 1 MB of texts
LINES = 1000  # starts that are kept


def now() -> str:
    """The time as these files have it."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def add_start(workdir: pathlib.Path, start: Mapping[str, Any]) -> None:
    """Adds a start of the run; OSError where it cannot be written."""
    path = workdir / STARTS
    before = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True) if path.is_file() else []
    whole = [line for line in before if line.endswith("\n")]
    files.write(path, "".join([*whole[-LINES:], _line({"time": now(), **start})]))


def write_evaluation(
    workdir: pathlib.Path,
    values: Mapping[str, Any],
    losses: Sequence[float] = (),
    row_of: Callable[[int], Mapping[str, Any]] = lambda i: {},
    also: Sequence[int] = (),
) -> None:
    """Writes the rows and, last, evaluation.json; OSError where they cannot be written.

    Args:
      losses: of all rows, in their order.
      row_of: number of a row -> its line.
      also: rows that are kept whatever their loss.
    """
    rows = sorted({*bounded(losses, KEPT), *also})
    if rows:
        files.write(workdir / VALIDATION, "".join(_line(row_of(i)) for i in rows))
    counts = {"rows_scored": len(losses), "rows_kept": len(rows)} if rows else {}
    files.write(workdir / EVALUATION, files.json_text(_plain({"time": now(), **values, **counts}), indent=1))


def bounded(losses: Sequence[float], most: int) -> list[int]:
    """Indices of the rows that are kept, in order: all, or the worst half of ``most`` and others at equal distances."""
    if len(losses) <= most:
        return list(range(len(losses)))
    order = np.argsort(-np.nan_to_num(np.asarray(losses, float), nan=np.inf), kind="stable")
    others = np.sort(order[most // 2 :])
    chosen = others[np.linspace(0, len(others) - 1, most - most // 2).round().astype(int)]
    return sorted({*order[: most // 2].tolist(), *chosen.tolist()})


def has_ended(workdir: pathlib.Path) -> bool:
    """Whether an end of the run has left something, and no start since then has taken it away."""
    return (workdir / EVALUATION).exists() or (workdir / REPORT).exists()


def remove(workdir: pathlib.Path) -> None:
    """Takes away what an earlier end of the run has left, which says nothing of the run that goes on."""
    for name in (EVALUATION, VALIDATION, REPORT):
        (workdir / name).unlink(missing_ok=True)


def _line(value: Mapping[str, Any]) -> str:
    return files.json_text(_plain(value))


def _plain(value: Any) -> Any:
    """A value as JSON holds it: numbers that are not finite are null, what it does not know is text."""
    if isinstance(value, Mapping):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
