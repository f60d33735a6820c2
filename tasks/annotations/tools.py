"""Exports of annotation tools, and predictions for them. A new tool is a file here and a line in `TOOLS`."""

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bert.errors import check_choice
from tasks.annotations import brat, doccano, label_studio, marks, prodigy
from tasks.annotations.annotated_texts import SINGLE, AnnotatedTexts, AnnotationSettings, PredictedText
from tasks.annotations.marks import MarkedText
from tasks.annotations.rows import first_rows, is_json
from tasks.annotations.writing import Writing
from tasks.files.records import comma_names
from tasks.files.reports import Tally
from tasks.files.tables import check_path


class Tool(NamedTuple):
    """A tool.

    units: in which its versions count offsets, the usual one first.
    read: path, settings, tally of what is left out -> texts.
    write: texts, the file or folder to write, how -> text of each file.
    is_row: whether a row of JSON is one of its. is_folder: whether a folder is.
    """

    units: Sequence[str]
    read: Callable[[str, AnnotationSettings, Tally], list[MarkedText]]
    write: Callable[[Sequence[PredictedText], pathlib.Path, Writing], dict[pathlib.Path, str]]
    is_row: Callable[[Mapping[str, Any]], bool] = lambda row: False
    is_folder: Callable[[pathlib.Path], bool] = lambda folder: False


TOOLS = {  # the first that knows a file reads it; doccano knows every row with a text
    "label_studio": Tool(label_studio.UNITS, label_studio.read, label_studio.write, label_studio.is_row),
    "prodigy": Tool(prodigy.UNITS, prodigy.read, prodigy.write, prodigy.is_row),
    "brat": Tool(brat.UNITS, brat.read, brat.write, is_folder=brat.is_folder),
    "doccano": Tool(doccano.UNITS, doccano.read, doccano.write, doccano.is_row, doccano.is_folder),
}


def tool_of(path: str, encoding: str = "utf-8") -> str:
    """The tool that wrote a file or folder; "" where none did, by the content."""
    file = check_path(path)
    if file.is_dir():
        return next((name for name, tool in TOOLS.items() if tool.is_folder(file)), "")
    rows = first_rows(path, encoding) if is_json(file) else []
    return next((name for name, tool in TOOLS.items() if any(map(tool.is_row, rows))), "")


def read_annotated(path: str, settings: AnnotationSettings) -> AnnotatedTexts:
    """The texts of an export; ``settings.format`` names the tool, or "auto".

    Raises InputError where the file is none of a tool's, or has no text where the tool has it.
    """
    check_choice("format", settings.format, ("auto", *TOOLS))
    name = settings.format if settings.format != "auto" else tool_of(path, settings.encoding) or "doccano"
    tool, tally = TOOLS[name], Tally()
    rows = tool.read(path, settings, tally)
    texts, notes = marks.annotated(rows, name, tool.units, settings.offsets, path, tally)
    annotators = tuple(dict.fromkeys(who for text in texts for who, _ in text.annotations))
    counted = [f"{path}: {note}" for note in tally.notes()]
    return AnnotatedTexts(texts, name, () if annotators == (SINGLE,) else annotators, [*notes, *counted])


def written(
    tool: str, texts: Sequence[PredictedText], output: pathlib.Path, settings: AnnotationSettings, model: str
) -> dict[pathlib.Path, str]:
    """The files with the spans of a model as a tool imports them; ``model``: its name."""
    unit = TOOLS[tool].units[0] if settings.offsets == "auto" else settings.offsets
    from_name, to_name = comma_names(settings.controls)
    how = Writing(tool, unit, (from_name, to_name), model)
    how.warn(texts)
    return TOOLS[tool].write(texts, output, how)
