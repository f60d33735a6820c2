"""Taggers on files: scores beside one or several annotators, the sentences tagged worst; tags as columns."""

import dataclasses
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert import bio_tags
from bert.errors import InputError, printable
from bert.inference import LoadedModel
from bert.prediction import tagging
from tasks import evaluation
from tasks.evaluation import Evaluation
from tasks.metrics import class_table, classification_metrics
from tasks.tagging import job as task
from tasks.tagging import tag_scores, tagged
from tasks.tagging.tag_schemes import TaggedRows, TagSettings

FORMATS = ("conll", "jsonl")
_GAP = re.compile(r"[ \t\r\n]")  # what ends a column or a line where columns are read


def settings_of(model: LoadedModel, changes: Mapping[str, str | None]) -> dict[str, Any]:
    """How the model's files are read: as it was trained, with what the command line changes."""
    return evaluation.file_settings(model, dataclasses.asdict(TagSettings()), changes)


def read_examples(model: LoadedModel, settings: Mapping[str, Any], data: str, split: str, labelled: str) -> TaggedRows:
    """The sentences of a file; where tags are needed, they must be the model's."""
    found = tagged.read_tagged(data, TagSettings(**settings), labelled=labelled)
    if labelled == "needed":
        task.check_labels(found.rows, model.labels)
    return found


def evaluate(model: LoadedModel, found: TaggedRows, *, batch_size: int = 32) -> Evaluation:
    """Scores of the model on tagged sentences; every annotator counts the same."""
    rows, options = found.rows, tagging.options_of(model.extra, model.config)
    p_KC, sentences = tagging.probabilities(model, [row.words for row in rows], options, batch_size=batch_size)
    predicted = tagging.tags(p_KC, sentences.starts, model.labels, options)
    scores = tag_scores.score(p_KC, predicted, rows, model.labels, {})
    counts_KC = tag_scores.vote_counts(rows, model.labels, {})
    gold = tag_scores.majority_tags(counts_KC, [len(row.words) for row in rows], model.labels)
    wrong_N = np.array([
        sum(a not in (b, None) for a, b in zip(*both, strict=True)) for both in zip(gold, predicted, strict=True)
    ])  # fmt: skip
    worst = [
        {"place": rows[i].place, "wrong": int(wrong_N[i]), "words": rows[i].words, "tags": gold[i]}
        | {"predicted": predicted[i]}
        for i in np.argsort(-wrong_N, kind="stable")[: evaluation.KEPT_WORST]
        if wrong_N[i]
    ]
    values: dict[str, Any] = {
        "source": found.report.source,
        "rows": found.report.as_json(),
        "scores": classification_metrics.as_json(scores),
        "worst": worst,
    }
    text = [str(found.report), "", classification_metrics.report_table(scores)]
    evaluation.add_constant(text, values, tag_scores.constant(predicted, scores), model.task)
    each = tag_scores.by_type(gold, predicted, model.labels)
    values["classes"] = class_table.as_json(each)
    text += ["", class_table.table(each, heading="entity" if bio_tags.are_bio(model.labels) else "tag")] if each else []
    if bio_tags.are_bio(model.labels):
        lines, values["annotators"] = evaluation.annotators(tag_scores.beside_annotators(rows, predicted), "sentences")
        text += lines
    text += ["", "worst (wrong words, as word/tag/predicted):"]
    for row in worst[: evaluation.SHOWN_WORST]:
        triples = zip(row["words"], row["tags"], row["predicted"], strict=True)
        shown = " ".join("/".join(triple) for triple in triples if triple[1] not in (triple[2], None))
        text.append(printable(f"{row['wrong']:6,}  {row['place']}  {evaluation.cut(shown, 100)}"))
    return Evaluation("\n".join(text), values)


def write_predictions(
    path: pathlib.Path,
    model: LoadedModel,
    found: TaggedRows,
    settings: Mapping[str, Any],
    format: str,
    batch_size: int,
    details: bool = False,
) -> list[pathlib.Path]:
    """The tags of each sentence, in the file's order.

    conll: ``word tag`` a line, a blank line between sentences, nothing else. jsonl: ``{"tokens", "tags",
    "probabilities", "entities"}`` and the row's "id" where it has one, with ``details`` also "shares", the probability
    of each tag of each word. Returns what was written.

    Raises:
      InputError: another format, or conll for a word that would be two in columns, or a sentence without words.
    """
    evaluation.check_format(format, FORMATS)
    rows = [list(row.words) for row in found.rows]
    for row in found.rows if format == "conll" else []:
        if not row.words:
            raise InputError(f"{row.place}: the sentence has no words, which columns cannot show; use format jsonl")
        cut = next((word for word in row.words if _GAP.search(word)), None)
        if cut is not None:
            raise InputError(f"{row.place}: the word {cut!r} has a blank in it, which ends a column; use format jsonl")
    told = model.predict(rows, batch_size=batch_size, details=details)
    if format == "jsonl":
        ids = [{"id": row.id} if row.id else {} for row in found.rows]
        text = evaluation.json_lines(id | one for id, one in zip(ids, told, strict=True))
    else:
        pairs = (zip(one["tokens"], one["tags"], strict=True) for one in told)
        text = "\n".join("".join(f"{word} {tag}\n" for word, tag in own) for own in pairs)
    evaluation.write_whole(path, text)
    return [path]
