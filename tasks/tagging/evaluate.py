"""Evaluates taggers on files: scores against one or several annotators, the worst sentences; writes tags."""

import dataclasses
import itertools
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert import bio_tags, config_fields
from bert.data import encoded_examples
from bert.errors import InputError, check_choice, printable
from bert.prediction import tagging
from tasks import evaluation, votes
from tasks.annotations import tools
from tasks.annotations.annotated_texts import AnnotationSettings, LabelledSpan, PredictedText
from tasks.annotations.tools import TOOLS
from tasks.evaluation import WRITTEN_WORST, Evaluation
from tasks.files import outputs
from tasks.metrics import class_curves, entity_errors
from tasks.tagging import report_rows, tag_scores, tagged
from tasks.tagging.job import check_labels
from tasks.tagging.report_rows import ScoredSentences
from tasks.tagging.tag_schemes import TaggedRows, TaggedSentence, TagSettings
from tasks.votes import VoteSettings

_GAP = re.compile(r"[ \t\r\n]")  # what ends a column or a line where columns are read


class TaggingEvaluator(evaluation.Evaluator):
    """See `tasks.evaluation.Evaluator`.

    Formats. conll: ``word tag`` a line, a blank line between sentences, nothing else; in IOB2, whatever scheme the
    model's labels are of, unless tags are plain. jsonl: ``{"tokens", "tags",
    "probabilities", "entities"}`` and the row's "id" where it has one, with ``details`` also "shares", the probability
    of each tag of each word. doccano, label_studio, prodigy, brat: what these tools import, each entity a span.
    """

    formats = ("conll", "jsonl", *TOOLS)
    file_defaults = dataclasses.asdict(TagSettings())
    unit = "words"

    @property
    def in_iob2(self) -> bool:
        """Whether entities are compared and written in IOB2 though the model's labels are of another scheme."""
        labels = self.model.labels
        return self.settings["scheme"] != "plain" and bio_tags.are_entities(labels) and not bio_tags.are_bio(labels)

    @property
    def labels(self) -> tuple[str, ...]:
        """The tags that are compared."""
        labels = tuple(self.model.labels)
        return bio_tags.merged_labels(labels)[0] if self.in_iob2 else labels

    def read(self, data: str, *, split: str, labelled: str) -> TaggedRows:
        """The sentences of a file; where tags are needed, they must be the model's."""
        del split
        examples = tagged.read_tagged(data, TagSettings(**self.settings), labelled=labelled)
        if labelled != "no":
            check_labels(examples.rows, self.labels)
        return examples

    def check_metrics(self, names: Sequence[str], examples: TaggedRows) -> None:
        for name in names:
            check_choice("--metrics", name, tag_scores.known_metrics(self.labels))

    def evaluate(self, examples: TaggedRows, metrics: Sequence[str] = ()) -> Evaluation:
        """Every annotator counts the same."""
        rows, labels = examples.rows, self.labels
        options = tagging.options_of(self.model.extra, self.model.config)
        sentences = tagging.windows_of([row.words for row in rows], self.scorer.tokenizer, options)
        p_KC = tagging.probabilities(self.scorer, sentences, options)
        predicted = tagging.tags(p_KC, sentences.starts, self.model.labels, options)
        if self.in_iob2:
            predicted = list(map(bio_tags.repaired, predicted))
            p_KC = _merged(p_KC, self.model.labels)
        scores = tag_scores.score(p_KC, predicted, rows, labels, {})
        counts_KC = tag_scores.vote_counts(rows, labels, {})
        gold = tag_scores.majority_tags(counts_KC, [len(row.words) for row in rows], labels)
        is_bio = bio_tags.are_bio(labels)
        pairs_N = list(map(entity_errors.pairs, gold, predicted)) if is_bio else []
        scored = ScoredSentences(rows, labels, counts_KC, p_KC, gold, predicted, pairs_N)
        wrong_N = np.array(scored.wrong_N)
        worst = [
            {"place": rows[i].place, **_id(rows[i]), "wrong": int(wrong_N[i]), "words": rows[i].words}
            | {"tags": gold[i], "predicted": predicted[i]}
            for i in np.argsort(-wrong_N, kind="stable")[:WRITTEN_WORST]
            if wrong_N[i]
        ]
        result = Evaluation(examples.report)
        result.add_scores(scores, self.unit, scored.intervals(), metrics=metrics)
        result.add_worst("worst (wrong words, as word/tag/predicted):", worst, _line)
        result.add_constant(tag_scores.constant(predicted, scores), self.unit)
        result.add_classes(tag_scores.by_type(gold, predicted, labels), "entity" if is_bio else "tag")
        if is_bio:
            result.add_annotators(tag_scores.beside_annotators(rows, predicted), "sentences")
        voted_K = counts_KC.any(1)
        calibration = class_curves.calibration(counts_KC[voted_K], p_KC[voted_K], "class")
        result.values |= report_rows.values(scored) | {"curves": {"calibration": calibration}}
        result.keep_rows(scored.losses_N, scored.row_of, scored.detailed)
        return result

    def predictions(self, examples: TaggedRows, *, details: bool, measure: str) -> list[dict[str, Any]]:
        rows = [list(row.words) if row.text is None else row.text for row in examples.rows]
        return tagging.predict(self.scorer, rows, details=details, measure=measure)

    def check_writable(self, examples: TaggedRows, format: str, rank: str) -> None:
        """Refuses a word that columns cannot hold, and a sentence without words."""
        super().check_writable(examples, format, rank)
        if format == "conll":
            _check_columns(examples)
            _check_tags(self.model.labels)
        elif format in TOOLS and not bio_tags.are_entities(self.model.labels):
            raise InputError(f"the model's tags mark no entities, so {format} has no spans to show; use format jsonl")

    def vote_shares(self, examples: TaggedRows) -> tuple[np.ndarray, np.ndarray] | None:
        rows, labels = examples.rows, self.labels
        if not any(len(row.annotations) > 1 for row in rows):
            return None
        shares_KC, _ = votes.target(
            tag_scores.vote_counts(rows, labels, {}), VoteSettings(), tag_scores.outside(labels)
        )
        return shares_KC, encoded_examples.starts_of([len(row.words) for row in rows])

    def contents(
        self, path: pathlib.Path, examples: TaggedRows, predictions: list[dict[str, Any]], format: str, details: bool
    ) -> dict[pathlib.Path, str]:
        del details  # predictions have them
        if format in TOOLS:
            texts = [_predicted_text(*pair) for pair in zip(examples.rows, predictions, strict=True)]
            settings = config_fields.build(AnnotationSettings, self.settings)
            return tools.written(format, texts, path, settings, self.model.source)
        if format == "jsonl":
            pairs = zip(map(_id, examples.rows), predictions, strict=True)
            return {path: outputs.json_lines(id | prediction for id, prediction in pairs)}
        convert = bio_tags.repaired if self.in_iob2 else list
        sentences = (zip(row["tokens"], convert(row["tags"]), strict=True) for row in predictions)
        return {path: "\n".join("".join(f"{word} {tag}\n" for word, tag in sentence) for sentence in sentences)}


def _id(row: TaggedSentence) -> dict[str, str]:
    """The id of a sentence as "id"; nothing where it has none."""
    return {"id": row.id} if row.id else {}


def _merged(p_KC: np.ndarray, labels: Sequence[str]) -> np.ndarray:
    """The probabilities of the labels in IOB2; that of B, for example, is the sum of those of B and S."""
    merged, index_C = bio_tags.merged_labels(labels)
    merged_KC = np.zeros((len(p_KC), len(merged)), p_KC.dtype)
    np.add.at(merged_KC.T, index_C, p_KC.T)
    return merged_KC


def _check_columns(examples: TaggedRows) -> None:
    for row in examples.rows:
        if not row.words:
            raise InputError(f"{row.place}: the sentence has no words, which columns cannot show; use format jsonl")
        cut = next((word for word in row.words if _GAP.search(word)), None)
        if cut is not None:
            raise InputError(f"{row.place}: the word {cut!r} has a blank in it, which ends a column; use format jsonl")


def _check_tags(labels: Sequence[str]) -> None:
    cut = next((label for label in labels if _GAP.search(label)), None)
    if cut is not None:
        raise InputError(f"the tag {cut!r} has a blank in it, which ends a column; use format jsonl")


def _predicted_text(row: TaggedSentence, prediction: Mapping[str, Any]) -> PredictedText:
    """The text of a sentence (of words alone: joined by blanks), and its entities."""
    text, places, is_text = row.text, row.places, row.text is not None
    if text is None:
        starts = [0, *itertools.accumulate(len(word) + 1 for word in row.words)]
        text, places = " ".join(row.words), tuple((a, b - 1) for a, b in itertools.pairwise(starts))
    first_of, last_of = ({place[side]: i for i, place in enumerate(places)} for side in (0, 1))
    log_p_T = np.log(np.maximum(prediction["probabilities"], np.finfo(float).tiny))
    spans, scores = [], []
    for entity in prediction["entities"]:
        first, stop = entity["start"], entity["end"]  # in words, or in characters of a text
        if is_text:
            first, stop = first_of[first], last_of[stop] + 1
        spans.append(LabelledSpan(places[first][0], places[stop - 1][1], entity["type"] or "entity"))
        scores.append(float(np.exp(log_p_T[first:stop].mean())))
    score = float(np.exp(log_p_T.mean())) if row.words else 1.0
    return PredictedText(row.id, text, places, spans, scores, score, row.origin)


def _line(row: dict[str, Any]) -> str:
    """A row of the report."""
    triples = zip(row["words"], row["tags"], row["predicted"], strict=True)
    shown = " ".join("/".join(triple) for triple in triples if triple[1] not in (triple[2], None))
    return printable(f"{row['wrong']:6,}  {row['place']}  {evaluation.cut(shown, 100)}")


EVALUATOR = TaggingEvaluator
