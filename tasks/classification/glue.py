"""Reads GLUE's tasks from the usual files. glue_tasks.py describes each task.

Rows of `read` have the columns sentence, or sentence1 and sentence2; label (a name, a number as text, or None for "-"
and "-1"), unless the file has none; and index, which submissions need.
"""

import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from bert.errors import InputError, listed
from tasks.classification.glue_tasks import TASKS, FileSet, GlueTask, Layout
from tasks.files.cells import short
from tasks.files.delimited import read_delimited
from tasks.files.records import Table, TableSettings
from tasks.files.text_lines import read_lines

# MultiNLI's gold label where the annotators did not agree; and that of tests in the hub's form.
NO_LABEL = ("", "-", "-1")
ALIASES = {"validation_matched": "validation", "test_matched": "test", "dev": "validation"}


def read(task: str, folder: str, split: str) -> Table:
    """The rows of a split; several files of one split follow each other.

    Args:
      task: a name of TASKS.
      folder: with the task's files; or one above it, which has them in a folder of GLUE's name (such as CoLA).
      split: train, validation, test; for mnli these are the matched ones, beside validation_mismatched and
        test_mismatched.

    Raises:
      InputError: no such task, split or file (with what was looked for and what is there), a file of another form, or
        an unknown label.
    """
    known = _task(task)
    tables = [_read_file(known, file) for file in files_found(task, folder, split)]
    if len({table.columns for table in tables}) > 1:
        raise InputError(f"{tables[1].path}: has other columns than {tables[0].path}; both are parts of {split}")
    notes = [note for table in tables for note in table.notes]
    if _overlap(tables):
        notes.append(f"{tables[1].path}: left out, for it repeats rows of {tables[0].path}")
        tables = tables[:1]
    if len(tables) > 1:
        notes.append(f"{split} is {' and '.join(f'{pathlib.Path(t.path).name} ({len(t.rows):,})' for t in tables)}")
    rows = [row for table in tables for row in table.rows]
    for position, row in enumerate(rows):
        if row["index"] is None:
            row["index"] = str(position)
    places = [place for table in tables for place in table.places]
    return Table(tables[0].columns, rows, places, tuple(notes), tables[0].path)


def files_found(task: str, folder: str, split: str) -> tuple[str, ...]:
    """The files that make up a split, plain or .gz. Raises InputError with what was looked for and what is there."""
    known = _task(task)
    files = _files(known, task, split)
    root = pathlib.Path(folder)
    if not root.is_dir():
        raise InputError(f"{folder}: no such folder; name the one with the files of {known.folder}")
    for place in (root, root / known.folder):
        for choice in files:
            paths = [_plain_or_packed(place / name) for name in choice]
            if all(paths):
                return tuple(map(str, paths))
    there = sorted(
        str(file.relative_to(root)) for file in [*root.glob("*"), *root.glob(f"{known.folder}/*")] if file.is_file()
    )
    looked = " or ".join(" with ".join(choice) for choice in files)
    raise InputError(
        f"{folder}: no {split} of {task}: looked for {looked} (or .gz), there and in {known.folder}/; found "
        f"{listed(there) or 'no files'}"
    )


def submission(task: str, predictions: Mapping[str, str | float] | list[tuple[str, str | float]]) -> Iterator[str]:
    """Lines of a submission file: a header, then index and prediction, with tabs between them.

    Args:
      predictions: index -> label name, or the number, in the order of the rows.
    """
    known = _task(task)
    yield "index\tprediction"
    for index, value in predictions.items() if isinstance(predictions, Mapping) else predictions:
        # Scores outside of 0 to 5 are refused by the server.
        shown = known.written[value] if isinstance(value, str) else f"{min(max(value, 0.0), 5.0):.3f}"
        yield f"{index}\t{shown}"


def _overlap(tables: list[Table]) -> bool:
    """Whether a second file of a split has rows of the first, by their own index."""
    if len(tables) < 2:
        return False
    first, second = ({row["index"] for row in table.rows} - {None} for table in tables)
    return bool(first & second)


def _task(task: str) -> GlueTask:
    if task not in TASKS:
        raise InputError(f"no GLUE task {task!r}; they are {', '.join(TASKS)}")
    return TASKS[task]


def _files(known: GlueTask, task: str, split: str) -> tuple[FileSet, ...]:
    name = split if split in known.files else ALIASES.get(split, split)
    if name not in known.files:
        raise InputError(f"{task} has no split {split!r}; it has {', '.join(known.files)}")
    return known.files[name]


def _plain_or_packed(file: pathlib.Path) -> pathlib.Path | None:
    return next((path for path in (file, file.with_name(file.name + ".gz")) if path.is_file()), None)


def _read_file(known: GlueTask, path: str) -> Table:
    first = next(read_lines(path, "utf-8"), "").split("\t")
    layout = _layout(known, path, [name.strip() for name in first])
    table = read_delimited(
        path,
        TableSettings(columns=layout.columns, delimiter="tab", quoting="no", ragged=known.ragged, widths=layout.widths),
    )
    if not table.rows:
        raise InputError(f"{path}: no rows; get the file again")
    has_label = layout.label in table.columns
    rows = []
    for row, place in zip(table.rows, table.places, strict=True):
        new: dict[str, Any] = dict(zip(known.text, (row[name] for name in layout.text), strict=True))
        if has_label:
            new["label"] = _label(known, row[layout.label], f"{place}: {layout.label}")
        rows.append(new | {"index": row.get(layout.index)})
    columns = (*known.text, *(["label"] if has_label else []), "index")
    return Table(columns, rows, table.places, table.notes, path)


def _layout(known: GlueTask, path: str, first: list[str]) -> Layout:
    """The form of a file by its first line: names of a header, or else the number of fields."""
    for layout in known.layouts:
        if not layout.columns and set(layout.text) <= set(first):
            return layout
    for layout in known.layouts:
        if layout.columns and len(first) in (len(layout.columns), *layout.widths):
            return layout
    wanted = " or ".join(
        f"{len(layout.columns)} fields" if layout.columns else "columns " + ", ".join(layout.text)
        for layout in known.layouts
    )
    raise InputError(
        f"{path}:1: not a file of {known.folder}: {wanted} are wanted, the first line has {len(first)}: "
        f"{listed((short(name) for name in first), 12)}"
    )


def _label(known: GlueTask, value: str, where: str) -> str | None:
    text = value.strip()
    if text in NO_LABEL:
        return None
    if not known.labels:
        return text
    name = known.raw.get(text, text)
    if name not in known.labels:
        raise InputError(
            f"{where}: unknown label {short(text)}; known: {', '.join(known.raw or known.labels)}; get it again"
        )
    return name
