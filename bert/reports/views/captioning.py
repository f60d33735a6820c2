"""Captions of pictures: the pictures whose captions cost the model most, and a few of all others."""

from bert.reports.charts import Sheet
from bert.reports.html import Html
from bert.reports.runs import Run
from bert.reports.views import translation


def sections(run: Run, sheet: Sheet) -> list[Html]:
    del sheet
    return [translation.written(run, "Captions", "picture", "caption")]
