"""Where a classification job's examples come from: GLUE's folders, or tables; the settings are in configs/table.py."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from bert.errors import InputError, check_choice
from bert.target_kinds import Kind
from tasks.classification import glue, glue_tasks
from tasks.files import examples
from tasks.files.examples import TextExamples
from tasks.files.label_kinds import ColumnSettings, find_labels, label_notes
from tasks.files.records import TableSettings, comma_names, has_column
from tasks.files.tables import read_table

# Settings that a model directory carries, so that bert evaluate reads a file of the same form by its name alone.
FILE_SETTINGS = (
    "glue", "text", "label", "votes", "separator", "normalize", "columns", "delimiter", "quoting", "encoding", "ragged",
)  # fmt: skip


class Sources(NamedTuple):
    """Training and validation examples, the columns with texts, and the metrics that the data set is known by."""

    train: TextExamples
    validation: TextExamples | None
    text: tuple[str, ...]
    metrics: tuple[str, ...]


def read(config: Mapping[str, Any], *, equal_apart: bool = False) -> Sources:
    """The examples that the settings name; ``equal_apart``: see `tasks.job.as_begun`."""
    if not config["data"]:
        raise InputError("config.data is missing; name the file or folder with the examples")
    if config["glue"]:
        task = known_task(config["glue"])
        parts = [
            read_part(config, config["data"], task.kind, task.labels, split=split, labelled="needed")
            for split in ("train", "validation")
        ]
        return Sources(parts[0], parts[1], task.text, task.metrics)
    columns = column_settings(config, config["kind"])
    table = read_table(config["data"], table_settings(config))
    kind, labels = find_labels(table, columns)
    table = table._replace(notes=(*table.notes, *label_notes(labels)))
    train = examples.make_examples(table, columns, kind, labels, labelled="needed")
    validation: TextExamples | None = None
    if config["validation"]:
        validation = read_part(config, config["validation"], kind, labels, labelled="needed")
    elif config["validation_share"]:
        train, validation = examples.split(train, config["validation_share"], config["seed"], equal_apart=equal_apart)
    return Sources(train, validation, columns.text, ())


def read_part(
    config: Mapping[str, Any],
    data: str,
    kind: Kind,
    labels: Sequence[str],
    *,
    split: str = "",
    labelled: str,
    without_text: bool = False,
) -> TextExamples:
    """The examples of one file, or of one split of GLUE (``split``), with the labels of a model.

    Args:
      labelled, without_text: as in `examples.make_examples`.
    """
    if config["glue"]:
        task = known_task(config["glue"])
        columns = ColumnSettings(text=task.text, label=("label",), kind=kind)
        table = glue.read(config["glue"], data, split)
        if labelled == "needed" and not has_column(table, "label"):
            raise InputError(f"{table.path}: these rows have no labels; use predict, or score another part (split)")
        return examples.make_examples(table, columns, kind, labels, labelled=labelled, without_text=without_text)
    table = read_table(data, table_settings(config))
    columns = column_settings(config, kind)
    return examples.make_examples(table, columns, kind, labels, labelled=labelled, without_text=without_text)


def known_task(name: str) -> glue_tasks.GlueTask:
    check_choice("config.glue", name, glue_tasks.TASKS)
    return glue_tasks.TASKS[name]


def table_settings(config: Mapping[str, Any]) -> TableSettings:
    return TableSettings(
        columns=comma_names(config["columns"]),
        delimiter=config["delimiter"],
        quoting=config["quoting"],
        encoding=config["encoding"],
        ragged=config["ragged"],
    )


def column_settings(config: Mapping[str, Any], kind: Kind | Literal["auto"]) -> ColumnSettings:
    for name, what in (("text", "the text column, or the two of a pair with a comma"), ("label", "the label column")):
        if not config[name]:
            raise InputError(f"{name} is missing; name {what} (--config.{name}; of evaluate and predict --{name})")
    text = comma_names(config["text"])
    if len(set(text)) < len(text):
        raise InputError(f"text names {text[0]!r} twice; name the column once, or the two columns of a pair")
    return ColumnSettings(
        text=text,
        label=comma_names(config["label"]),
        kind=kind,
        votes=config["votes"],
        separator=config["separator"],
        normalize=config["normalize"],
    )
