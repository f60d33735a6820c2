"""Exports of annotation tools, and predictions for them. A new tool is a file here and a line in `TOOLS`."""

import collections
import dataclasses
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bert.corpus.corpus_files import endings_of
from bert.errors import InputError, check_choice
from bert.training import run_directory
from tasks.annotations import brat, doccano, label_studio, marks, prodigy
from tasks.annotations.annotated_texts import AnnotatedTexts, AnnotationSettings, PredictedText
from tasks.annotations.files import files_of_rows, unpacked
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
    is_row: whether a row of JSON is one of its.
    is_folder: whether a folder is read as a whole; in others, each file has the rows of an annotator.
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
    "doccano": Tool(doccano.UNITS, doccano.read, doccano.write, doccano.is_row),
}


def tool_of(path: str, encoding: str = "utf-8") -> str:
    """The tool that wrote a file, a folder or a zip archive, by the content; "" where none did."""
    check_path(path)
    with unpacked(path) as place:
        if name := next((name for name, tool in TOOLS.items() if tool.is_folder(place)), ""):
            return name
        files = files_of_rows(place) if place.is_dir() else [place] if is_json(place) else []
        rows = [row for file in files for row in first_rows(str(file), encoding)]
        return next((name for name, tool in TOOLS.items() if any(map(tool.is_row, rows))), "")


def read_annotated(path: str, settings: AnnotationSettings) -> AnnotatedTexts:
    """The texts of an export; ``settings.format`` names the tool, or "auto".

    Raises InputError where the file is none of a tool's, or has no text where the tool has it.
    """
    check_choice("format", settings.format, ("auto", *TOOLS))
    name = settings.format if settings.format != "auto" else tool_of(path, settings.encoding) or "doccano"
    tool, tally = TOOLS[name], Tally()
    with unpacked(path) as place:
        files = files_of_rows(place) if place.is_dir() and not tool.is_folder(place) else [place]
        if not files:
            raise InputError(f"{path}: a folder without files of {name}; name another, or the file itself")
        rows = _merged(files, tool, settings, tally) if len(files) > 1 else tool.read(str(files[0]), settings, tally)
        if str(place) != path:  # of an archive, whose files are gone
            shown = lambda text: text.replace(str(place), path)  # noqa: E731
            rows = [row._replace(place=shown(row.place), document=shown(row.document)) for row in rows]
            tally = Tally({what: (count, shown(first)) for what, (count, first) in tally.counts.items()})
    texts, notes = marks.annotated(rows, name, tool.units, settings.offsets, path, tally)
    annotators = tuple(dict.fromkeys(who for text in texts for who, _ in text.annotations))
    are_named = any(who for row in rows for who, _ in row.marks)
    counted = [f"{path}: {note}" for note in tally.notes()]
    return AnnotatedTexts(texts, name, annotators if are_named else (), [*notes, *counted])


def _merged(files: Sequence[pathlib.Path], tool: Tool, settings: AnnotationSettings, tally: Tally) -> list[MarkedText]:
    """The texts of files of one annotator each, who is called as the file unless it names him; equal texts are one.

    Where each file has one text and a number for a name (Label Studio stores its tasks so), files are no annotators.
    """
    if settings.no_spans == "auto":
        settings = dataclasses.replace(settings, no_spans="unlabelled")
    read = {file: tool.read(str(file), settings, tally) for file in files}
    if all(file.stem.isdecimal() and len(found) == 1 for file, found in read.items()):
        return [row for found in read.values() for row in found]
    annotators = _annotators_of(files)
    rows: dict[tuple[str, int], MarkedText] = {}
    for file, texts in read.items():
        seen: collections.Counter[str] = collections.Counter()
        for row in texts:
            seen[row.text] += 1  # a text that a file has twice is two
            first = rows.setdefault((row.text, seen[row.text]), row._replace(marks=()))
            before, here = dict(first.marks), {who or annotators[file]: m for who, m in row.marks}
            if before.keys() & here.keys():
                tally.add("annotations of a text that their annotator annotated again, left out", row.place)
            rows[row.text, seen[row.text]] = first._replace(marks=tuple((before | here).items()))
    return list(rows.values())


def _annotators_of(files: Sequence[pathlib.Path]) -> dict[pathlib.Path, str]:
    """The name of each file without its endings (j.doe of j.doe.jsonl), and with them where two would have the same."""
    short = {file: file.name[: -len("".join(endings_of(file)))] for file in files}
    counts = collections.Counter(short.values())
    return {file: name if counts[name] == 1 else file.name for file, name in short.items()}


def written(
    tool: str, texts: Sequence[PredictedText], output: pathlib.Path, settings: AnnotationSettings, source: str
) -> dict[pathlib.Path, str]:
    """The files with the spans of a model as a tool imports them.

    ``source``: where the model is. It is called as its folder, or as the run that it is in.
    """
    path = pathlib.Path(source)
    model = path.parent.name if path.name == run_directory.MODEL and path.parent.name else path.name
    unit = TOOLS[tool].units[0] if settings.offsets == "auto" else settings.offsets
    from_name, to_name = comma_names(settings.controls)
    how = Writing(tool, unit, (from_name, to_name), model)
    how.warn(texts)
    return TOOLS[tool].write(texts, output, how)
