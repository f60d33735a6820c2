"""Settings of runs: those that differ from the recipe, those that differ between runs."""

from collections.abc import Sequence
from typing import Any

from bert.reports.runs import Run
from bert.training import run_directory


def of(run: Run) -> dict[str, Any]:
    """Dotted name -> value of the settings of a run."""
    return {name: value for name, value in run.settings.items() if name not in run_directory.RECORDED}


def changed(run: Run) -> dict[str, Any] | None:
    """Those that differ from the recipe; None where the run does not say."""
    values = run.start.get("changed")
    return dict(values) if isinstance(values, dict) else None


def differing(runs: Sequence[Run]) -> list[tuple[str, list[Any]]]:
    """Name and values of the settings that are not the same in all runs, those that some run has changed first.

    Of runs of different tasks, the settings that all have.
    """
    each = [of(run) for run in runs]
    names = sorted({name for settings in each for name in settings})
    if len({run.task for run in runs}) > 1:
        names = [name for name in names if all(name in settings for settings in each)]
    rows = [(name, [settings.get(name, ABSENT) for settings in each]) for name in names]
    rows = [(name, values) for name, values in rows if any(value != values[0] for value in values)]
    named = {name for run in runs for name in changed(run) or ()}
    return sorted(rows, key=lambda row: (row[0] not in named, row[0]))


class _Absent:
    def __repr__(self) -> str:
        return "–"


ABSENT: Any = _Absent()  # a setting that a run does not have


def shown(value: Any) -> str:
    """A value as settings are written."""
    return "not set" if value is None else value if isinstance(value, str) and value else repr(value)
