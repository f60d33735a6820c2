"""Reading comprehension by the start and the end of one answer, or none: SQuAD 1.1 and 2.0 and files of their form.

Reading files is in tasks/questions/, scores in span_metrics.py; what prediction needs besides weights is
bert/prediction/squad.py. Axes: B row, T position, E window in a row, W window.

Source: Devlin et al. 2018, sections 4.2 and 4.3; google-research/bert ``run_squad.py``.
"""

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from absl import logging
from jax import Array
from ml_collections import ConfigDict

from bert.architectures import ModelConfig
from bert.data import encoded_examples
from bert.data.encoded_examples import EncodedExamples, ExampleSettings, TrainingBatches
from bert.data.passages import Passages
from bert.errors import InputError
from bert.model import losses
from bert.model.heads import Model, SpanHead
from bert.prediction import questions, scores, squad
from bert.prediction.scores import Devices
from bert.prediction.squad import SquadOptions
from bert.tokenizer.alignment import Pieces
from bert.tokenizer.tokenizer import Tokenizer
from bert.training.best import Choice
from bert.training.evaluate import Metrics
from bert.training.task import Task
from tasks.job import choice_of, fingerprint_of, read_parts, report_of, settings_of
from tasks.metrics import constant_predictions, span_metrics
from tasks.questions.question_rows import Question, Questions, QuestionSettings
from tasks.questions.questions import for_scoring, for_training, passage_keys, placed, read_questions, split

WITHOUT = ("null", "drop")
NO_ANSWER = ("auto", "yes", "no")
LOSS = "cross_entropy"  # that is trained, per window
METRICS = ("f1", "exact")  # that can choose the best evaluation, and the threshold of no answer with it
_NOWHERE = (-1, -1)  # of an answer that holds no piece of its passage, so that it is in no window


@dataclasses.dataclass(frozen=True)
class StartAndEnd(Task):
    """Head and loss, for the training loop: the mean of two cross-entropies over a window's own positions; a window
    without an answer has its start and end at [CLS]."""

    def model(self, config: ModelConfig) -> Model:
        return Model(config, SpanHead(config))

    def counts(self, batch: Mapping[str, Any]) -> dict[str, Array]:
        return {"loss": batch["target_weights"].sum()}

    def sums(self, outputs: dict[str, Array], batch: Mapping[str, Any]) -> dict[str, Array]:
        slots = batch["cls_positions"].shape[1]
        own_BET = batch["example_ids"][:, None, :] == jnp.arange(1, slots + 1)[:, None]
        first_BE = batch["cls_positions"]
        start_BE = losses.position_cross_entropy(outputs["start_logits"], own_BET, first_BE + batch["start"])
        end_BE = losses.position_cross_entropy(outputs["end_logits"], own_BET, first_BE + batch["end"])
        return {"loss": losses.weighted_sum((start_BE + end_BE) / 2, batch["target_weights"])}

    def metrics(self, totals: dict[str, float]) -> Metrics:
        return {"loss": totals["loss"] / totals["loss_count"] if totals["loss_count"] else None}


@dataclasses.dataclass(frozen=True)
class Job:
    """Questions with answers, read and checked; see `tasks.job.Job`."""

    train: Questions
    validation: Questions | None
    options: SquadOptions
    without: str  # what becomes of windows without the answer
    choice: Choice | None
    files: QuestionSettings
    labels: tuple[str, ...] = ()
    fresh: tuple[str, ...] = ("span",)
    positive: str | None = None

    @property
    def report(self) -> str:
        rows = [row for part in (self.train, self.validation) if part for row in part.rows]
        return "\n".join([report_of(self.train, self.validation, "passages", passage_keys), *several_spans(rows)])

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.train, self.validation and placed(self.validation), lambda row: row.content)

    def with_labels(self, labels: Sequence[str]) -> "Job":
        return self

    def task(self, config: ModelConfig) -> StartAndEnd:
        return StartAndEnd()

    def extra(self, scores: Metrics) -> dict[str, Any]:
        options = dataclasses.replace(self.options, threshold=scores.get("threshold") or 0.0)
        return options.to_json() | {"files": dataclasses.asdict(self.files)}

    def batches(self, tokenizer: Tokenizer, settings: ExampleSettings) -> TrainingBatches:
        rows = self.train.rows
        cut, pieces_N = questions.windows_of(rows, tokenizer, self.options)
        return TrainingBatches(windows_with_answers(cut, rows, pieces_N, self.without), settings)

    def evaluator(
        self, tokenizer: Tokenizer, config: ModelConfig, settings: ExampleSettings, devices: Devices
    ) -> Callable[[dict], Metrics]:
        assert self.validation is not None
        assert self.choice is not None
        rows = self.validation.rows
        measure = self.choice.metric if self.choice.metric in METRICS else METRICS[0]
        cut, pieces_N = questions.windows_of(rows, tokenizer, self.options)

        def evaluate(params: dict) -> Metrics:
            scores_K2 = scores.of_tokens(params, config, cut.encoded, settings, devices)
            candidates = squad.search(scores_K2, cut, self.options)
            predictions = squad.answers(candidates, [row.context for row in rows], pieces_N, self.options)
            values = score(rows, predictions, self.options, measure)
            values[LOSS] = cross_entropy(scores_K2, cut, rows, pieces_N, self.without)
            return values | constant(rows, predictions, values.get("threshold"))

        return evaluate

    def baseline(self) -> Metrics:
        return {}


def windows_with_answers(
    cut: Passages, rows: Sequence[Question], pieces_N: Sequence[Pieces], without: str
) -> EncodedExamples:
    """The windows with ``start`` and ``end`` int32 [W], counted from [CLS], and ``target_weights``.

    A window that does not hold the whole answer has both at [CLS] ("null"), or is left out ("drop"); those of questions
    that have none are kept. A question whose answer holds no piece of its passage is left out: it has an answer, and
    none that can be learnt. What became of the answers goes to the log.
    """
    pieces_of = [_pieces_of(row, pieces) for row, pieces in zip(rows, pieces_N, strict=True)]
    start_W, end_W, holds_W, kept_W = _targets(cut, pieces_of, without)
    trained, seen = np.flatnonzero(kept_W).tolist(), set(cut.text_W[holds_W].tolist())
    missing = sum(pieces_of[text] not in (None, _NOWHERE) for text in cut.text_W[~holds_W])
    answered = sum(answer is not None for answer in pieces_of)
    if missing:
        became = "trained as without an answer" if without == "null" else "left out"
        logging.info("%d of %d windows do not hold the answer to their question: %s", missing, len(start_W), became)
    if answered > len(seen):
        logging.warning(
            "%d of %d answers are whole in no window, %d of them without a piece of their own, and left out; for the "
            "others raise max_length", answered - len(seen), answered, pieces_of.count(_NOWHERE),
        )  # fmt: skip
    if not trained:
        raise InputError("no window holds an answer; raise config.max_length, or set windows_without_answer to null")
    ones = np.ones(len(start_W), np.float32)
    targets = {"start": start_W, "end": end_W, "target_weights": ones}
    return encoded_examples.take(dataclasses.replace(cut.encoded, of_example=targets), trained)


def _targets(
    cut: Passages, pieces_of: Sequence[tuple[int, int] | None], without: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(start, end: int32 [W], counted from [CLS]; whether the window holds the answer, and is trained: bool [W])."""
    start_W, end_W = np.zeros(len(cut.text_W), np.int32), np.zeros(len(cut.text_W), np.int32)
    holds_W, kept_W = np.zeros(len(cut.text_W), bool), np.zeros(len(cut.text_W), bool)
    for w, (text, (first, stop)) in enumerate(zip(cut.text_W, cut.bounds_W2, strict=True)):
        answer = pieces_of[text]
        if answer is not None and first <= answer[0] and answer[1] <= stop:
            before = cut.places_W[w] - cut.encoded.starts[w]
            start_W[w], end_W[w] = before + answer[0] - first, before + answer[1] - 1 - first
            holds_W[w] = True
        kept_W[w] = answer is None or holds_W[w] or (without == "null" and answer != _NOWHERE)
    return start_W, end_W, holds_W, kept_W


def cross_entropy(
    scores_K2: np.ndarray, cut: Passages, rows: Sequence[Question], pieces_N: Sequence[Pieces], without: str
) -> float | None:
    """The loss of `StartAndEnd` on windows, in nats; None where none of them would be trained.

    Args:
      scores_K2: float [K, 2], scores of being the start and the end, of each token of the windows.
    """
    pieces_of = [_pieces_of(row, pieces) for row, pieces in zip(rows, pieces_N, strict=True)]
    start_W, end_W, _, kept_W = _targets(cut, pieces_of, without)
    first_W = cut.encoded.starts[: len(start_W)]
    scores_K2 = scores_K2.astype(np.float64)
    log_total_W2 = np.logaddexp.reduceat(scores_K2, first_W, axis=0)
    right_W2 = np.stack([scores_K2[first_W + start_W, 0], scores_K2[first_W + end_W, 1]], axis=1)
    nats_W = (log_total_W2 - right_W2).mean(axis=1)
    return float(nats_W[kept_W].mean()) if kept_W.any() else None


def _pieces_of(row: Question, pieces: Pieces) -> tuple[int, int] | None:
    """[first, stop) of the answer that most annotators gave, of equally many the first; None where it is no answer,
    ``_NOWHERE`` where it has no position or no piece."""
    if row.untrainable:
        return _NOWHERE
    votes = Counter(annotation.spans[:1] for annotation in row.annotations)
    spans = max(votes, key=lambda spans: votes[spans])
    return (pieces.of_span(*spans[0]) or _NOWHERE) if spans else None


def score(
    rows: Sequence[Question], predictions: Sequence[Mapping[str, Any]], options: SquadOptions, measure: str = "f1"
) -> Metrics:
    """The official scores, in percent; where a question may have no answer, with the threshold that is best for them.

    Every question counts, by the texts of all its golds.

    Args:
      predictions: answers with their candidates, see `squad.answers`; ids must differ.
      measure: f1 or exact, whichever the threshold is to make best.
    """
    answers = {row.id: golds(row) for row in rows}
    spans = {row.id: best_span(prediction) for row, prediction in zip(rows, predictions, strict=True)}
    characters = span_metrics.by_characters({row.id: row.context for row in rows})
    if not options.no_answer:
        version = version_of(answers.values(), options)
        official = span_metrics.squad_scores(answers, spans, version=version, characters=characters)
        return {name: official[name] for name in ("f1", "exact", "total")}
    odds = {
        row.id: np.inf if prediction["null_odds"] is None else prediction["null_odds"]
        for row, prediction in zip(rows, predictions, strict=True)
    }
    threshold, _ = span_metrics.best_threshold(answers, spans, odds, measure, characters=characters)
    official = span_metrics.squad_scores(answers, spans, odds, threshold, characters=characters)
    return {name: value for name, value in official.items() if not name.startswith("best_")} | {"threshold": threshold}


def constant(rows: Sequence[Question], predictions: Sequence[Mapping[str, Any]], threshold: float | None) -> Metrics:
    """The note on a reader that answers no question though some have an answer (constant_predictions.py).

    Args:
      threshold: of the odds of no answer; None where every question has an answer.
    """
    odds = [prediction["null_odds"] for prediction in predictions]
    silent = threshold is not None and all(value is None or value > threshold for value in odds)
    is_constant = silent and len(rows) > 1 and any(map(golds, rows))
    return constant_predictions.noted("nothing" if is_constant else None, len(rows))


def best_span(prediction: Mapping[str, Any]) -> str:
    """The text of the likeliest candidate that is a span; "" where there is none."""
    return next((candidate["answer"] for candidate in prediction["candidates"] if candidate["start"] is not None), "")


def golds(row: Question) -> list[str]:
    """The texts of the annotators' answers as they stand in the file, also where they have no position in the passage;
    empty where nobody gave one."""
    return [text for _, texts in row.golds for text in texts[:1]]


def several_spans(rows: Sequence[Question]) -> list[str]:
    """A note on answers that are left out because `golds` has one a question and annotator; none where none is."""
    several = [row for row in rows if any(len(texts) > 1 for _, texts in row.golds)]
    if not several:
        return []
    return [
        f"{len(several):,} questions have several spans by one annotator, the first of which is the answer "
        f"(first {several[0].place}); configs/bio_mrc.py finds all"
    ]


def version_of(answers: Iterable[Sequence[str]], options: SquadOptions) -> str:
    """Whose rules score these golds: those of SQuAD 2.0 where a question may have no answer, or an answer is ""."""
    return "2.0" if options.no_answer or not all(texts and all(texts) for texts in answers) else "1.1"


def read(config: ConfigDict, *, equal_apart: bool = False) -> Job:
    """The job that the settings of configs/squad.py describe; ``equal_apart``: see `tasks.job.as_begun`."""
    for name, allowed in (("windows_without_answer", WITHOUT), ("no_answer", NO_ANSWER)):
        if config[name] not in allowed:
            raise InputError(f"config.{name} is {config[name]!r}; it must be one of {', '.join(allowed)}")
    limits = {name: config[name] for name in ("max_length", "window_step", "max_question", "max_answer", "best")}
    options, files = SquadOptions(**limits), settings_of(QuestionSettings, config)
    splitting = functools.partial(split, equal_apart=equal_apart)
    train, validation = read_parts(
        config, "questions", lambda path: read_questions(path, files, labelled="needed"), splitting
    )
    train, validation = for_training(train), validation and for_scoring(validation)
    unanswered = any(not any(golds(row)) for part in (train, validation) if part for row in part.rows)
    no_answer = unanswered if config.no_answer == "auto" else config.no_answer == "yes"
    choice = choice_of(config, METRICS, (LOSS,), validation, LOSS)
    options = dataclasses.replace(options, no_answer=no_answer)
    return Job(train, validation, options, config.windows_without_answer, choice, files)
