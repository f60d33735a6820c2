"""brat: a folder with DOCUMENT.txt and DOCUMENT.ann; of several annotators a folder each with the same documents.

  T1<tab>PER 0 4<tab>Anna
  T2<tab>LOC 8 11;15 20<tab>New Yorks

Spans with blanks alone between their parts (brat cuts at line ends) are one span; other discontinuous ones are dropped.
Relations, events, attributes and notes are not read. Offsets are code points; line ends and a byte order mark count.

Source: brat.nlplab.org/standoff.html; nlplab/brat, server/src/annotation.py.
"""

import collections
import pathlib
import re
from collections.abc import Sequence

from bert.errors import InputError
from tasks.annotations.annotated_texts import AnnotationSettings, LabelledSpan, PredictedText
from tasks.annotations.marks import Mark, MarkedText
from tasks.annotations.writing import Writing
from tasks.files.cells import TableCell
from tasks.files.reports import Tally
from tasks.files.text_lines import whole_text

UNITS = ("code_points", "line_ends_as_one", "utf16", "bytes")
_SPAN = re.compile(r"T[^\t]*\t(\S+) ([0-9]{1,15} [0-9]{1,15}(?:;[0-9]{1,15} [0-9]{1,15})*)[ ]*(?:\t(.*))?")
_LINE = re.compile(r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")  # a span on several lines is written in parts
_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")
_NO_TYPE = re.compile(r"[^\w-]")


def is_folder(folder: pathlib.Path) -> bool:
    """Also a single .ann file, which `read` refuses with the way out."""
    return folder.suffix == ".ann" or next(folder.rglob("*.ann"), None) is not None


def read(path: str, settings: AnnotationSettings, tally: Tally) -> list[MarkedText]:
    """The texts of a folder by their names; texts without an .ann file are not annotated."""
    top = pathlib.Path(path)
    if not top.is_dir():
        raise InputError(f"{path}: is no folder; name the folder with the .txt and .ann files")
    annotators = _annotators(top)
    rows: dict[str, MarkedText] = {}
    for file in _files(top, ".txt"):
        name, _ = _name(file, top, annotators)
        if name not in rows:
            rows[name] = MarkedText(name, whole_text(file, settings.encoding), (), str(file), name, {})
    nothing = settings.no_spans == "nothing" or (settings.no_spans == "auto" and not annotators)
    for file in _files(top, ".ann"):
        name, annotator = _name(file, top, annotators)
        beside = file.with_suffix(".txt")
        if name not in rows or (beside.is_file() and whole_text(beside, settings.encoding) != rows[name].text):
            tally.add("files of annotations without their text, left out", str(file))
            continue
        marks = _marks(file, settings, tally)
        if not marks:
            what = "nothing in them" if nothing else "not annotated"
            tally.add(f"texts without a span, read as {what} (no_spans)", str(file))
        if marks or nothing:
            rows[name] = rows[name]._replace(marks=(*rows[name].marks, (annotator, marks)))
    return list(rows.values())


def _files(top: pathlib.Path, ending: str) -> list[pathlib.Path]:
    return sorted(path for path in top.rglob(f"*{ending}") if path.is_file() and path.name[0] != ".")


def _annotators(top: pathlib.Path) -> list[str]:
    """The folders that have documents in common."""
    folders: dict[str, list[str]] = collections.defaultdict(list)
    for file in _files(top, ".ann"):
        folder, *rest = file.relative_to(top).parts
        if rest:
            folders["/".join(rest)].append(folder)
    return sorted({folder for names in folders.values() if len(names) > 1 for folder in names})


def _name(file: pathlib.Path, top: pathlib.Path, annotators: list[str]) -> tuple[str, str]:
    """(name of the document, annotator; "" where no folder names one)."""
    parts = file.relative_to(top).with_suffix("").parts
    if len(parts) > 1 and parts[0] in annotators:
        return "/".join(parts[1:]), parts[0]
    return "/".join(parts), ""


def _marks(file: pathlib.Path, settings: AnnotationSettings, tally: Tally) -> list[Mark]:
    marks = []
    for number, line in enumerate(whole_text(file, settings.encoding).removeprefix("\ufeff").split("\n"), 1):
        line = line.removesuffix("\r")
        if not line.startswith("T"):
            if line.strip():
                tally.add("lines of relations, events, attributes and notes, which are not read", f"{file}:{number}")
            continue
        match = _SPAN.fullmatch(line)
        if not match:
            raise TableCell(f"{file}:{number}", line).error("is no span; write T1<tab>LABEL 0 4<tab>TEXT, or remove it")
        bounds = [int(bound) for bound in re.split("[ ;]", match[2])]
        parts = len(bounds) // 2
        text = "" if parts > 1 and match[3] is None else match[3]  # without it, parts cannot be told to be one
        marks.append(Mark(bounds[0], bounds[-1], match[1], text, parts))
    return marks


def write(texts: Sequence[PredictedText], output: pathlib.Path, how: Writing) -> dict[pathlib.Path, str]:
    """DOCUMENT.txt and DOCUMENT.ann in the folder ``output``; documents without a name that fits have numbers.

    Where a label has other characters than brat's types, "_" stands for them.

    Raises InputError where the folder has other documents, which brat would show beside these.
    """
    written: dict[pathlib.Path, str] = {}
    for number, text in enumerate(texts, 1):
        name = text.id if _NAME.fullmatch(text.id) else f"{number:06}"
        name = f"{number:06}" if output / f"{name}.txt" in written else name
        lines = []
        for i, span in enumerate(text.spans, 1):
            parts = [match.span() for match in _LINE.finditer(text.text, span.start, span.end)]
            shown = " ".join(text.text[start:end] for start, end in parts)
            places = [how.bounds(text, LabelledSpan(start, end, "")) for start, end in parts]
            bounds = ";".join(f"{start} {end}" for start, end in places)
            lines.append(f"T{i}\t{_NO_TYPE.sub('_', span.label)} {bounds}\t{shown}\n")
        written[output / f"{name}.txt"] = text.text
        written[output / f"{name}.ann"] = "".join(lines)
    other = next((file for ending in (".txt", ".ann") for file in _files(output, ending) if file not in written), None)
    if other:
        raise InputError(f"{output}: holds {other.name}, which is none of these documents; choose another folder")
    return written
