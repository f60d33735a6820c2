"""What the tasks' evaluations share: their result, settings from a model directory, files that appear when complete."""

import dataclasses
import json
import math
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from bert import files, surrogates
from bert.errors import InputError, printable
from bert.inference import LoadedModel
from bert.training.evaluate import Metrics
from tasks.metrics import constant_predictions
from tasks.metrics.agreement import AnnotatorScores

SHOWN_WORST, KEPT_WORST = 5, 100  # rows in the report, and in the JSON file
SHOWN_ANNOTATORS = 10


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found: the report for people, and the same with more rows for programs."""

    text: str
    values: dict[str, Any]


def file_settings(model: LoadedModel, defaults: Mapping[str, Any], changes: Mapping[str, str | None]) -> dict[str, Any]:
    """How the model's files are read: as in training, with what the command line changes."""
    stored = model.extra.get("files")
    named = {name: value for name, value in changes.items() if value is not None}
    unknown = [name for name in named if name not in defaults]
    if unknown:
        raise InputError(
            f"--{unknown[0]} does not apply to {model.source}, whose task is {model.task}; that takes "
            f"{', '.join('--' + name for name in changes if name in defaults)}"
        )
    stored = {name: value for name, value in stored.items() if name in defaults} if isinstance(stored, Mapping) else {}
    changed = {name: _yes(name, value) if isinstance(defaults[name], bool) else value for name, value in named.items()}
    return {**defaults, **stored, **changed}


def _yes(name: str, value: str) -> bool:
    if value not in ("yes", "no"):
        raise InputError(f"--{name} is {value!r}; it must be yes or no")
    return value == "yes"


def annotators(scores: AnnotatorScores, of: str) -> tuple[list[str], dict[str, Any]]:
    """F1 with each annotator: lines for people, of those with most ``of`` (such as "passages"), and all for programs.

    Nothing for people where there is a single annotator.
    """
    each = scores["annotators"]
    values = {name: own.f1._asdict() | {of: own.n_sentences} for name, own in each.items()}
    if len(each) < 2:
        return [], values
    most = sorted(each, key=lambda name: -each[name].n_sentences)[:SHOWN_ANNOTATORS]
    shown = [f"{name} {f1:.3f} ({count:,})" for name in most if (f1 := each[name].f1.value) is not None
             for count in [each[name].n_sentences]]  # fmt: skip
    more = f", and {len(each) - len(most):,} more" if len(each) > len(most) else ""
    return ["", printable(f"F1 with each annotator ({of}): {', '.join(shown)}{more}")], values


def add_constant(text: list[str], values: dict[str, Any], scores: Metrics, task: str) -> None:
    """Adds whether the model gives one answer to everything, by the note of `constant_predictions.noted` in scores."""
    sentence = constant_predictions.sentence(scores, task)
    values["constant_answer"] = sentence or None
    if sentence:
        text += ["", f"{sentence}: {constant_predictions.ADVICE}"]


def check_format(format: str, formats: Iterable[str]) -> None:
    """Refuses a format that the task does not write."""
    if format not in formats:
        raise InputError(f"format is {format!r}; it must be one of {', '.join(formats)}")


def write_whole(path: pathlib.Path, text: str, option: str = "--output") -> None:
    """Writes a file that has its name only when it is complete; ``option`` of the command line names it."""
    try:
        # Half characters, which JSON can hold and UTF-8 cannot, may stand in any cell, id or name of the input.
        files.write(path, surrogates.join(text))
    except OSError as error:
        if isinstance(error, BrokenPipeError) and files.standard_stream(path):  # such as head, which has read enough
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another {option}") from None


def check_other_file(option: str, output: str | pathlib.Path, source: str) -> None:
    """Refuses to write over the file that is read, or over one in the folder that is, by whatever name or link."""
    if not os.path.isfile(output):  # nothing is there, or a pipe or device
        return
    folder = pathlib.Path(source)
    read = [folder, *(folder.rglob("*") if folder.is_dir() else ())]
    if any(path.exists() and path.samefile(output) for path in read):
        raise InputError(f"{option}={output}: is the input, which it would replace; choose another name")


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """An object a line; NaN and infinity, which JSON does not have, become null."""
    return "".join(json.dumps(_finite(row), ensure_ascii=False, default=str, allow_nan=False) + "\n" for row in rows)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def cut(text: str, most: int = 80) -> str:
    """A text on one line of a report, without what would steer a terminal."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 3]}..."
