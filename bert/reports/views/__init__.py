"""What the report of a task shows beyond scores and curves, one module per task, found by the task's name.

A module has ``sections(run, sheet)``: the sections (html.py) that it makes of ``run.evaluation`` and ``run.rows``, and
draws with charts of ``sheet``. What is missing there it leaves out. A task without a module has the common sections.
"""

import importlib
import importlib.util
import re

from bert.reports import records
from bert.reports.charts import Sheet
from bert.reports.html import Html, paragraph, section
from bert.reports.runs import Run


def sections(run: Run, sheet: Sheet) -> list[Html]:
    """The sections of a run's task."""
    name = f"{__name__}.{run.task}"
    if not re.fullmatch(r"\w+", run.task) or importlib.util.find_spec(name) is None:
        return []
    try:
        drawn: list[Html] = importlib.import_module(name).sections(run, sheet)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"What is particular to {run.task} cannot be shown: {records.EVALUATION} or {records.VALIDATION}"
        return [section("Evaluation", paragraph(f"{what} was edited or is damaged ({error}).", class_="warning"))]
    return drawn
